// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// SyncRuns writes the status of GitOpsDeploymentSyncRuns.
type SyncRuns struct {
	Client client.SubResourceWriter
	// Events may be nil.
	Events Recorder
	Now    func() time.Time
}

// ShowSyncRun writes the status that follows from the chain and the verdict, if it
// differs from the one the CR has. A run that has ended is never written again.
func (s *SyncRuns) ShowSyncRun(ctx context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun, chain *store.SyncChain, verdict error) error {
	shown := cr.DeepCopy()
	shown.Status = composeSyncRun(cr, chain, verdict, s.Now())
	return write(ctx, s.Client, cr, shown, &cr.Status, &shown.Status, func() {
		tell(s.Events, shown, syncRunHappenings(cr.Status, shown.Status, verdict))
		*cr = *shown
	})
}

// composeSyncRun is pure.
func composeSyncRun(cr *v1alpha1.GitOpsDeploymentSyncRun, chain *store.SyncChain, verdict error, now time.Time) v1alpha1.GitOpsDeploymentSyncRunStatus {
	status := *cr.Status.DeepCopy()
	if status.FinishedAt != nil {
		return status
	}
	status.ObservedGeneration = max(status.ObservedGeneration, cr.Generation)
	var problems []problem
	if verdict != nil {
		problems = append(problems, problem{v1alpha1.ConditionErrorOccurred, verdict.Error()})
	}
	var ended *domain.Ended
	if errors.As(verdict, &ended) {
		at := metav1.NewTime(now)
		status.FinishedAt = &at
		status.Conditions = setCondition(conditions(status.Conditions, problems, now), succeeded(metav1.ConditionFalse, "Error", ended.Why), now)
		return status
	}
	if chain != nil && chain.Sync != nil {
		r := chain.Sync.Result
		status.Health, status.SyncStatus, status.Revision = v1alpha1.HealthStatusCode(r.Health), v1alpha1.SyncStatusCode(r.Sync), r.Revision
		status.StartedAt, status.FinishedAt = timeOrNil(r.StartedAt), timeOrNil(r.FinishedAt)
		if op := chain.Operation; op != nil && op.State != domain.OperationCompleted && op.Message != "" && !r.Phase.Final() {
			problems = append(problems, problem{v1alpha1.ConditionErrorOccurred, op.Message})
		}
		if r.Phase == domain.SyncFailed || r.Phase == domain.SyncError {
			problems = append(problems, problem{v1alpha1.ConditionErrorOccurred, orElse(r.Message, "the sync did not succeed")})
		}
		status.Conditions = setCondition(conditions(status.Conditions, problems, now), outcome(r), now)
		return status
	}
	status.Conditions = conditions(status.Conditions, problems, now)
	return status
}

// outcome is the condition Succeeded for a sync that has gone so far.
func outcome(r domain.SyncResult) v1alpha1.Condition {
	switch r.Phase {
	case domain.SyncSucceeded:
		return succeeded(metav1.ConditionTrue, v1alpha1.ReasonSucceeded, r.Message)
	case domain.SyncFailed, domain.SyncError:
		return succeeded(metav1.ConditionFalse, v1alpha1.ConditionReason(r.Phase), orElse(r.Message, "the sync did not succeed"))
	case domain.SyncRunning:
		return succeeded(metav1.ConditionUnknown, "Running", r.Message)
	default:
		return succeeded(metav1.ConditionUnknown, "Waiting", "waits for its turn")
	}
}

func succeeded(s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string) v1alpha1.Condition {
	return v1alpha1.Condition{Type: v1alpha1.ConditionSucceeded, Status: s, Reason: r, Message: message}
}

// setCondition puts one condition among others, with its times.
func setCondition(all []v1alpha1.Condition, want v1alpha1.Condition, at time.Time) []v1alpha1.Condition {
	all = slices.Clone(all)
	i := slices.IndexFunc(all, func(c v1alpha1.Condition) bool { return c.Type >= want.Type })
	if i < 0 {
		i = len(all)
	}
	if i == len(all) || all[i].Type != want.Type {
		all = slices.Insert(all, i, v1alpha1.Condition{Type: want.Type})
	}
	all[i] = changed(all[i], want.Status, want.Reason, want.Message, at)
	return all
}

func timeOrNil(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	m := metav1.NewTime(t).Rfc3339Copy()
	return &m
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
