// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/apply"
	"github.com/weir-gitops/weir/internal/engine/plan"
)

// syncs are the syncs that run, one for an application at most.
type syncs struct {
	ctx     context.Context //nolint:containedctx // a sync outlives the step that begins it
	timeout time.Duration
	wait    sync.WaitGroup

	mu  sync.Mutex
	all map[types.UID]context.CancelFunc
}

func (s *syncs) running(app types.UID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all[app] != nil
}

// stop asks a sync to end.
func (s *syncs) stop(app types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.all[app]; cancel != nil {
		cancel()
	}
}

// start runs a sync, unless the application has one.
func (s *syncs) start(app types.UID, work func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[app] != nil || s.ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.timeout)
	if s.all == nil {
		s.all = map[types.UID]context.CancelFunc{}
	}
	s.all[app] = cancel
	s.wait.Go(func() {
		defer func() {
			cancel()
			s.mu.Lock()
			delete(s.all, app)
			s.mu.Unlock()
		}()
		work(ctx)
	})
}

// begin writes down that a sync runs, and runs it. Whoever else takes the same
// request up finds it gone.
func (e *Engine) begin(ctx context.Context, app *argo.Application, op argo.Operation) error {
	now := metav1.Now()
	state := argo.OperationState{Operation: op, Phase: argo.OperationRunning, Message: "started", StartedAt: &now, RetryCount: op.Retry.Limit}
	if err := e.patch(ctx, app, map[string]any{
		"metadata":  map[string]any{"resourceVersion": app.ResourceVersion},
		"operation": nil,
		"status":    map[string]any{"operationState": replaced(state)},
	}); err != nil {
		return err
	}
	e.run(app, state) //nolint:contextcheck // a sync outlives the step that begins it
	return nil
}

// run runs a sync beside the queue.
func (e *Engine) run(app *argo.Application, state argo.OperationState) {
	app = app.DeepCopy()
	e.syncs.start(app.UID, func(ctx context.Context) {
		phase, message, result := e.sync(ctx, app, state)
		if e.syncs.ctx.Err() != nil {
			// The engine stops: the next one takes the sync up.
			return
		}
		// Its own context may have ended: that is one way for a sync to end.
		done, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
		defer cancel()
		if err := e.end(done, app, state, phase, message, result); err != nil && !errors.Is(err, context.Canceled) {
			e.options.Log.ErrorContext(done, "cannot write the end of a sync", "application", app.Name, "error", err)
		}
		e.options.Log.InfoContext(done, "synced", "application", app.Name, "phase", phase, "message", message)
	})
}

// sync compares, plans and applies.
func (e *Engine) sync(ctx context.Context, app *argo.Application, state argo.OperationState) (argo.OperationPhase, string, *argo.SyncOperationResult) {
	request := state.Operation.Sync
	if request == nil {
		return argo.OperationError, "the operation asks for nothing", nil
	}
	revision := request.Revision
	if revision == "" {
		revision = app.Spec.Source.TargetRevision
	}
	result := &argo.SyncOperationResult{Source: app.Spec.Source}
	c, err := e.compare(ctx, app, revision, true)
	if err != nil {
		return ended(ctx, argo.OperationError), err.Error(), result
	}
	result.Revision = c.revision
	options := plan.Options{
		RunID: string(app.UID) + state.StartedAt.UTC().Format(time.RFC3339), Namespace: app.Spec.Destination.Namespace,
		Prune: request.Prune, InSync: c.inSync,
	}
	if policy := app.Spec.SyncPolicy; policy != nil && policy.Automated != nil {
		options.AllowEmpty = policy.Automated.AllowEmpty
	}
	if err := options.AddSyncOptions(request.SyncOptions); err != nil {
		return argo.OperationError, err.Error(), result
	}
	for _, r := range request.Resources {
		options.Resources = append(options.Resources, plan.Key{Group: r.Group, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name})
	}
	p, err := plan.Build(c.desired, c.live, options)
	if err != nil {
		return argo.OperationError, err.Error(), result
	}
	cluster := &apply.Cluster{Client: c.to.client, Mapper: c.to.mapper, Health: e.options.Health, Manager: fieldManager}
	outcome, err := cluster.Run(ctx, p, nil)
	for _, r := range outcome.Results {
		result.Resources = append(result.Resources, argo.ResourceResult{
			Group: r.Key.Group, Kind: r.Key.Kind, Namespace: r.Key.Namespace, Name: r.Key.Name,
			Status: r.Status, Message: r.Message, SyncPhase: string(r.Phase), HookPhase: r.Hook,
		})
	}
	if err != nil {
		return ended(ctx, outcome.Phase), outcome.Message, result
	}
	return outcome.Phase, outcome.Message, result
}

// ended tells a sync that somebody ended from one that could not be done.
func ended(ctx context.Context, otherwise argo.OperationPhase) argo.OperationPhase {
	if errors.Is(ctx.Err(), context.Canceled) {
		return argo.OperationFailed
	}
	return otherwise
}

// historyLimit is how many deployments an Application's history keeps by default.
const historyLimit = 10

// end writes down how a sync has ended, and has the application compared.
func (e *Engine) end(ctx context.Context, app *argo.Application, state argo.OperationState, phase argo.OperationPhase, message string, result *argo.SyncOperationResult) error {
	now := metav1.Now()
	state.Phase, state.Message, state.FinishedAt, state.SyncResult = phase, message, &now, result
	status := map[string]any{"operationState": replaced(state)}
	if phase == argo.OperationSucceeded {
		latest := &argo.Application{}
		if err := e.client.Get(ctx, client.ObjectKeyFromObject(app), latest); err != nil {
			return client.IgnoreNotFound(err)
		}
		status["history"] = history(latest.Status.History, app, state)
	}
	if err := client.IgnoreNotFound(e.patch(ctx, app, map[string]any{"status": status})); err != nil {
		return err
	}
	e.enqueue(app.Name)
	return nil
}

// history adds a deployment, and forgets the oldest. It is pure.
func history(before []argo.RevisionHistory, app *argo.Application, state argo.OperationState) []argo.RevisionHistory {
	id := int64(0)
	if n := len(before); n > 0 {
		id = before[n-1].ID + 1
	}
	after := append(slices.Clone(before), argo.RevisionHistory{
		ID: id, Revision: state.SyncResult.Revision, Source: app.Spec.Source,
		DeployStartedAt: state.StartedAt, DeployedAt: state.FinishedAt, InitiatedBy: state.Operation.InitiatedBy,
	})
	limit := historyLimit
	if app.Spec.RevisionHistoryLimit != nil {
		limit = int(max(0, *app.Spec.RevisionHistoryLimit))
	}
	return after[max(0, len(after)-limit):]
}
