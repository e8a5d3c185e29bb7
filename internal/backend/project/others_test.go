// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func syncRun(s v1alpha1.GitOpsDeploymentSyncRunStatus) *v1alpha1.GitOpsDeploymentSyncRun {
	return &v1alpha1.GitOpsDeploymentSyncRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "r", UID: "uid-r", Generation: 2}, Status: s,
	}
}

func syncChain(r domain.SyncResult, op *store.Operation) *store.SyncChain {
	return &store.SyncChain{Sync: &store.SyncOperation{ID: "uid-r", Result: r}, Operation: op}
}

// since is a condition that has been so from a time on.
func since(c v1alpha1.Condition, t time.Time) v1alpha1.Condition {
	m := metav1.NewTime(t)
	c.LastProbeTime, c.LastTransitionTime = &m, &m
	return c
}

func waitsForItsTurn(t time.Time) v1alpha1.Condition {
	return since(succeeded(metav1.ConditionUnknown, "Waiting", "waits for its turn"), t)
}

func TestComposeSyncRun(t *testing.T) {
	t.Parallel()
	failure := func(message string) v1alpha1.Condition {
		return holding(v1alpha1.ConditionErrorOccurred, message, tuesday)
	}
	status := func(s v1alpha1.GitOpsDeploymentSyncRunStatus, conditions ...v1alpha1.Condition) v1alpha1.GitOpsDeploymentSyncRunStatus {
		s.ObservedGeneration, s.Conditions = 2, conditions
		return s
	}
	var none v1alpha1.GitOpsDeploymentSyncRunStatus
	running := domain.SyncResult{Phase: domain.SyncRunning, Message: "applying", Revision: "4f0c", Health: "Progressing", Sync: "OutOfSync", StartedAt: monday}
	over := running
	over.Phase, over.Message, over.Health, over.Sync, over.FinishedAt = domain.SyncSucceeded, "done", "Healthy", "Synced", tuesday
	failed, broken := over, over
	failed.Phase, failed.Message = domain.SyncFailed, "one object is invalid"
	broken.Phase, broken.Message = domain.SyncError, ""
	shownRunning := v1alpha1.GitOpsDeploymentSyncRunStatus{Health: "Progressing", SyncStatus: "OutOfSync", Revision: "4f0c", StartedAt: at(monday)}
	shownOver := v1alpha1.GitOpsDeploymentSyncRunStatus{Health: "Healthy", SyncStatus: "Synced", Revision: "4f0c", StartedAt: at(monday), FinishedAt: at(tuesday)}
	for name, c := range map[string]struct {
		before  v1alpha1.GitOpsDeploymentSyncRunStatus
		chain   *store.SyncChain
		verdict error
		want    v1alpha1.GitOpsDeploymentSyncRunStatus
	}{
		"nothing known": {none, nil, nil, status(none)},
		"waits for its deployment": {
			none, nil, &domain.Waiting{For: "GitOpsDeployment shop"}, status(none, failure("waiting for GitOpsDeployment shop")),
		},
		"its deployment came": {
			status(none, holding(v1alpha1.ConditionErrorOccurred, "waiting", monday)), syncChain(domain.SyncResult{}, nil), nil,
			status(none, resolved(v1alpha1.ConditionErrorOccurred, tuesday), waitsForItsTurn(tuesday)),
		},
		"waits for its turn": {none, syncChain(domain.SyncResult{}, nil), nil, status(none, waitsForItsTurn(tuesday))},
		"the engine cannot be told": {
			none, syncChain(domain.SyncResult{}, &store.Operation{State: domain.OperationInProgress, Message: "engine is away"}), nil,
			status(none, failure("engine is away"), waitsForItsTurn(tuesday)),
		},
		"the engine was told": {
			none, syncChain(domain.SyncResult{}, &store.Operation{State: domain.OperationCompleted, Message: "old"}), nil,
			status(none, waitsForItsTurn(tuesday)),
		},
		"runs":      {none, syncChain(running, nil), nil, status(shownRunning, since(succeeded(metav1.ConditionUnknown, "Running", "applying"), tuesday))},
		"succeeded": {none, syncChain(over, nil), nil, status(shownOver, since(succeeded(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "done"), tuesday))},
		"succeeded, whatever the operation said before": {
			status(none, holding(v1alpha1.ConditionErrorOccurred, "engine is away", monday)),
			syncChain(over, &store.Operation{State: domain.OperationInProgress, Message: "engine is away"}), nil,
			status(shownOver, resolved(v1alpha1.ConditionErrorOccurred, tuesday), since(succeeded(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "done"), tuesday)),
		},
		"failed": {
			none, syncChain(failed, nil), nil,
			status(shownOver, failure("one object is invalid"), since(succeeded(metav1.ConditionFalse, "Failed", "one object is invalid"), tuesday)),
		},
		"failed without a word": {
			none, syncChain(broken, nil), nil,
			status(shownOver, failure("the sync did not succeed"), since(succeeded(metav1.ConditionFalse, "Error", "the sync did not succeed"), tuesday)),
		},
		"its spec was changed": {
			none, syncChain(running, nil), &domain.Refusal{Field: "spec", Problem: "is immutable"},
			status(shownRunning, failure("spec is immutable"), since(succeeded(metav1.ConditionUnknown, "Running", "applying"), tuesday)),
		},
		"ended without having been done": {
			status(shownRunning, since(succeeded(metav1.ConditionUnknown, "Running", "applying"), monday)), nil, &domain.Ended{Why: "its deployment was removed"},
			func() v1alpha1.GitOpsDeploymentSyncRunStatus {
				s := status(shownRunning, failure("its deployment was removed"), since(succeeded(metav1.ConditionFalse, "Error", "its deployment was removed"), tuesday))
				s.FinishedAt = at(tuesday)
				return s
			}(),
		},
		"over, and never written again": {
			status(shownOver, since(succeeded(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "done"), monday)),
			syncChain(failed, &store.Operation{State: domain.OperationFailed, Message: "late"}), errors.New("late"),
			status(shownOver, since(succeeded(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "done"), monday)),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cr := syncRun(c.before)
			before := cr.DeepCopy()
			got := composeSyncRun(cr, c.chain, c.verdict, tuesday)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, cr); diff != "" {
				t.Errorf("composing changed the CR:\n%s", diff)
			}
			again := composeSyncRun(syncRun(got), c.chain, c.verdict, tuesday.AddDate(0, 0, 1))
			if diff := cmp.Diff(got, again, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("composing twice gives something else:\n%s", diff)
			}
		})
	}
}

func repositoryCredential(conditions ...metav1.Condition) *v1alpha1.GitOpsDeploymentRepositoryCredential {
	return &v1alpha1.GitOpsDeploymentRepositoryCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "git", UID: "uid-git", Generation: 2},
		Status:     v1alpha1.GitOpsDeploymentRepositoryCredentialStatus{Conditions: conditions},
	}
}

func standard(kind v1alpha1.ConditionType, s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string, generation int64, at time.Time) metav1.Condition {
	return metav1.Condition{Type: string(kind), Status: s, Reason: string(r), Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(at)}
}

// line is one condition without its times.
func line(c metav1.Condition) string {
	return c.Type + "=" + string(c.Status) + " " + c.Reason + " " + c.Message
}

func TestComposeCredential(t *testing.T) {
	t.Parallel()
	bad := func(r v1alpha1.ConditionReason, message string) *intake.CredentialProblem {
		return &intake.CredentialProblem{Reason: r, Message: message}
	}
	asking := []string{"ValidRepositoryCredential=Unknown Connecting asking the repository"}
	good := []string{
		"ErrorOccurred=False ErrorOccurredResolved ", "ValidRepositoryCredential=True RepositoryCredentialUpToDate ", "ValidRepositoryURL=True ValidRepositoryUrl ",
	}
	goodBefore := func(generation int64) []metav1.Condition {
		return []metav1.Condition{
			standard(v1alpha1.ConditionErrorOccurred, metav1.ConditionFalse, "ErrorOccurredResolved", "", generation, monday),
			standard(v1alpha1.ConditionValidRepositoryURL, metav1.ConditionTrue, v1alpha1.ReasonValidRepositoryURL, "", generation, monday),
			standard(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionTrue, v1alpha1.ReasonRepositoryCredentialUpToDate, "", generation, monday),
		}
	}
	badBefore := []metav1.Condition{
		standard(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, v1alpha1.ReasonSecretNotFound, "no Secret", 2, monday),
		standard(v1alpha1.ConditionValidRepositoryURL, metav1.ConditionTrue, v1alpha1.ReasonValidRepositoryURL, "", 2, monday),
		standard(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionFalse, v1alpha1.ReasonSecretNotFound, "no Secret", 2, monday),
	}
	refused := []string{
		"ErrorOccurred=True InvalidCredentials not taken", "ValidRepositoryCredential=False InvalidCredentials not taken", "ValidRepositoryURL=True ValidRepositoryUrl ",
	}
	wrongURL := []string{
		"ErrorOccurred=True InvalidRepositoryUrl no such host", "ValidRepositoryCredential=Unknown InvalidRepositoryUrl ", "ValidRepositoryURL=False InvalidRepositoryUrl no such host",
	}
	for name, c := range map[string]struct {
		before  []metav1.Condition
		verdict intake.CredentialVerdict
		keep    bool
		want    []string
	}{
		"new":      {nil, intake.CredentialVerdict{}, true, asking},
		"accepted": {nil, intake.CredentialVerdict{Checked: &intake.CheckAnswer{}}, false, good},
		"refused":  {nil, intake.CredentialVerdict{Checked: &intake.CheckAnswer{Problem: bad(v1alpha1.ReasonInvalidCredentials, "not taken")}}, false, refused},
		"refused after it was good": {
			goodBefore(2), intake.CredentialVerdict{Checked: &intake.CheckAnswer{Problem: bad(v1alpha1.ReasonInvalidCredentials, "not taken")}}, false, refused,
		},
		"the Secret is wrong":               {nil, intake.CredentialVerdict{Secret: bad(v1alpha1.ReasonInvalidCredentials, "not taken")}, false, refused},
		"the address is wrong":              {nil, intake.CredentialVerdict{URL: bad(v1alpha1.ReasonInvalidRepositoryURL, "no such host")}, false, wrongURL},
		"both are: the address comes first": {nil, intake.CredentialVerdict{URL: bad(v1alpha1.ReasonInvalidRepositoryURL, "no such host"), Secret: bad(v1alpha1.ReasonInvalidCredentials, "x")}, false, wrongURL},
		"the repository says so":            {nil, intake.CredentialVerdict{Checked: &intake.CheckAnswer{Problem: bad(v1alpha1.ReasonInvalidRepositoryURL, "no such host")}}, false, wrongURL},
		"corrected":                         {badBefore, intake.CredentialVerdict{Checked: &intake.CheckAnswer{}}, false, good},
		"answered before":                   {goodBefore(2), intake.CredentialVerdict{}, true, good},
		"answered for another generation":   {goodBefore(1), intake.CredentialVerdict{}, true, []string{good[0], asking[0], good[2]}},
		"the engine has not got it": {
			goodBefore(2),
			intake.CredentialVerdict{Operation: "no key ring", Checked: &intake.CheckAnswer{}},
			false,
			[]string{"ErrorOccurred=True ErrorOccurred no key ring", good[1], good[2]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cr := repositoryCredential(c.before...)
			before := cr.DeepCopy()
			got := composeCredential(cr, c.verdict, c.keep, tuesday)
			var lines []string
			for _, condition := range got {
				lines = append(lines, line(condition))
			}
			if diff := cmp.Diff(c.want, lines, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, cr); diff != "" {
				t.Errorf("composing changed the CR:\n%s", diff)
			}
			again := composeCredential(repositoryCredential(got...), c.verdict, c.keep, tuesday.AddDate(0, 0, 1))
			if diff := cmp.Diff(got, again); diff != "" {
				t.Errorf("composing twice gives something else:\n%s", diff)
			}
		})
	}
}

// What the engine could not do is no error any more once it can.
func TestACredentialsEngineErrorIsResolved(t *testing.T) {
	t.Parallel()
	cr := repositoryCredential()
	now := tuesday
	for _, v := range []intake.CredentialVerdict{
		{Checked: &intake.CheckAnswer{}}, {Checked: &intake.CheckAnswer{}, Operation: "no key ring"}, {Checked: &intake.CheckAnswer{}},
	} {
		now = now.Add(time.Hour)
		cr.Status.Conditions = composeCredential(cr, v, false, now)
		c := meta.FindStatusCondition(cr.Status.Conditions, string(v1alpha1.ConditionErrorOccurred))
		if want := v.Operation != ""; (c.Status == metav1.ConditionTrue) != want || c.LastTransitionTime.Time != now {
			t.Errorf("with operation %q: %+v", v.Operation, c)
		}
	}
}

func TestShowEnvironment(t *testing.T) {
	t.Parallel()
	cr := &v1alpha1.GitOpsDeploymentManagedEnvironment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "prod", UID: "uid-prod", Generation: 2}}
	c := newCluster(t, cr)
	now := monday
	show := &Environments{Client: c.Status(), Now: func() time.Time { return now }}
	read := func() *v1alpha1.GitOpsDeploymentManagedEnvironment {
		have := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), have); err != nil {
			t.Fatal(err)
		}
		return have
	}
	for _, step := range []struct {
		condition intake.EnvironmentCondition
		want      string
		writes    int
	}{
		{intake.EnvironmentCondition{Reason: intake.ReasonConnecting, Message: "asking x"}, "ConnectionInitializationSucceeded=Unknown Connecting asking x", 1},
		{intake.EnvironmentCondition{Reason: v1alpha1.ReasonUnableToCreateClient, Message: "no"}, "ConnectionInitializationSucceeded=False UnableToCreateClient no", 2},
		// Being asked again hides no answer.
		{intake.EnvironmentCondition{Reason: intake.ReasonConnecting, Message: "asking x"}, "ConnectionInitializationSucceeded=False UnableToCreateClient no", 2},
		{intake.EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded}, "ConnectionInitializationSucceeded=True Succeeded ", 3},
		{intake.EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded}, "ConnectionInitializationSucceeded=True Succeeded ", 3},
	} {
		now = now.Add(time.Hour)
		// Twice, the second time with what the API server has.
		for range 2 {
			if err := show.ShowEnvironment(t.Context(), read(), step.condition); err != nil {
				t.Fatal(err)
			}
		}
		have := read()
		if len(have.Status.Conditions) != 1 || line(have.Status.Conditions[0]) != step.want || have.Status.ObservedGeneration != 2 {
			t.Errorf("%+v shows %+v; want %s", step.condition, have.Status, step.want)
		}
		if c.writes != step.writes {
			t.Errorf("%+v: %d writes; want %d", step.condition, c.writes, step.writes)
		}
	}
	edited := read()
	edited.Generation = 3
	if err := show.ShowEnvironment(t.Context(), edited, intake.EnvironmentCondition{Reason: intake.ReasonConnecting, Message: "asking y"}); err != nil {
		t.Fatal(err)
	}
	if got := line(edited.Status.Conditions[0]); got != "ConnectionInitializationSucceeded=Unknown Connecting asking y" {
		t.Errorf("another generation, being asked, shows %s", got)
	}
}

func TestShowSyncRunWritesTheEndOnce(t *testing.T) {
	t.Parallel()
	cr := syncRun(v1alpha1.GitOpsDeploymentSyncRunStatus{})
	c := newCluster(t, cr)
	show := &SyncRuns{Client: c.Status(), Now: func() time.Time { return tuesday }}
	have := &v1alpha1.GitOpsDeploymentSyncRun{}
	for _, r := range []domain.SyncResult{
		{Phase: domain.SyncSucceeded, StartedAt: monday, FinishedAt: tuesday}, {Phase: domain.SyncFailed, StartedAt: monday, FinishedAt: tuesday},
	} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(cr), have); err != nil {
			t.Fatal(err)
		}
		if err := show.ShowSyncRun(t.Context(), have, syncChain(r, nil), nil); err != nil {
			t.Fatal(err)
		}
	}
	if c.writes != 1 || have.Status.Conditions[0].Status != metav1.ConditionTrue {
		t.Errorf("%d writes, %+v", c.writes, have.Status)
	}
}
