// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// The three cases of every operation, and what is done in each.
func TestStepMakesTheEngineEqualToTheRow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		options []worldOption
		path    string
		done    []string
	}{
		"the object is missing":       {[]worldOption{wanting("deploy")}, "deploy", []string{"create deploy"}},
		"both are there and equal":    {[]worldOption{wanting("deploy"), running("deploy")}, "deploy", nil},
		"both are there and differ":   {[]worldOption{wanting("new"), running("old")}, "new", []string{"replace old by new"}},
		"the row is gone":             {[]worldOption{running("deploy", withoutFinalizers)}, "", []string{"delete"}},
		"the row and the object gone": {nil, "", []string{"delete"}},
		"only the status differs": {
			[]worldOption{wanting("deploy"), running("deploy", func(a *argov1alpha1.Application) { a.Status.Health.Status = "Degraded" })},
			"deploy", nil,
		},
		"somebody edited it": {
			[]worldOption{wanting("deploy"), running("deploy", func(a *argov1alpha1.Application) { a.Spec.Project = "other" })},
			"deploy",
			[]string{"replace deploy by deploy"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(c.options, announced("1"))...)
			w.mustStep(t)
			expect(t, "path", c.path, w.path())
			expect(t, "done", append(c.done, "remove Operation 1"), w.engine.log)
			recorded := "Completed: "
			if c.path == "" {
				recorded += domain.OperationRemoved
			}
			expect(t, "recorded", []string{recorded}, w.store.log)
			if app := w.engine.applications[appName]; app != nil {
				expect(t, "spec", RenderApplication(w.store.applications[appID], instance).Spec, app.Spec)
			}
		})
	}
}

func TestStepWithoutOperationsDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"))
	w.mustStep(t)
	expect(t, "done", nil, w.engine.log)
}

func TestDeletionAwaitsTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy"), announced("1"))
	for range 2 {
		w.mustStep(t)
		expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
		expect(t, "Operations", 1, len(w.engine.operations))
	}
	expect(t, "recorded, once", []string{"In_Progress: "}, w.store.log)

	delete(w.engine.applications, appName)
	w.mustStep(t)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
	expect(t, "Operations", 0, len(w.engine.operations))
}

// An Application that somebody deleted cannot be called back. Once it is gone,
// it is made again.
func TestATerminatingApplicationIsMadeAgainOnceItIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), running("deploy", terminating), announced("1"))
	w.mustStep(t)
	expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
	expect(t, "done", nil, w.engine.log)

	delete(w.engine.applications, appName)
	w.mustStep(t)
	expect(t, "path", "deploy", w.path())
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

func TestAFinalOperationIsRemovedAndNotRepeated(t *testing.T) {
	t.Parallel()
	for _, state := range []domain.OperationState{domain.OperationCompleted, domain.OperationFailed} {
		w := newWorld(t, wanting("new"), running("old"), announced("1", inState(state)))
		w.mustStep(t)
		expect(t, "done", []string{"remove Operation 1"}, w.engine.log)
		expect(t, "recorded", nil, w.store.log)
		expect(t, "path", "old", w.path())
	}
}

func TestAnOperationWithoutARowIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("new"), running("old"), crOnly("1"))
	w.mustStep(t)
	expect(t, "done", []string{"remove Operation 1"}, w.engine.log)
	expect(t, "path", "old", w.path())
	if !strings.Contains(w.log.String(), "no row") || !strings.Contains(w.log.String(), "operation=1") {
		t.Errorf("the log does not say so:\n%s", w.log)
	}
}

// Anybody who can write into an engine's namespace can make an Operation that
// names another one's row. It is left alone, and said in the log.
func TestAMismatchingOperationIsIgnored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*store.Operation){
		"another instance's":     func(op *store.Operation) { op.Instance = "engine-2" },
		"on another resource":    func(op *store.Operation) { op.ResourceID = "uid-of-a-stranger" },
		"on another kind of row": func(op *store.Operation) { op.ResourceType = domain.ResourceManagedEnvironment },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, running("deploy"), announced("1", change))
			w.mustStep(t)
			expect(t, "done", nil, w.engine.log)
			expect(t, "recorded", nil, w.store.log)
			for _, said := range []string{"level=WARN", "does not match its row", "operation=1"} {
				if !strings.Contains(w.log.String(), said) {
					t.Errorf("the log does not say %q:\n%s", said, w.log)
				}
			}
		})
	}
}

func TestAReusedOperationLooksAgainAndTheLastRowWins(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]worldOption{"created": func(*world) {}, "replaced": running("oldest")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, wanting("old"), first, announced("1"))
			edits := []string{"newer", "newest"}
			w.store.meanwhile = func() {
				if len(edits) > 0 {
					w.store.reuse("1", edits[0])
					edits = edits[1:]
				}
			}
			w.mustStep(t)
			expect(t, "path", "newest", w.path())
			expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
			expect(t, "Operations", 0, len(w.engine.operations))
		})
	}
}

// The row goes while it is being carried out: what was made goes as well.
func TestARowRemovedMeanwhileTakesTheObjectAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.store.meanwhile = func() {
		w.store.meanwhile = nil
		w.store.reuse("1", "")
		delete(w.store.applications, appID)
		withoutFinalizers(w.engine.applications[appName])
	}
	w.mustStep(t)
	expect(t, "path", "", w.path())
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

func TestAnOperationThatIsReusedWithoutEndGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("old"), announced("1"))
	w.store.meanwhile = func() { w.store.reuse("1", w.path()+"+") }
	if err := w.step(t); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
	expect(t, "tries", finishTries, len(w.store.log))
	expect(t, "Operations", 1, len(w.engine.operations))
}

func TestAConflictInTheEngineLooksAgain(t *testing.T) {
	t.Parallel()
	for method, options := range map[string][]worldOption{
		"CreateApplication": {wanting("deploy")},
		"UpdateApplication": {wanting("deploy"), running("old")},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(options, announced("1"))...)
			w.engine.failNext(method, domain.ErrConflict, domain.ErrConflict)
			w.mustStep(t)
			expect(t, "path", "deploy", w.path())
			expect(t, "recorded", []string{"Completed: "}, w.store.log)
		})
	}
}

func TestTwoOperationsOnOneResourceBothComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"), announced("2"))
	w.mustStep(t)
	expect(t, "done", []string{"create deploy", "remove Operation 1", "remove Operation 2"}, w.engine.log)
	for _, id := range []domain.OperationID{"1", "2"} {
		expect(t, "state", domain.OperationCompleted, w.store.operations[id].State)
	}
}

var applications = schema.GroupKind{Group: "argoproj.io", Kind: "Application"}

func TestARefusedOperationFailsWithItsReason(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"invalid":   apierrors.NewInvalid(applications, appName, nil),
		"malformed": apierrors.NewBadRequest("cannot decode"),
		"too large": apierrors.NewRequestEntityTooLargeError("limit is 3 MiB"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, wanting("deploy"), announced("1"))
			w.engine.failNext("CreateApplication", refusal)
			w.mustStep(t)
			expect(t, "state", domain.OperationFailed, w.store.operations["1"].State)
			expect(t, "message", "create Application: "+refusal.Error(), w.store.operations["1"].Message)
			expect(t, "Operations", 0, len(w.engine.operations))
		})
	}
}

func TestAnUnknownResourceTypeFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, announced("1", func(op *store.Operation) { op.ResourceType = domain.ResourceEngineInstance }))
	w.engine.operations[0].Labels[operationv1alpha1.ResourceTypeLabel] = string(domain.ResourceEngineInstance)
	if err := w.Step(t.Context(), domain.ResourceEngineInstance, appID); err != nil {
		t.Fatal(err)
	}
	expect(t, "state", domain.OperationFailed, w.store.operations["1"].State)
	expect(t, "message", "this agent cannot carry out operations on GitOpsEngineInstance", w.store.operations["1"].Message)
}

func TestATransientErrorIsRecordedAndTriedAgain(t *testing.T) {
	t.Parallel()
	away := apierrors.NewServiceUnavailable("etcd has no leader")
	for method, options := range map[string][]worldOption{
		"Application":       {wanting("deploy")},
		"CreateApplication": {wanting("deploy")},
		"UpdateApplication": {wanting("deploy"), running("old")},
		"DeleteApplication": {running("deploy", withoutFinalizers)},
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, append(options, announced("1"))...)
			w.engine.failNext(method, away, away)
			for range 2 {
				if err := w.step(t); !errors.Is(err, away) {
					t.Errorf("got %v; want %v", err, away)
				}
				op := w.store.operations["1"]
				expect(t, "state", domain.OperationInProgress, op.State)
				if !strings.Contains(op.Message, "etcd has no leader") || !strings.HasSuffix(op.Message, "; this will be tried again") {
					t.Errorf("message %q does not say what is wrong and what happens next", op.Message)
				}
			}
			expect(t, "writes for two equal failures", 1, len(w.store.log))
			expect(t, "Operations", 1, len(w.engine.operations))

			w.mustStep(t)
			expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
			if m := w.store.operations["1"].Message; m != "" && m != domain.OperationRemoved {
				t.Errorf("message %q of an operation that succeeded", m)
			}
		})
	}
}

// What went wrong is not hidden by that it could not be written down.
func TestATransientErrorThatCannotBeRecorded(t *testing.T) {
	t.Parallel()
	away := errors.New("no route to host")
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.engine.failNext("CreateApplication", away)
	w.store.failNext("Finish", domain.ErrUnavailable)
	if err := w.step(t); !errors.Is(err, away) || errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want %v", err, away)
	}
	if !strings.Contains(w.log.String(), "cannot record") {
		t.Errorf("the log does not say so:\n%s", w.log)
	}
}

func TestWithoutTheDatabaseNothingIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, running("deploy"), announced("1"))
	w.store.failNext("Task", domain.ErrUnavailable)
	if err := w.step(t); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
	expect(t, "done", nil, w.engine.log)
	expect(t, "path", "deploy", w.path())
}

// Carried out, but not recorded: doing it again changes nothing in the engine.
func TestACrashBeforeTheRecordIsRepeated(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.store.failNext("Finish", domain.ErrUnavailable)
	if err := w.step(t); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
	expect(t, "Operations", 1, len(w.engine.operations))
	w.mustStep(t)
	expect(t, "done", []string{"create deploy", "remove Operation 1"}, w.engine.log)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

// The row was collected while the operation was carried out.
func TestARowThatGoesBeforeTheRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.store.meanwhile = func() { delete(w.store.operations, "1") }
	if err := w.step(t); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("got %v; want not found", err)
	}
	w.mustStep(t)
	expect(t, "Operations", 0, len(w.engine.operations))
}

func TestUnlistableOperations(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	w := newWorld(t, announced("1"))
	w.engine.failNext("Operations", away)
	if err := w.step(t); !errors.Is(err, away) {
		t.Errorf("got %v; want %v", err, away)
	}
	expect(t, "done", nil, w.engine.log)
}

// A notice is carried out at once; the CR that arrives later goes without
// another look at the database.
func TestANoticeIsCarriedOutBeforeItsOperationArrives(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	late := w.engine.operations
	w.engine.operations = nil

	w.Notice(domain.ResourceApplication, appID, "1")
	w.mustStep(t)
	expect(t, "path", "deploy", w.path())
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)

	w.engine.operations = late
	delete(w.store.operations, "1") // Asking for it would be noticed, see below.
	w.mustStep(t)
	expect(t, "Operations", 0, len(w.engine.operations))
	expect(t, "recorded, once", []string{"Completed: "}, w.store.log)
	if n := len(w.notices.waiting); n != 0 {
		t.Errorf("%d notices are still remembered", n)
	}
}

func TestANoticeThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.engine.operations = nil
	w.Notice(domain.ResourceApplication, appID, "1")
	w.engine.failNext("CreateApplication", errors.New("away"))
	if err := w.step(t); err == nil {
		t.Fatal("the step succeeded")
	}
	w.mustStep(t)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

// An operation that is put back to waiting is carried out again, although it
// was finished before.
func TestANoticeOfAFinishedOperationCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.engine.operations = nil
	w.Notice(domain.ResourceApplication, appID, "1")
	w.mustStep(t)
	op := w.store.operations["1"]
	op.State = domain.OperationWaiting
	w.store.operations["1"] = op
	w.Notice(domain.ResourceApplication, appID, "1")
	w.mustStep(t)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
	expect(t, "recorded, twice", []string{"Completed: ", "Completed: "}, w.store.log)
}

func TestLabelsAreRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), running("deploy", func(a *argov1alpha1.Application) { a.Labels = nil }), announced("1"))
	w.mustStep(t)
	if w.engine.applications[appName].Labels[argov1alpha1.TenantLabel] == "" {
		t.Error("an Application without labels counts as equal")
	}
}

// A notice that comes after its operation was carried out by its CR is old news.
func TestALateNoticeCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.mustStep(t)
	delete(w.store.operations, "1") // Asking for it would be logged.
	w.Notice(domain.ResourceApplication, appID, "1")
	w.mustStep(t)
	if strings.Contains(w.log.String(), "has no row") {
		t.Error("the database was asked again")
	}
	w.store.operations["1"] = store.Operation{ID: "1", State: domain.OperationWaiting, Instance: instance.ID, ResourceType: domain.ResourceApplication, ResourceID: appID}
	w.Notice(domain.ResourceApplication, appID, "1")
	w.mustStep(t)
	expect(t, "put back to waiting by hand", domain.OperationCompleted, w.store.operations["1"].State)
}
