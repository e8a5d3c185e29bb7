// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"github.com/google/uuid"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// Record gives the entry in the history for the deployment that an Application's
// status says has ended; false where none has. It is pure, and gives the same
// entry however often the same end is seen.
func Record(app *argov1alpha1.Application) (domain.DeploymentRecord, bool) {
	state := app.Status.OperationState
	if state == nil || !state.Phase.Completed() || state.StartedAt == nil || state.FinishedAt == nil {
		return domain.DeploymentRecord{}, false
	}
	id := app.Labels[argov1alpha1.ApplicationLabel]
	r := domain.DeploymentRecord{
		ID:          uuid.NewSHA1(uuid.NameSpaceURL, []byte(string(app.UID)+"/"+state.StartedAt.UTC().String()+"/"+syncOf(state.Operation))).String(),
		Application: domain.ApplicationID(id),
		Tenant:      domain.TenantID(app.Labels[argov1alpha1.TenantLabel]),
		Trigger:     trigger(state.Operation),
		Result:      domain.SyncPhase(state.Phase),
		Message:     state.Message,
		Started:     state.StartedAt.Time,
		// An engine's clock may go back; a history that ends before it begins may not.
		Finished: later(state.FinishedAt.Time, state.StartedAt.Time),
	}
	if state.SyncResult != nil {
		r.Revision = state.SyncResult.Revision
		for _, result := range state.SyncResult.Resources {
			if result.Status == argov1alpha1.ResultSynced || result.Status == argov1alpha1.ResultPruned {
				r.Resources++
			}
		}
	}
	return r, true
}

// trigger says what made the engine deploy.
func trigger(op argov1alpha1.Operation) string {
	switch {
	case op.InitiatedBy.Automated:
		return "automated"
	case syncOf(op) != "":
		return "GitOpsDeploymentSyncRun " + syncOf(op)
	case op.InitiatedBy.Username != "":
		return op.InitiatedBy.Username
	default:
		return "unknown"
	}
}

func syncOf(op argov1alpha1.Operation) string {
	for _, i := range op.Info {
		if i.Name == domain.SyncInfo {
			return i.Value
		}
	}
	return ""
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
