// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// committed is an operation row whose CR has not arrived.
func committed(id string, options ...func(*store.Operation)) worldOption {
	return func(w *world) {
		announced(id, options...)(w)
		w.engine.operations = w.engine.operations[:len(w.engine.operations)-1]
	}
}

func (w *world) notice(id domain.OperationID) { w.Notice(domain.ResourceApplication, appID, id) }

// unheeded says how many notices the steps still hold.
func (w *world) unheeded() int {
	n := 0
	for _, ids := range w.notices.waiting {
		n += len(ids)
	}
	return n
}

func TestANoticeIsEnoughAndItsCRIsRemovedWithoutAQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), committed("1"))
	w.notice("1")
	w.mustStep(t)
	expect(t, "path", "deploy", w.path())
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
	expect(t, "notices", 0, w.unheeded())

	crOnly("1")(w)
	w.store.failNext("Task", errors.New("asked the database"))
	w.mustStep(t)
	expect(t, "done", []string{"create deploy", "remove Operation 1"}, w.engine.log)
}

// What is remembered of an operation answers for one arrival: when a hand has
// put it back to waiting, its next CR counts.
func TestAnOperationPutBackToWaitingIsCarriedOutAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), committed("1"))
	w.notice("1")
	w.mustStep(t)
	crOnly("1")(w)
	w.mustStep(t)

	wanting("by-hand")(w)
	op := w.store.operations["1"]
	op.State = domain.OperationWaiting
	w.store.operations["1"] = op
	crOnly("1")(w)
	w.mustStep(t)
	expect(t, "path", "by-hand", w.path())
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

func TestANoticeOfWhatIsDoneDoesNothing(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]worldOption{
		"completed": committed("1", inState(domain.OperationCompleted)),
		"failed":    committed("1", inState(domain.OperationFailed)),
		"collected": func(*world) {},
		"another's": committed("1", func(op *store.Operation) { op.Instance = "engine-2" }),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, wanting("new"), running("old"), option)
			w.notice("1")
			w.mustStep(t)
			expect(t, "done", nil, w.engine.log)
			expect(t, "recorded", nil, w.store.log)
			expect(t, "notices", 0, w.unheeded())
		})
	}
}

func TestANoticeAndItsCRAreOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.notice("1")
	w.notice("1")
	w.store.failNext("Task", nil, errors.New("asked the database twice"))
	w.mustStep(t)
	expect(t, "done", []string{"create deploy", "remove Operation 1"}, w.engine.log)
	expect(t, "recorded", []string{"Completed: "}, w.store.log)
	expect(t, "notices", 0, w.unheeded())
}

// Until its CR comes, the notice is all there is, and must outlive faults.
func TestANoticeOutlivesFaults(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*world){
		"the database is away":           func(w *world) { w.store.failNext("Task", domain.ErrUnavailable) },
		"the API server is away":         func(w *world) { w.engine.failNext("CreateApplication", errors.New("away")) },
		"the end could not be recorded":  func(w *world) { w.store.failNext("Finish", domain.ErrUnavailable) },
		"Operations could not be listed": func(w *world) { w.engine.failNext("Operations", errors.New("away")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, wanting("deploy"), committed("1"))
			w.notice("1")
			fault(w)
			if w.step(t) == nil {
				t.Fatal("the fault went unnoticed")
			}
			w.mustStep(t)
			expect(t, "path", "deploy", w.path())
			expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
		})
	}
}

func TestANoticeAwaitsTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy"), committed("1"))
	w.notice("1")
	w.mustStep(t)
	expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)

	delete(w.engine.applications, appName)
	w.mustStep(t)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

// Notices lost, doubled, late and out of order; CRs likewise: in the end every
// operation has ended, the engine is equal to the row, no CR and no notice is left.
func TestNoticesAndCRsInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		count := rapid.IntRange(1, 4).Draw(rt, "operations")
		for i := range count {
			committed(fmt.Sprint(i))(w)
			if rapid.Bool().Draw(rt, "row is there") {
				wanting(fmt.Sprint("path-", i))(w)
			} else {
				delete(w.store.applications, appID)
			}
			for range rapid.IntRange(0, 3).Draw(rt, "events") {
				id := fmt.Sprint(rapid.IntRange(0, i).Draw(rt, "operation"))
				switch rapid.SampledFrom([]string{"notice", "CR", "step", "finalize"}).Draw(rt, "event") {
				case "notice":
					w.notice(domain.OperationID(id))
				case "CR":
					w.arrive(id)
				case "step":
					w.mustStep(t)
				case "finalize":
					w.finalize()
				}
			}
		}
		for i := range count {
			w.arrive(fmt.Sprint(i))
		}
		for range 3 {
			w.mustStep(t)
			w.finalize()
		}
		w.checkQuiet(rt)
	})
}

// arrive has the CR of an operation arrive, if it is not there.
func (w *world) arrive(id string) {
	for _, have := range w.engine.operations {
		if have.Spec.OperationID == id {
			return
		}
	}
	crOnly(id)(w)
}

// finalize is the engine's part of a deletion.
func (w *world) finalize() {
	if app := w.engine.applications[appName]; app != nil && !app.DeletionTimestamp.IsZero() {
		delete(w.engine.applications, appName)
	}
}

func (w *world) checkQuiet(t *rapid.T) {
	for id, op := range w.store.operations {
		if op.State != domain.OperationCompleted {
			t.Fatalf("operation %s is %s", id, op.State)
		}
	}
	if len(w.engine.operations) > 0 || w.unheeded() > 0 {
		t.Fatalf("%d CRs and %d notices are left", len(w.engine.operations), w.unheeded())
	}
	var want argov1alpha1.ApplicationSpec
	if row, ok := w.store.applications[appID]; ok {
		want = RenderApplication(row, instance).Spec
	}
	var have argov1alpha1.ApplicationSpec
	if app := w.engine.applications[appName]; app != nil {
		have = app.Spec
	}
	if (want.Source == nil) != (have.Source == nil) || (want.Source != nil && want.Source.Path != have.Source.Path) {
		t.Fatalf("the row wants %+v, the engine has %+v", want.Source, have.Source)
	}
}
