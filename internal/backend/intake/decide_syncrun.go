// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// syncRunFacts is all that the decision about one name looks at.
type syncRunFacts struct {
	// cr is nil where there is no CR under the name.
	cr          *v1alpha1.GitOpsDeploymentSyncRun
	tenant      domain.TenantID
	terminating bool
	quotas      Quotas

	chains []store.SyncChain
	// deployment is the chain of the GitOpsDeployment that the CR names, nil where
	// there is none.
	deployment *store.Chain

	now   time.Time
	ttl   time.Duration
	newID func() domain.OperationID
}

// syncRunDecision is what follows from the facts.
type syncRunDecision struct {
	change *store.Change
	// chain is the CR's own chain once the change is written, nil where it has none.
	chain   *store.SyncChain
	verdict error
	// expired says that the CR has stayed its time; otherwise it will have after
	// stays, where that is set.
	expired bool
	stays   time.Duration
}

// decideSyncRun says what the rows under one name should be. It is pure.
func decideSyncRun(f syncRunFacts) syncRunDecision {
	var own *store.SyncChain
	var change store.Change
	for i, c := range f.chains {
		if f.cr != nil && c.Link.UID == string(f.cr.UID) && c.Link.Tenant == f.tenant {
			own = &f.chains[i]
			continue
		}
		removeSyncRun(&change, c, f.newID)
	}
	switch {
	case f.cr == nil:
		return syncRunDecision{change: orNil(change)}
	case !f.cr.DeletionTimestamp.IsZero():
		if own != nil {
			removeSyncRun(&change, *own, f.newID)
		}
		return syncRunDecision{change: orNil(change)}
	case hasEnded(f.cr, own):
		return decideEnded(f, own, change)
	case own != nil && own.Sync == nil:
		// The row went with its application, by another hand than ours: the link to
		// it would keep the run waiting for ever.
		removeSyncRun(&change, *own, f.newID)
		return syncRunDecision{change: &change, verdict: errDeploymentGone}
	case own != nil:
		return decideOngoing(f, own, change)
	default:
		return decideNewRun(f, change)
	}
}

// removeSyncRun removes a chain. What an engine may be at is ended by an
// operation; what is over, or has gone with its deployment, needs none.
func removeSyncRun(change *store.Change, c store.SyncChain, newID func() domain.OperationID) {
	change.RemoveSyncs = append(change.RemoveSyncs, store.SyncRef{ID: domain.SyncOperationID(c.Link.UID), Tenant: c.Link.Tenant})
	if c.Sync == nil || c.Sync.Result.Phase.Final() || c.Operation == nil {
		return
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: newID(), Tenant: c.Link.Tenant, Instance: c.Operation.Instance,
		ResourceType: domain.ResourceSyncOperation, ResourceID: c.Link.UID,
	})
}

func hasEnded(cr *v1alpha1.GitOpsDeploymentSyncRun, own *store.SyncChain) bool {
	return cr.Status.FinishedAt != nil || own != nil && own.Sync != nil && own.Sync.Result.Phase.Final()
}

// decideEnded lets a run that is over stay for its time.
func decideEnded(f syncRunFacts, own *store.SyncChain, change store.Change) syncRunDecision {
	d := syncRunDecision{change: orNil(change), chain: own}
	var ended time.Time
	if f.cr.Status.FinishedAt != nil {
		ended = f.cr.Status.FinishedAt.Time
	} else {
		ended = own.Sync.Result.FinishedAt
	}
	d.stays = ended.Add(timeToLive(f.cr, f.ttl)).Sub(f.now)
	d.expired = d.stays <= 0 && f.cr.Status.FinishedAt != nil
	return d
}

// timeToLive is the run's own, or the service's where it has none or one that is
// no duration.
func timeToLive(cr *v1alpha1.GitOpsDeploymentSyncRun, standard time.Duration) time.Duration {
	if own, err := time.ParseDuration(cr.Annotations[v1alpha1.TTLAnnotation]); err == nil && own >= 0 {
		return own
	}
	return standard
}

// decideOngoing follows a run that was taken in.
func decideOngoing(f syncRunFacts, own *store.SyncChain, change store.Change) syncRunDecision {
	d := syncRunDecision{change: orNil(change), chain: own}
	if s := own.Sync; s.Deployment != f.cr.Spec.GitopsDeploymentName || s.Revision != f.cr.Spec.RevisionID {
		d.verdict = &domain.Refusal{Field: "spec", Problem: "is immutable, and was changed after the run was taken in", Remedy: "create another GitOpsDeploymentSyncRun instead"}
	}
	return d
}

func decideNewRun(f syncRunFacts, change store.Change) syncRunDecision {
	d := syncRunDecision{change: orNil(change)}
	switch {
	case f.cr.Status.StartedAt != nil:
		d.verdict = errDeploymentGone
	case f.terminating:
		d.verdict = &domain.Waiting{For: "its namespace, which is being deleted"}
	case domain.CheckRevision("spec.revisionID", f.cr.Spec.RevisionID) != nil:
		d.verdict = domain.CheckRevision("spec.revisionID", f.cr.Spec.RevisionID)
	case f.deployment == nil:
		d.verdict = &domain.Waiting{For: "GitOpsDeployment " + f.cr.Spec.GitopsDeploymentName + ", which is not there or not taken in yet"}
	}
	if d.verdict != nil {
		return d
	}
	app := f.deployment.Application
	link := store.CRLink{Kind: store.KindSyncRun, UID: string(f.cr.UID), Tenant: f.tenant, Namespace: f.cr.Namespace, Name: f.cr.Name}
	sync := store.SyncOperation{
		ID: domain.SyncOperationID(f.cr.UID), Tenant: f.tenant, Application: app.ID,
		Deployment: f.cr.Spec.GitopsDeploymentName, Revision: f.cr.Spec.RevisionID, RunningLimit: max(1, f.quotas.RunningSyncs),
	}
	change.InsertSync = &store.NewSync{Sync: sync, Link: link}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: f.newID(), Tenant: f.tenant, Instance: app.Instance,
		ResourceType: domain.ResourceSyncOperation, ResourceID: string(sync.ID),
	})
	return syncRunDecision{change: &change, chain: &store.SyncChain{Link: link, Sync: &sync}}
}

// errDeploymentGone ends a run whose deployment was removed under it. It is not
// begun again for another deployment of that name.
var errDeploymentGone = &domain.Ended{Why: "its GitOpsDeployment was removed while it ran"}
