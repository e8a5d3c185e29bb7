// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"sync"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// SyncEngine is what syncs need of an engine's namespace. The three requests give
// domain.ErrConflict where the Application has changed since it was read.
type SyncEngine interface {
	Application(ctx context.Context, name string) (*argov1alpha1.Application, error)
	ApplicationsOf(ctx context.Context, t domain.TenantID) ([]argov1alpha1.Application, error)
	RequestSync(ctx context.Context, app *argov1alpha1.Application, op argov1alpha1.Operation) error
	CancelSync(ctx context.Context, app *argov1alpha1.Application) error
	TerminateSync(ctx context.Context, app *argov1alpha1.Application) error
}

// syncOperation brings one sync forward: asks the engine for it when its turn has
// come, and takes in how it goes. An engine does one sync of an Application at a
// time, and the oldest that was asked for is next.
//
// A sync carries its row's id through the engine, so its state is told from that
// of any other, and asking twice is noticed.
func (s *Steps) syncOperation(ctx context.Context, id domain.SyncOperationID, task store.Task) (progress, error) {
	row := task.Sync
	if row == nil {
		return s.endSync(ctx, id, task.Operation.Tenant)
	}
	if row.Result.Phase.Final() {
		return equal, nil
	}
	if err := checkSync(row); err != nil {
		return equal, err
	}
	app, err := s.Engine.Application(ctx, domain.EngineApplicationName(row.Application))
	if err != nil {
		return equal, fmt.Errorf("read Application: %w", err)
	}
	s.waits.add(id, wait{tenant: row.Tenant, app: row.Application})
	if app == nil || !app.DeletionTimestamp.IsZero() {
		return awaiting, nil
	}
	switch turn(id, row, task.EarlierSync, app) {
	case turnRuns:
		return s.followSync(ctx, row, app)
	case turnLost:
		return s.saveSync(ctx, row, domain.SyncResult{
			Phase: domain.SyncError, Message: "its end was not seen: another sync has followed it", Revision: row.Result.Revision,
			Health: string(app.Status.Health.Status), Sync: string(app.Status.Sync.Status), StartedAt: row.Result.StartedAt, FinishedAt: s.now(),
		})
	case turnComes:
		free, err := s.hasRoom(ctx, row)
		if err != nil || !free {
			s.waits.add(id, wait{tenant: row.Tenant, app: row.Application, room: true})
			return awaiting, err
		}
		if err := s.Engine.RequestSync(ctx, app, syncRequest(row, app)); err != nil {
			return equal, fmt.Errorf("request the sync: %w", err)
		}
	case turnLater, turnAsked:
	}
	return awaiting, nil
}

// turns of a sync.
type turns int

const (
	turnLater turns = iota // another one is before it
	turnComes              // it can be asked for
	turnAsked              // the engine has not begun with it
	turnRuns               // the engine is at it, or has ended it
	turnLost               // the engine was at it, and is at another by now
)

// turn says where a sync stands. It is pure.
func turn(id domain.SyncOperationID, row *store.SyncOperation, earlier bool, app *argov1alpha1.Application) turns {
	switch {
	case app.Operation != nil && syncID(*app.Operation) == id:
		return turnAsked
	case app.Status.OperationState != nil && syncID(app.Status.OperationState.Operation) == id:
		return turnRuns
	case !row.Result.StartedAt.IsZero():
		return turnLost
	case earlier || busy(app):
		return turnLater
	default:
		return turnComes
	}
}

func busy(app *argov1alpha1.Application) bool {
	return app.Operation != nil || app.Status.OperationState != nil && !app.Status.OperationState.Phase.Completed()
}

// syncID gives the id that a sync of ours carries; empty for any other.
func syncID(op argov1alpha1.Operation) domain.SyncOperationID {
	for _, i := range op.Info {
		if i.Name == domain.SyncInfo {
			return domain.SyncOperationID(i.Value)
		}
	}
	return ""
}

func syncRequest(row *store.SyncOperation, app *argov1alpha1.Application) argov1alpha1.Operation {
	sync := &argov1alpha1.SyncOperation{Revision: row.Revision, Prune: true}
	if app.Spec.SyncPolicy != nil {
		sync.SyncOptions = app.Spec.SyncPolicy.SyncOptions
	}
	return argov1alpha1.Operation{
		Sync:        sync,
		InitiatedBy: argov1alpha1.OperationInitiator{Username: "GitOpsDeploymentSyncRun"},
		Info:        []argov1alpha1.Info{{Name: domain.SyncInfo, Value: string(row.ID)}},
	}
}

// hasRoom says whether the tenant may have one more sync running.
func (s *Steps) hasRoom(ctx context.Context, row *store.SyncOperation) (bool, error) {
	if row.RunningLimit == 0 {
		return true, nil
	}
	apps, err := s.Engine.ApplicationsOf(ctx, row.Tenant)
	if err != nil {
		return false, fmt.Errorf("list the tenant's Applications: %w", err)
	}
	running := 0
	for i := range apps {
		if busy(&apps[i]) {
			running++
		}
	}
	return running < row.RunningLimit, nil
}

func (s *Steps) followSync(ctx context.Context, row *store.SyncOperation, app *argov1alpha1.Application) (progress, error) {
	state := app.Status.OperationState
	r := domain.SyncResult{
		Phase: domain.SyncRunning, Message: state.Message,
		Health: string(app.Status.Health.Status), Sync: string(app.Status.Sync.Status),
	}
	if state.SyncResult != nil {
		r.Revision = state.SyncResult.Revision
	}
	if state.StartedAt != nil {
		r.StartedAt = state.StartedAt.Time
	} else {
		r.StartedAt = s.now()
	}
	if state.Phase.Completed() {
		r.Phase, r.FinishedAt = domain.SyncPhase(state.Phase), s.now()
		if state.FinishedAt != nil {
			r.FinishedAt = state.FinishedAt.Time
		}
	}
	return s.saveSync(ctx, row, r)
}

func (s *Steps) saveSync(ctx context.Context, row *store.SyncOperation, r domain.SyncResult) (progress, error) {
	if !sameResult(row.Result, r) {
		if err := s.Syncs.SaveSyncResult(ctx, row.ID, r); err != nil {
			return equal, err
		}
	}
	if r.Phase.Final() {
		return equal, nil
	}
	return awaiting, nil
}

// sameResult compares what tenants see. Times go by the second, as an engine's do.
func sameResult(a, b domain.SyncResult) bool {
	sameTimes := a.StartedAt.Unix() == b.StartedAt.Unix() && a.FinishedAt.Unix() == b.FinishedAt.Unix()
	a.StartedAt, a.FinishedAt = b.StartedAt, b.FinishedAt
	return sameTimes && a == b
}

// endSync sees to it that an engine does not go on with a sync whose row is gone:
// what has not begun is taken back, what runs is terminated.
func (s *Steps) endSync(ctx context.Context, id domain.SyncOperationID, t domain.TenantID) (progress, error) {
	apps, err := s.Engine.ApplicationsOf(ctx, t)
	if err != nil {
		return equal, fmt.Errorf("list the tenant's Applications: %w", err)
	}
	for i := range apps {
		app, state := &apps[i], apps[i].Status.OperationState
		switch {
		case app.Operation != nil && syncID(*app.Operation) == id:
			if err := s.Engine.CancelSync(ctx, app); err != nil {
				return equal, fmt.Errorf("take the sync back: %w", err)
			}
		case state == nil || syncID(state.Operation) != id || state.Phase.Completed():
			continue
		case state.Phase != argov1alpha1.OperationTerminating:
			if err := s.Engine.TerminateSync(ctx, app); err != nil {
				return equal, fmt.Errorf("terminate the sync: %w", err)
			}
		}
	}
	return removed, nil
}

// waits knows which syncs wait for an Application to change. It is filled by the
// steps themselves, so it is complete once each has run after a start.
type waits struct {
	mu    sync.Mutex
	syncs map[domain.SyncOperationID]wait
}

// wait is what a sync waits for: a change of its own Application, or, where the
// tenant has too many running, of any.
type wait struct {
	tenant domain.TenantID
	app    domain.ApplicationID
	room   bool
}

func (w *waits) add(id domain.SyncOperationID, what wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.syncs == nil {
		w.syncs = make(map[domain.SyncOperationID]wait)
	}
	w.syncs[id] = what
}

func (w *waits) remove(id domain.SyncOperationID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.syncs, id)
}

// SyncWaits says whether a sync has been looked at and is not over.
func (s *Steps) SyncWaits(id domain.SyncOperationID) bool {
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	_, waits := s.waits.syncs[id]
	return waits
}

// SyncsOf lists a tenant's syncs that wait for a change of an Application: this
// one, or any; an empty one stands for all. Syncs that wait are few.
func (s *Steps) SyncsOf(t domain.TenantID, app domain.ApplicationID) []domain.SyncOperationID {
	s.waits.mu.Lock()
	defer s.waits.mu.Unlock()
	var ids []domain.SyncOperationID
	for id, w := range s.waits.syncs {
		if w.tenant == t && (app == "" || w.app == app || w.room) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}
