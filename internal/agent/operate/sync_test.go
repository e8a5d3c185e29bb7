// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

const syncRow = "5e2f7a30-0c6e-4c43-8f6e-1c2f9d1f2b10"

// announcedOn is an operation row on a resource of any type, with its CR.
func announcedOn(kind domain.ResourceType, resource, id string) worldOption {
	return func(w *world) {
		w.store.operations[domain.OperationID(id)] = store.Operation{
			ID: domain.OperationID(id), Tenant: "tenant-a", Instance: instance.ID,
			ResourceType: kind, ResourceID: resource, State: domain.OperationWaiting, Version: 1,
		}
		w.engine.operations = append(w.engine.operations, operationv1alpha1.Operation{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: instance.Namespace, Name: "operation-" + id,
				Labels: map[string]string{operationv1alpha1.ResourceTypeLabel: string(kind), operationv1alpha1.ResourceLabel: resource},
			},
			Spec: operationv1alpha1.OperationSpec{OperationID: id},
		})
	}
}

// syncing is the row of a sync to revision v1, with its operation.
func syncing(options ...func(*store.SyncOperation)) worldOption {
	return func(w *world) {
		row := store.SyncOperation{ID: syncRow, Tenant: "tenant-a", Application: appID, Deployment: "shop", Revision: "v1", RunningLimit: 2}
		for _, o := range options {
			o(&row)
		}
		w.store.syncs[syncRow] = row
		announcedOn(domain.ResourceSyncOperation, syncRow, "1")(w)
	}
}

// asked is an operation of an engine that carries the id of a sync.
func asked(id string) argov1alpha1.Operation {
	return argov1alpha1.Operation{Sync: &argov1alpha1.SyncOperation{Revision: "v1"}, Info: []argov1alpha1.Info{{Name: "other", Value: id + "x"}, {Name: domain.SyncInfo, Value: id}}}
}

func inPhase(id string, phase argov1alpha1.OperationPhase) *argov1alpha1.OperationState {
	started := metav1.NewTime(time.Unix(50, 0))
	s := &argov1alpha1.OperationState{Operation: asked(id), Phase: phase, Message: "message", StartedAt: &started, SyncResult: &argov1alpha1.SyncOperationResult{Revision: "4f0c"}}
	if phase.Completed() {
		finished := metav1.NewTime(time.Unix(60, 0))
		s.FinishedAt = &finished
	}
	return s
}

func (w *world) stepSync(t *testing.T) {
	t.Helper()
	if err := w.Step(t.Context(), domain.ResourceSyncOperation, syncRow); err != nil {
		t.Fatal(err)
	}
}

func (w *world) app() *argov1alpha1.Application { return w.engine.applications[appName] }

func TestTurn(t *testing.T) {
	t.Parallel()
	other := asked("another")
	mine := asked(syncRow)
	begun := store.SyncOperation{ID: syncRow, Result: domain.SyncResult{StartedAt: time.Unix(1, 0)}}
	for name, c := range map[string]struct {
		row       store.SyncOperation
		earlier   bool
		requested *argov1alpha1.Operation
		state     *argov1alpha1.OperationState
		want      turns
	}{
		"idle":                                 {want: turnComes},
		"idle after another":                   {state: inPhase("another", argov1alpha1.OperationSucceeded), want: turnComes},
		"idle, but another is before it":       {earlier: true, want: turnLater},
		"another runs":                         {state: inPhase("another", argov1alpha1.OperationRunning), want: turnLater},
		"another is being ended":               {state: inPhase("another", argov1alpha1.OperationTerminating), want: turnLater},
		"another was asked for":                {requested: &other, want: turnLater},
		"an automated one was asked for":       {requested: &argov1alpha1.Operation{}, want: turnLater},
		"asked for":                            {requested: &mine, want: turnAsked},
		"asked for, with an earlier one there": {requested: &mine, state: inPhase("another", argov1alpha1.OperationSucceeded), earlier: true, want: turnAsked},
		"runs":                                 {state: inPhase(syncRow, argov1alpha1.OperationRunning), want: turnRuns},
		"ended":                                {row: begun, state: inPhase(syncRow, argov1alpha1.OperationFailed), want: turnRuns},
		"ended, and another was asked for":     {row: begun, requested: &other, state: inPhase(syncRow, argov1alpha1.OperationFailed), want: turnRuns},
		"was begun, and another runs":          {row: begun, state: inPhase("another", argov1alpha1.OperationRunning), want: turnLost},
		"was begun, and nothing is known":      {row: begun, want: turnLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := &argov1alpha1.Application{Operation: c.requested, Status: argov1alpha1.ApplicationStatus{OperationState: c.state}}
			expect(t, "turn", c.want, turn(syncRow, &c.row, c.earlier, app))
		})
	}
}

func TestSameResult(t *testing.T) {
	t.Parallel()
	base := domain.SyncResult{Phase: domain.SyncRunning, Message: "m", Revision: "r", Health: "h", Sync: "s", StartedAt: time.Unix(10, 0)}
	with := func(change func(*domain.SyncResult)) domain.SyncResult {
		r := base
		change(&r)
		return r
	}
	for name, c := range map[string]struct {
		other domain.SyncResult
		same  bool
	}{
		"itself":               {base, true},
		"another zone":         {with(func(r *domain.SyncResult) { r.StartedAt = r.StartedAt.UTC() }), true},
		"within the second":    {with(func(r *domain.SyncResult) { r.StartedAt = r.StartedAt.Add(time.Millisecond) }), true},
		"another second":       {with(func(r *domain.SyncResult) { r.StartedAt = r.StartedAt.Add(time.Second) }), false},
		"an end":               {with(func(r *domain.SyncResult) { r.FinishedAt = time.Unix(20, 0) }), false},
		"another phase":        {with(func(r *domain.SyncResult) { r.Phase = domain.SyncFailed }), false},
		"another message":      {with(func(r *domain.SyncResult) { r.Message = "" }), false},
		"another revision":     {with(func(r *domain.SyncResult) { r.Revision = "" }), false},
		"another health":       {with(func(r *domain.SyncResult) { r.Health = "" }), false},
		"another sync":         {with(func(r *domain.SyncResult) { r.Sync = "" }), false},
		"nothing known so far": {domain.SyncResult{}, false},
	} {
		expect(t, name, c.same, sameResult(base, c.other))
		expect(t, name+", the other way", c.same, sameResult(c.other, base))
	}
}

func TestASyncFromItsRequestToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy", func(app *argov1alpha1.Application) {
		app.Spec.SyncPolicy = &argov1alpha1.SyncPolicy{SyncOptions: []string{"PruneLast=true"}}
		app.Status.Health.Status, app.Status.Sync.Status = "Healthy", "Synced"
	}), syncing())
	w.stepSync(t)
	want := argov1alpha1.Operation{
		Sync:        &argov1alpha1.SyncOperation{Revision: "v1", Prune: true, SyncOptions: []string{"PruneLast=true"}},
		InitiatedBy: argov1alpha1.OperationInitiator{Username: "GitOpsDeploymentSyncRun"},
		Info:        []argov1alpha1.Info{{Name: "managedgitops.io/sync-operation", Value: syncRow}},
	}
	if diff := cmp.Diff(want, *w.app().Operation); diff != "" {
		t.Errorf("requested (-want +got):\n%s", diff)
	}
	expect(t, "waits", []domain.SyncOperationID{syncRow}, w.SyncsOf("tenant-a", ""))
	expect(t, "of another tenant", nil, w.SyncsOf("tenant-b", ""))
	w.stepSync(t)
	expect(t, "requests", []string{"request sync to v1"}, w.engine.log)

	w.app().Operation, w.app().Status.OperationState = nil, inPhase(syncRow, argov1alpha1.OperationRunning)
	for range 2 {
		w.stepSync(t)
	}
	w.app().Status.OperationState = inPhase(syncRow, argov1alpha1.OperationSucceeded)
	w.stepSync(t)
	expect(t, "recorded", []string{"In_Progress: ", syncRow + " Running: message", syncRow + " Succeeded: message", "Completed: "}, w.store.log)
	expect(t, "result", domain.SyncResult{
		Phase: domain.SyncSucceeded, Message: "message", Revision: "4f0c", Health: "Healthy", Sync: "Synced",
		StartedAt: time.Unix(50, 0), FinishedAt: time.Unix(60, 0),
	}, w.store.syncs[syncRow].Result)
	expect(t, "Operations", 0, len(w.engine.operations))
	expect(t, "waits", nil, w.SyncsOf("tenant-a", ""))
}

func TestASyncWaits(t *testing.T) {
	t.Parallel()
	another := func(name string) worldOption {
		return func(w *world) {
			app := RenderApplication(application(), instance)
			app.Name, app.Status.OperationState = name, inPhase("another", argov1alpha1.OperationRunning)
			w.engine.applications[name] = app
		}
	}
	for name, options := range map[string][]worldOption{
		"for its Application":            {syncing()},
		"for one that goes to come back": {running("deploy", terminating), syncing()},
		"for an earlier sync":            {running("deploy"), syncing(), func(w *world) { w.store.earlier = true }},
		"for room": {
			running("deploy"), another("x"), another("y"), syncing(),
		},
		"for another's end": {running("deploy", func(app *argov1alpha1.Application) {
			app.Status.OperationState = inPhase("another", argov1alpha1.OperationRunning)
		}), syncing()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, options...)
			w.stepSync(t)
			expect(t, "requests", nil, w.engine.log)
			expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
			expect(t, "is to be looked at when an Application changes", []domain.SyncOperationID{syncRow}, w.SyncsOf("tenant-a", ""))
		})
	}
	w := newWorld(t, running("deploy"), another("x"), syncing())
	w.stepSync(t)
	expect(t, "requests where there is room", []string{"request sync to v1"}, w.engine.log)
	w = newWorld(t, running("deploy"), another("x"), another("y"), syncing(func(s *store.SyncOperation) { s.RunningLimit = 0 }))
	w.stepSync(t)
	expect(t, "requests without a limit", []string{"request sync to v1"}, w.engine.log)
}

func TestASyncWhoseEndWasNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy", func(app *argov1alpha1.Application) {
		app.Status.OperationState = inPhase("another", argov1alpha1.OperationRunning)
	}), syncing(func(s *store.SyncOperation) {
		s.Result = domain.SyncResult{Phase: domain.SyncRunning, Revision: "4f0c", StartedAt: time.Unix(50, 0)}
	}))
	w.stepSync(t)
	expect(t, "result", domain.SyncResult{
		Phase: domain.SyncError, Message: "its end was not seen: another sync has followed it", Revision: "4f0c",
		StartedAt: time.Unix(50, 0), FinishedAt: time.Unix(100, 0),
	}, w.store.syncs[syncRow].Result)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

func TestAConflictWhileRequestingASyncLooksAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy"), syncing())
	w.engine.failNext("RequestSync", domain.ErrConflict)
	w.stepSync(t)
	expect(t, "requests", []string{"request sync to v1", "request sync to v1"}, w.engine.log)
	expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
}

func TestASyncWithoutARowIsEnded(t *testing.T) {
	t.Parallel()
	request := asked(syncRow)
	for name, c := range map[string]struct {
		app   func(*argov1alpha1.Application)
		ended []string
	}{
		"not begun": {func(app *argov1alpha1.Application) { app.Operation = &request }, []string{"cancel sync"}},
		"runs": {func(app *argov1alpha1.Application) {
			app.Status.OperationState = inPhase(syncRow, argov1alpha1.OperationRunning)
		}, []string{"terminate sync"}},
		"is being terminated": {func(app *argov1alpha1.Application) {
			app.Status.OperationState = inPhase(syncRow, argov1alpha1.OperationTerminating)
		}, nil},
		"over": {func(app *argov1alpha1.Application) {
			app.Status.OperationState = inPhase(syncRow, argov1alpha1.OperationSucceeded)
		}, nil},
		"another runs": {func(app *argov1alpha1.Application) {
			app.Status.OperationState = inPhase("another", argov1alpha1.OperationRunning)
		}, nil},
		"nothing runs": {func(*argov1alpha1.Application) {}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, running("deploy", c.app), announcedOn(domain.ResourceSyncOperation, syncRow, "1"))
			w.stepSync(t)
			expect(t, "done", append(c.ended, "remove Operation 1"), w.engine.log)
			expect(t, "recorded", []string{"Completed: removed"}, w.store.log)
		})
	}
	w := newWorld(t, running("deploy", func(app *argov1alpha1.Application) { app.Operation = &request }), announcedOn(domain.ResourceSyncOperation, syncRow, "1"))
	away := errors.New("away")
	w.engine.failNext("CancelSync", away)
	if err := w.Step(t.Context(), domain.ResourceSyncOperation, syncRow); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
}

func TestAnotherTenantsSyncsAreLeftAlone(t *testing.T) {
	t.Parallel()
	request := asked(syncRow)
	w := newWorld(t, running("deploy", func(app *argov1alpha1.Application) {
		app.Labels[argov1alpha1.TenantLabel], app.Operation = "tenant-b", &request
	}), announcedOn(domain.ResourceSyncOperation, syncRow, "1"))
	w.stepSync(t)
	expect(t, "done", []string{"remove Operation 1"}, w.engine.log)
}
