// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Deployments writes the status of GitOpsDeployments.
type Deployments struct {
	Client client.SubResourceWriter
	// Events may be nil.
	Events Recorder
	Now    func() time.Time
}

// Show writes the status that follows from the chain and the verdict, if it
// differs from the one the CR has. domain.ErrConflict means that the CR is not
// what it was when it was read.
func (d *Deployments) Show(ctx context.Context, cr *v1alpha1.GitOpsDeployment, chain *store.Chain, verdict error) error {
	status, err := composeDeployment(cr, chain, verdict, d.Now())
	if err != nil {
		return err
	}
	shown := cr.DeepCopy()
	shown.Status = status
	return write(ctx, d.Client, cr, shown, &cr.Status, &shown.Status, func() {
		tell(d.Events, shown, deploymentHappenings(cr.Status, status, verdict))
		*cr = *shown
	})
}

// composeDeployment is pure: the same CR, rows, verdict and time give the same
// status.
func composeDeployment(cr *v1alpha1.GitOpsDeployment, chain *store.Chain, verdict error, now time.Time) (v1alpha1.GitOpsDeploymentStatus, error) {
	status := *cr.Status.DeepCopy()
	// A generation seen is never taken back, whatever is read late.
	status.ObservedGeneration = max(status.ObservedGeneration, cr.Generation)

	var problems []problem
	if verdict != nil {
		problems = append(problems, problem{v1alpha1.ConditionErrorOccurred, verdict.Error()})
	} else if chain != nil && chain.Operation != nil && chain.Operation.State != domain.OperationCompleted && chain.Operation.Message != "" {
		problems = append(problems, problem{v1alpha1.ConditionErrorOccurred, chain.Operation.Message})
	}
	if chain != nil {
		reported, err := applyState(&status, chain)
		if err != nil {
			return status, err
		}
		problems = append(problems, reported...)
	} else {
		// Without a chain nothing is known of the engine, so what it last said
		// of its conditions stays.
		problems = append(problems, standing(status.Conditions)...)
	}
	status.Conditions = conditions(status.Conditions, problems, now)
	return status, nil
}

// applyState puts in what the engine reported. Before its first report, what
// is not known is said to be unknown.
func applyState(status *v1alpha1.GitOpsDeploymentStatus, chain *store.Chain) ([]problem, error) {
	s := chain.State
	if s == nil {
		*status = v1alpha1.GitOpsDeploymentStatus{
			ObservedGeneration: status.ObservedGeneration,
			Conditions:         status.Conditions,
			Health:             v1alpha1.HealthStatus{Status: v1alpha1.HealthUnknown},
			Sync:               v1alpha1.SyncStatus{Status: v1alpha1.SyncUnknown},
		}
		return nil, nil
	}
	status.Health = v1alpha1.HealthStatus{Status: v1alpha1.HealthStatusCode(s.Health), Message: s.HealthMessage}
	status.Sync = v1alpha1.SyncStatus{Status: v1alpha1.SyncStatusCode(s.Sync), Revision: s.Revision}
	status.ReconciledState = v1alpha1.ReconciledState{
		Source: v1alpha1.ReconciledSource{RepoURL: s.Detail.Source.RepoURL, Path: s.Detail.Source.Path, Branch: s.Detail.Source.Branch},
		Destination: v1alpha1.ReconciledDestination{
			Name:      chain.Application.Spec.Environment,
			Namespace: s.Detail.Destination.Namespace,
		},
	}
	status.Resources, status.OperationState, status.History = nil, nil, nil
	for _, part := range []struct {
		from json.RawMessage
		to   any
	}{
		{s.Detail.Resources, &status.Resources},
		{s.Detail.OperationState, &status.OperationState},
		{s.Detail.History, &status.History},
	} {
		if len(part.from) == 0 {
			continue
		}
		if err := json.Unmarshal(part.from, part.to); err != nil {
			return nil, fmt.Errorf("application_state.detail of %s: %w", s.Application, err)
		}
	}
	var problems []problem
	for _, c := range s.Detail.Conditions {
		problems = append(problems, problem{v1alpha1.ConditionType(c.Type), c.Message})
	}
	return problems, nil
}

// standing gives the engine's conditions that hold, to be carried on.
func standing(have []v1alpha1.Condition) []problem {
	var out []problem
	for _, c := range have {
		if c.Type != v1alpha1.ConditionErrorOccurred && c.Status == "True" {
			out = append(out, problem{c.Type, c.Message})
		}
	}
	return out
}
