// SPDX-License-Identifier: Apache-2.0

package project

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// problem is something that is wrong now.
type problem struct {
	kind    v1alpha1.ConditionType
	message string
}

// conditions carries the earlier conditions on: each present problem is True
// with its type as the reason; one that was True and is no longer a problem
// turns False with the reason …Resolved; what never was a problem does not
// appear. The result is in the order of the types, and times move only when
// something changed, so that composing twice gives the same.
func conditions(before []v1alpha1.Condition, now []problem, at time.Time) []v1alpha1.Condition {
	merged := make(map[v1alpha1.ConditionType]v1alpha1.Condition, len(before)+len(now))
	for _, c := range before {
		if c.Status == metav1.ConditionTrue {
			c = changed(c, metav1.ConditionFalse, v1alpha1.ConditionReason(c.Type).Resolved(), "", at)
		}
		merged[c.Type] = c
	}
	earlier := make(map[v1alpha1.ConditionType]v1alpha1.Condition, len(before))
	for _, c := range before {
		earlier[c.Type] = c
	}
	for _, p := range together(now) {
		c := earlier[p.kind]
		c.Type = p.kind
		merged[p.kind] = changed(c, metav1.ConditionTrue, v1alpha1.ConditionReason(p.kind), p.message, at)
	}
	out := make([]v1alpha1.Condition, 0, len(merged))
	for _, c := range merged {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b v1alpha1.Condition) int { return cmp.Compare(a.Type, b.Type) })
	if len(out) == 0 {
		return nil
	}
	return out
}

// together makes one problem of those of the same kind, with their messages in
// order.
func together(now []problem) []problem {
	byKind := make(map[v1alpha1.ConditionType][]string, len(now))
	for _, p := range now {
		byKind[p.kind] = append(byKind[p.kind], p.message)
	}
	out := make([]problem, 0, len(byKind))
	for kind, messages := range byKind {
		slices.Sort(messages)
		out = append(out, problem{kind, strings.Join(slices.Compact(messages), "; ")})
	}
	return out
}

func changed(c v1alpha1.Condition, s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string, at time.Time) v1alpha1.Condition {
	if c.Status == s && c.Reason == r && c.Message == message {
		return c
	}
	t := metav1.NewTime(at)
	c.LastProbeTime = &t
	if c.Status != s {
		c.LastTransitionTime = &t
	}
	c.Status, c.Reason, c.Message = s, r, message
	return c
}
