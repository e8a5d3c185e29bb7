// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"testing"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// A cache lags behind. Rows go only for what the API server itself confirms.
func TestRemovalIsConfirmedByTheAPIServer(t *testing.T) {
	t.Parallel()
	a := deployment("a")
	old := deployment("a", withUID("uid-old"))
	for name, c := range map[string]struct {
		cached, live *v1alpha1.GitOpsDeployment
		rows         []store.Chain
		want         []string
	}{
		"deleted":                                     {nil, nil, []store.Chain{chainOf(a)}, nil},
		"the cache has not seen it yet":               {nil, a, []store.Chain{chainOf(a)}, []string{"uid-a"}},
		"the cache still shows an earlier UID":        {old, a, []store.Chain{chainOf(a)}, []string{"uid-a"}},
		"the cache still shows one that is gone":      {old, nil, []store.Chain{chainOf(a)}, nil},
		"recreated":                                   {a, a, []store.Chain{chainOf(old)}, []string{"uid-a"}},
		"recreated, which the cache has not seen":     {nil, a, []store.Chain{chainOf(old)}, []string{"uid-a"}},
		"recreated, and both are in the database":     {a, a, []store.Chain{chainOf(old), chainOf(a)}, []string{"uid-a"}},
		"a stale cache, and both are in the database": {old, a, []store.Chain{chainOf(old), chainOf(a)}, []string{"uid-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld().has(c.rows...)
			w.cluster.cached["a"], w.cluster.live["a"] = c.cached, c.live
			w.mustStep(t, "a")

			expect(t, "applications", c.want, w.uids("a"))
			expect(t, "confirmations", 1, w.cluster.count("DeploymentNow"))
		})
	}
}

func TestAnUnconfirmedRemovalRemovesNothing(t *testing.T) {
	t.Parallel()
	away := errors.New("API server is away")
	w := newWorld().has(chainOf(deployment("a")))
	w.cluster.failNext("DeploymentNow", away)
	if err := w.step(t, "a"); !errors.Is(err, away) {
		t.Errorf("got %v; want %v", err, away)
	}
	expect(t, "applications", []string{"uid-a"}, w.uids("a"))
	expect(t, "changes", 0, len(w.store.changes))
}

func TestRecreationIsOneTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a")).has(chainOf(deployment("a", withUID("uid-old"))))
	w.mustStep(t, "a")

	expect(t, "changes", 1, len(w.store.changes))
	expect(t, "removed", []store.ApplicationRef{{ID: "uid-old", Tenant: tenantA}}, w.store.changes[0].Remove)
	expect(t, "announced", []domain.OperationID{"op-1", "op-2"}, w.outbox.announced)
	if got := w.status.last(t); got.UID != "uid-a" || got.Chain.State != nil || got.Chain.Operation.ResourceID != "uid-a" {
		t.Errorf("the new deployment is shown %+v", got)
	}
}

func TestARecreatedNamespaceInheritsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a")).has(chainOf(deployment("a", withUID("uid-old")), ofTenant(tenantB)))
	w.mustStep(t, "a")

	expect(t, "applications", []string{"uid-a"}, w.uids("a"))
	expect(t, "owner of the new one", tenantA, w.store.find("uid-a").Application.Tenant)
	expect(t, "owner of the operation on the old one", tenantB, w.store.operations["uid-old"][0].Tenant)
}

func TestDeletionWithFinalizerWaitsForTheEngine(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")
	w.store.end("uid-a", domain.OperationCompleted)
	w.cluster.set("a", deployment("a", beingDeleted()))

	for _, state := range []domain.OperationState{domain.OperationWaiting, domain.OperationInProgress} {
		w.mustStep(t, "a")
		expect(t, "applications", nil, w.uids("a"))
		expect(t, "shown", shown{UID: "uid-a", Verdict: waitForResources()}, w.status.last(t))
		expect(t, "released", 0, w.cluster.count("Release"))
		expect(t, "operations", 2, len(w.store.operations["uid-a"]))
		w.store.end("uid-a", state)
	}
	w.store.end("uid-a", domain.OperationCompleted)
	w.mustStep(t, "a")
	expect(t, "released", 1, w.cluster.count("Release"))

	w.mustStep(t, "a")
	expect(t, "changes", 2, len(w.store.changes))
}

// The rows may have gone before anybody could wait for the engine, and the
// backend restarted since. What was deployed is gone only after one more look.
func TestDeletionWithFinalizerAfterTheRowsWent(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", beingDeleted()))
	w.store.access[tenantA] = engineID
	w.mustStep(t, "a")
	expect(t, "announced", []domain.OperationID{"op-1"}, w.outbox.announced)
	expect(t, "released", 0, w.cluster.count("Release"))

	w.restarted().mustStep(t, "a")
	expect(t, "operations while one waits", 1, len(w.store.operations["uid-a"]))

	w.store.end("uid-a", domain.OperationCompleted)
	w.mustStep(t, "a")
	expect(t, "released", 1, w.cluster.count("Release"))
}

func TestDeletionOfWhatWasNeverDeployed(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", withPath(""), beingDeleted()))
	w.mustStep(t, "a")
	expect(t, "released", 1, w.cluster.count("Release"))
	expect(t, "changes", 0, len(w.store.changes))
}

func TestAConflictWhileReleasingReadsAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", beingDeleted()))
	w.cluster.failNext("Release", domain.ErrConflict)
	w.mustStep(t, "a")
	expect(t, "tries to release", 2, w.cluster.count("Release"))
}

// Create and delete under one name, again and again: each works, none inherits.
func TestTheSameNameThreeTimes(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, uid := range []string{"uid-1", "uid-2", "uid-3"} {
		w.cluster.set("a", deployment("a", withUID(uid)))
		w.mustStep(t, "a")
		expect(t, "applications", []string{uid}, w.uids("a"))
		if chain := w.status.last(t).Chain; chain.State != nil || string(chain.Application.ID) != uid {
			t.Errorf("%s is shown %+v", uid, chain)
		}
		w.store.find(domain.ApplicationID(uid)).State = &domain.ApplicationState{Application: domain.ApplicationID(uid), Health: "Healthy"}
		w.store.end(uid, domain.OperationCompleted)

		w.cluster.set("a", nil)
		w.mustStep(t, "a")
		expect(t, "applications after deletion", nil, w.uids("a"))
		expect(t, "operations of "+uid, 2, len(w.store.operations[uid]))
	}
}

// All of a namespace's CRs go with it, and so do their rows, although the
// namespace cannot be read any more.
func TestRowsOfAnAbsentNamespaceGo(t *testing.T) {
	t.Parallel()
	w := newWorld().has(chainOf(deployment("a")))
	w.cluster.namespaces = map[string]kube.Namespace{}
	w.mustStep(t, "a")
	expect(t, "applications", nil, w.uids("a"))
	expect(t, "announced", []domain.OperationID{"op-1"}, w.outbox.announced)
}
