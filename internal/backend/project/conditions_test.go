// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

var (
	monday  = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	tuesday = monday.AddDate(0, 0, 1)
)

func at(t time.Time) *metav1.Time { m := metav1.NewTime(t); return &m }

// holding is a condition that has been True, with this message, since a time.
func holding(kind v1alpha1.ConditionType, message string, since time.Time) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: metav1.ConditionTrue, Reason: v1alpha1.ConditionReason(kind), Message: message,
		LastProbeTime: at(since), LastTransitionTime: at(since),
	}
}

// resolved is a condition that no longer holds since a time.
func resolved(kind v1alpha1.ConditionType, since time.Time) v1alpha1.Condition {
	return v1alpha1.Condition{
		Type: kind, Status: metav1.ConditionFalse, Reason: v1alpha1.ConditionReason(kind) + "Resolved",
		LastProbeTime: at(since), LastTransitionTime: at(since),
	}
}

func TestConditions(t *testing.T) {
	t.Parallel()
	const (
		failure    = v1alpha1.ConditionErrorOccurred
		comparison = v1alpha1.ConditionComparisonError
		sync       = v1alpha1.ConditionSyncError
	)
	otherMessage := holding(failure, "y", monday)
	otherMessage.LastProbeTime = at(tuesday)
	for name, c := range map[string]struct {
		before []v1alpha1.Condition
		now    []problem
		want   []v1alpha1.Condition
	}{
		"nothing was wrong and nothing is": {nil, nil, nil},
		"an error appears":                 {nil, []problem{{failure, "x"}}, []v1alpha1.Condition{holding(failure, "x", tuesday)}},
		"it stays":                         {[]v1alpha1.Condition{holding(failure, "x", monday)}, []problem{{failure, "x"}}, []v1alpha1.Condition{holding(failure, "x", monday)}},
		"it stays and says something else": {[]v1alpha1.Condition{holding(failure, "x", monday)}, []problem{{failure, "y"}}, []v1alpha1.Condition{otherMessage}},
		"it is corrected":                  {[]v1alpha1.Condition{holding(failure, "x", monday)}, nil, []v1alpha1.Condition{resolved(failure, tuesday)}},
		"it stays corrected":               {[]v1alpha1.Condition{resolved(failure, monday)}, nil, []v1alpha1.Condition{resolved(failure, monday)}},
		"it comes back":                    {[]v1alpha1.Condition{resolved(failure, monday)}, []problem{{failure, "x"}}, []v1alpha1.Condition{holding(failure, "x", tuesday)}},
		"each goes its own way": {
			[]v1alpha1.Condition{holding(comparison, "c", monday), resolved(sync, monday)},
			[]problem{{sync, "s"}, {failure, "x"}},
			[]v1alpha1.Condition{resolved(comparison, tuesday), holding(failure, "x", tuesday), holding(sync, "s", tuesday)},
		},
		"the order is that of the types": {
			[]v1alpha1.Condition{holding(sync, "s", monday), holding(comparison, "c", monday)},
			[]problem{{sync, "s"}, {failure, "x"}, {comparison, "c"}},
			[]v1alpha1.Condition{holding(comparison, "c", monday), holding(failure, "x", tuesday), holding(sync, "s", monday)},
		},
		"several of one kind are one, whatever their order": {
			[]v1alpha1.Condition{holding(sync, "a; b", monday)},
			[]problem{{sync, "b"}, {sync, "a"}, {sync, "b"}},
			[]v1alpha1.Condition{holding(sync, "a; b", monday)},
		},
		"what somebody else wrote stays as it is": {
			[]v1alpha1.Condition{{Type: "Paused", Status: metav1.ConditionUnknown, Reason: "Asked"}},
			nil,
			[]v1alpha1.Condition{{Type: "Paused", Status: metav1.ConditionUnknown, Reason: "Asked"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := slices.Clone(c.before)
			got := conditions(c.before, c.now, tuesday)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.before, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("the earlier conditions were changed:\n%s", diff)
			}
		})
	}
}

// Through any history of problems: what is a problem now is True, what was one
// is False, types are unique and in order, and looking again changes nothing.
func TestConditionsThroughAnyHistory(t *testing.T) {
	t.Parallel()
	kinds := []v1alpha1.ConditionType{v1alpha1.ConditionErrorOccurred, v1alpha1.ConditionSyncError, v1alpha1.ConditionComparisonError, "OrphanedResourceWarning"}
	rapid.Check(t, func(t *rapid.T) {
		var have []v1alpha1.Condition
		ever := map[v1alpha1.ConditionType]bool{}
		for round := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			var now []problem
			is := map[v1alpha1.ConditionType]bool{}
			for _, kind := range rapid.SliceOfDistinct(rapid.SampledFrom(kinds), rapid.ID).Draw(t, "problems") {
				now = append(now, problem{kind, rapid.SampledFrom([]string{"x", "y"}).Draw(t, "message")})
				ever[kind], is[kind] = true, true
			}
			clock := monday.Add(time.Duration(round) * time.Hour)
			before := have
			have = conditions(before, now, clock)
			checkConditions(t, have, is, ever)
			checkTimes(t, before, have, clock)
			if diff := cmp.Diff(have, conditions(have, now, clock.Add(time.Minute))); diff != "" {
				t.Fatalf("looking again changes it:\n%s", diff)
			}
			slices.Reverse(now)
			if diff := cmp.Diff(have, conditions(before, now, clock)); diff != "" {
				t.Fatalf("the order of the problems shows:\n%s", diff)
			}
		}
	})
}

func checkConditions(t *rapid.T, have []v1alpha1.Condition, is, ever map[v1alpha1.ConditionType]bool) {
	if len(have) != len(ever) {
		t.Fatalf("%d conditions of %d kinds of problem so far: %+v", len(have), len(ever), have)
	}
	for i, c := range have {
		if i > 0 && have[i-1].Type >= c.Type {
			t.Fatalf("%s comes after %s", c.Type, have[i-1].Type)
		}
		if (c.Status == metav1.ConditionTrue) != is[c.Type] {
			t.Fatalf("%s is %s", c.Type, c.Status)
		}
		want := v1alpha1.ConditionReason(c.Type)
		if !is[c.Type] {
			want = want.Resolved()
		}
		if c.Reason != want {
			t.Fatalf("%s is %s with reason %s", c.Type, c.Status, c.Reason)
		}
	}
}

// checkTimes: a time moves when, and only when, what it is the time of changed.
func checkTimes(t *rapid.T, before, after []v1alpha1.Condition, clock time.Time) {
	for _, c := range after {
		i := slices.IndexFunc(before, func(b v1alpha1.Condition) bool { return b.Type == c.Type })
		var was v1alpha1.Condition
		if i >= 0 {
			was = before[i]
		}
		if moved := c.LastTransitionTime.Time.Equal(clock); moved != (was.Status != c.Status) {
			t.Fatalf("%s went from %s to %s, transition time moved: %v", c.Type, was.Status, c.Status, moved)
		}
		changed := was.Status != c.Status || was.Message != c.Message
		if moved := c.LastProbeTime.Time.Equal(clock); moved != changed {
			t.Fatalf("%s changed: %v, probe time moved: %v", c.Type, changed, moved)
		}
	}
}
