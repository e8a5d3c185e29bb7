// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
)

// waitingForDatabase is what tenants read while the database is away.
func waitingForDatabase() error {
	return &domain.Waiting{For: "the service's database, which does not answer"}
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestStepTakesANewDeploymentIn(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")

	expect(t, "applications", []string{"uid-a"}, w.uids("a"))
	expect(t, "announced", []domain.OperationID{"op-1"}, w.outbox.announced)
	expect(t, "tenant's engine", map[domain.TenantID]domain.InstanceID{tenantA: engineID}, w.store.access)
	chain := written(row("deploy", 1))
	chain.Operation = operation("op-1", "uid-a", domain.OperationWaiting)
	expect(t, "shown", shown{UID: "uid-a", Chain: chain}, w.status.last(t))
}

func TestStepOnAnUnchangedDeploymentWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")
	w.store.end("uid-a", domain.OperationCompleted)
	w.mustStep(t, "a")

	expect(t, "changes", 1, len(w.store.changes))
	expect(t, "announced", []domain.OperationID{"op-1"}, w.outbox.announced)
	expect(t, "confirmations at the API server", 0, w.cluster.count("DeploymentNow"))
}

func TestStepReusesTheOperationThatWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")
	w.cluster.set("a", deployment("a", withPath("other")))
	w.mustStep(t, "a")

	expect(t, "path in the database", "other", w.store.find("uid-a").Application.Spec.Path)
	expect(t, "operations", 1, len(w.store.operations["uid-a"]))
	expect(t, "version of the operation", int64(2), w.store.operations["uid-a"][0].Version)
}

func TestStepShowsARefusalAndIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", withPath("")))
	w.mustStep(t, "a")

	expect(t, "changes", 0, len(w.store.changes))
	expect(t, "shown", shown{UID: "uid-a", Verdict: refusedPath()}, w.status.last(t))
}

func TestStepInATerminatingNamespaceAddsNoRows(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.cluster.namespaces[team] = kube.Namespace{Name: team, UID: tenantA, Terminating: true}
	w.mustStep(t, "a")
	expect(t, "changes", 0, len(w.store.changes))
}

func TestStepWithoutANamespaceWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	delete(w.cluster.namespaces, team)
	if err := w.step(t, "a"); !errors.Is(err, domain.ErrNotFound) {
		t.Errorf("got %v; want it to say that the namespace is not found", err)
	}
	expect(t, "changes", 0, len(w.store.changes))
}

func TestConflictReadsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", withPath("new"))).has(chainOf(deployment("a")))
	w.store.meanwhile = func() {
		row := &w.store.find("uid-a").Application
		row.Spec.Path, row.Version = "by somebody else", row.Version+1
	}
	w.mustStep(t, "a")

	expect(t, "reads of the chain", 2, w.store.count("Chains"))
	expect(t, "path in the database", "new", w.store.find("uid-a").Application.Spec.Path)
	expect(t, "announced", 1, len(w.outbox.announced))
}

// Two processes take the same CR in at once: one row, and no error.
func TestTheSlowerOfTwoProcessesFindsTheWorkDone(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.store.meanwhile = func() { w.has(chainOf(deployment("a"), withOperation("theirs", domain.OperationWaiting))) }
	w.mustStep(t, "a")

	expect(t, "applications", []string{"uid-a"}, w.uids("a"))
	expect(t, "changes of ours", 0, len(w.store.changes))
}

func TestConflictWithoutEndGoesBackToTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	for range decideTries + 1 {
		w.store.failNext("Apply", domain.ErrConflict)
	}
	if err := w.step(t, "a"); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
	expect(t, "tries", decideTries, w.store.count("Apply"))
	expect(t, "shown to the tenant", 0, len(w.status.shown))
}

func TestMissingParentForgetsThePlacementAndAsksAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(*fakeStore)
		want      map[domain.TenantID]domain.InstanceID
	}{
		"the tenant was moved":      {func(s *fakeStore) { s.access[tenantA] = "engine-2" }, map[domain.TenantID]domain.InstanceID{tenantA: "engine-2"}},
		"the database was restored": {func(s *fakeStore) { delete(s.access, tenantA); s.ready = "engine-3" }, map[domain.TenantID]domain.InstanceID{tenantA: "engine-3"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(deployment("a"), deployment("b"), deployment("c"))
			w.mustStep(t, "a")
			c.meanwhile(w.store)
			asked := w.store.count("Placement")
			w.mustStep(t, "b")

			expect(t, "questions where the tenant goes", asked+1, w.store.count("Placement"))
			expect(t, "instance of the row", c.want[tenantA], w.store.find("uid-b").Application.Instance)
			expect(t, "access", c.want, w.store.access)

			w.mustStep(t, "c")
			expect(t, "questions for the next deployment", asked+1, w.store.count("Placement"))
		})
	}
}

func TestAKnownTenantCostsNoQuestion(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"), deployment("b"))
	w.mustStep(t, "a")
	w.mustStep(t, "b")
	expect(t, "questions where the tenant goes", 1, w.store.count("Placement"))
}

func TestNoEngineIsShownAndWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.store.ready = ""
	var waiting *domain.Waiting
	if err := w.step(t, "a"); !errors.As(err, &waiting) {
		t.Fatalf("got %v; want a Waiting", err)
	}
	expect(t, "shown", shown{UID: "uid-a", Verdict: &domain.Waiting{For: "a GitOps engine: none is registered and ready"}}, w.status.last(t))

	w.store.ready = engineID
	w.mustStep(t, "a")
	expect(t, "applications once there is one", []string{"uid-a"}, w.uids("a"))
}

func TestUnavailableDatabaseIsShownAndTriedAgain(t *testing.T) {
	t.Parallel()
	away := errors.Join(errors.New("connection refused"), domain.ErrUnavailable)
	for method, w := range map[string]*world{
		"Chains":          newWorld(deployment("a")),
		"Placement":       newWorld(deployment("a")),
		"Apply":           newWorld(deployment("a")),
		"LatestOperation": newWorld(deployment("a", beingDeleted())),
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			w.store.failNext(method, away)
			if err := w.step(t, "a"); !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("got %v; want it to say that the database is unavailable", err)
			}
			expect(t, "shown", []shown{{UID: "uid-a", Verdict: waitingForDatabase()}}, w.status.shown)
			expect(t, "tries", 1, w.store.count(method))
			expect(t, "changes", 0, len(w.store.changes))
			w.mustStep(t, "a")
		})
	}
}

// What cannot be shown either is said in the log, and hides nothing.
func TestUnavailableDatabaseAndNoStatus(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		logged bool
	}{
		"the CR has changed":         {domain.ErrConflict, false},
		"the API server is away too": {errors.New("no route to host"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(deployment("a"))
			w.store.failNext("Chains", domain.ErrUnavailable)
			w.status.failNext("Show", c.err)
			if err := w.step(t, "a"); !errors.Is(err, domain.ErrUnavailable) || errors.Is(err, c.err) {
				t.Errorf("got %v; want the database's error alone", err)
			}
			expect(t, "logged", c.logged, w.log.Len() > 0)
		})
	}
}

// Other errors are no news for a tenant: they are retried, not shown.
func TestAnInternalErrorIsNotShown(t *testing.T) {
	t.Parallel()
	broken := errors.New("syntax error at or near SELECT")
	w := newWorld(deployment("a"))
	w.store.failNext("Apply", broken)
	if err := w.step(t, "a"); !errors.Is(err, broken) {
		t.Errorf("got %v; want %v", err, broken)
	}
	expect(t, "shown to the tenant", 0, len(w.status.shown))
}

func TestACrashBeforeTheAnnouncementIsMadeGoodByTheNextStep(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(*world){
		"the Operation could not be created":   func(w *world) { w.outbox.failNext("Announce", errors.New("API server is away")) },
		"committed, but the reply was lost":    func(w *world) { w.store.replyLost = domain.ErrUnavailable },
		"the status could not be written then": func(w *world) { w.status.failNext("Show", errors.New("API server is away")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(deployment("a"))
			fault(w)
			if w.step(t, "a") == nil {
				t.Fatal("the fault went unnoticed")
			}
			w.restarted().mustStep(t, "a")

			expect(t, "changes", 1, len(w.store.changes))
			expect(t, "operations", 1, len(w.store.operations["uid-a"]))
			if last := w.outbox.announced[len(w.outbox.announced)-1]; last != "op-1" {
				t.Errorf("announced %s; want the operation that was committed", last)
			}
			if w.status.last(t).Verdict != nil {
				t.Errorf("still shows %v", w.status.last(t).Verdict)
			}
		})
	}
}

func TestAStatusConflictReadsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.status.failNext("Show", domain.ErrConflict)
	w.mustStep(t, "a")
	expect(t, "reads of the CR", 2, w.cluster.count("Deployment"))
	expect(t, "changes", 1, len(w.store.changes))
	expect(t, "shown", 1, len(w.status.shown))
}
