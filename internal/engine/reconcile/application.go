// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

func sameSpec(a, b *argo.Application) bool { return equality.Semantic.DeepEqual(a.Spec, b.Spec) }

// reconcile looks at one Application: ends it, brings its sync forward, compares
// it, and begins a sync where one is due.
func (e *Engine) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	app := &argo.Application{}
	if err := e.client.Get(ctx, request.NamespacedName, app); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !app.DeletionTimestamp.IsZero() {
		e.syncs.stop(app.UID)
		e.commits.forget(app.UID)
		return e.finalize(ctx, app)
	}
	if begun, err := e.bringForward(ctx, app); begun || err != nil {
		return retry(err)
	}
	_, refresh := app.Annotations[argo.RefreshAnnotation]
	compared, err := e.compare(ctx, app, app.Spec.Source.TargetRevision, refresh)
	var wrong *problem
	if err != nil && !errors.As(err, &wrong) {
		return reconcile.Result{}, err
	}
	if err := e.writeComparison(ctx, app, compared, wrong); err != nil {
		return retry(err)
	}
	if compared == nil || e.syncs.running(app.UID) {
		return reconcile.Result{RequeueAfter: e.options.Refresh}, nil
	}
	op, wait := automated(app, compared, time.Now())
	if op != nil {
		return retry(e.begin(ctx, app, *op))
	}
	if wait == 0 || wait > e.options.Refresh {
		wait = e.options.Refresh
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// soon is when to look again after somebody else was faster.
const soon = 100 * time.Millisecond

// retry makes a lost race a reason to look again, not an error.
func retry(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: soon}, nil
	}
	return reconcile.Result{}, client.IgnoreNotFound(err)
}

// bringForward begins the sync that an Application asks for, ends the one that is
// to end, and takes up again the one that an earlier engine was at.
func (e *Engine) bringForward(ctx context.Context, app *argo.Application) (begun bool, err error) {
	state := app.Status.OperationState
	running := e.syncs.running(app.UID)
	switch {
	case running && phaseOf(app) == argo.OperationTerminating:
		e.syncs.stop(app.UID)
	case running:
	case phaseOf(app) == argo.OperationTerminating:
		return true, e.end(ctx, app, *state, argo.OperationFailed, "terminated", nil)
	case phaseOf(app) == argo.OperationRunning:
		e.run(app, *state) //nolint:contextcheck // a sync outlives the step that begins it
	case app.Operation != nil:
		return true, e.begin(ctx, app, *app.Operation)
	}
	return false, nil
}

const (
	firstRetry = 5 * time.Second
	lastRetry  = 3 * time.Minute
)

// automated decides whether an automated application is to be synced now, or when
// to look again because the last attempt at the same commit has failed. It is pure.
func automated(app *argo.Application, c *comparison, now time.Time) (*argo.Operation, time.Duration) {
	policy := app.Spec.SyncPolicy
	if policy == nil || policy.Automated == nil || policy.Automated.Enabled != nil && !*policy.Automated.Enabled || syncCode(c) != argo.SyncStatusOutOfSync {
		return nil, 0
	}
	if !slices.ContainsFunc(c.resources, func(r argo.ResourceStatus) bool {
		return r.Status == argo.SyncStatusOutOfSync && (!r.RequiresPruning || policy.Automated.Prune)
	}) {
		return nil, 0
	}
	attempts := int64(0)
	if last := app.Status.OperationState; last != nil && last.SyncResult != nil && last.SyncResult.Revision == c.revision &&
		equality.Semantic.DeepEqual(last.SyncResult.Source, app.Spec.Source) {
		if last.Phase == argo.OperationSucceeded && !policy.Automated.SelfHeal {
			return nil, 0
		}
		if last.Phase != argo.OperationSucceeded && last.FinishedAt != nil {
			attempts = last.RetryCount + 1
			wait := min(firstRetry<<min(last.RetryCount, 10), lastRetry)
			if left := last.FinishedAt.Add(wait).Sub(now); left > 0 {
				return nil, left
			}
		}
	}
	return &argo.Operation{
		Sync:        &argo.SyncOperation{Revision: c.revision, Prune: policy.Automated.Prune, SyncOptions: policy.SyncOptions},
		InitiatedBy: argo.OperationInitiator{Automated: true},
		Retry:       argo.RetryStrategy{Limit: attempts},
	}, 0
}

func syncCode(c *comparison) argo.SyncStatusCode {
	if slices.ContainsFunc(c.resources, func(r argo.ResourceStatus) bool { return r.Status == argo.SyncStatusOutOfSync }) {
		return argo.SyncStatusOutOfSync
	}
	return argo.SyncStatusSynced
}
