// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func testCreate(t *testing.T, w world) {
	w.register(t, engine)
	before := time.Now().Add(-time.Minute)
	a := row(alice, "uid-1")
	a.Spec.SyncOptions = []string{"CreateNamespace=true"}
	c := creating(a)
	got := w.apply(t, c)
	want := []store.Operation{{
		ID: c.Announce[0].ID, Tenant: alice, Instance: engine, ResourceType: domain.ResourceApplication,
		ResourceID: "uid-1", State: domain.OperationWaiting, Version: 1,
	}}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Operation{}, "CreatedOn")); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	if created := got[0].CreatedOn; created.Before(before) || created.After(time.Now().Add(time.Minute)) {
		t.Errorf("created on %s", created)
	}
	a.Version = 1
	same(t, "chain", store.Chain{Link: c.Insert.Link, Application: a, Operation: &got[0]}, w.chain(t, a))
	for _, from := range []string{
		"cluster_user WHERE id = 'alice-uid' AND namespace = 'ns-alice-uid'",
		"managed_environment WHERE id = 'alice-uid' AND tenant = 'alice-uid' AND kind = 'local'",
		"kubernetes_to_db_resource_mapping WHERE kubernetes_resource_uid = 'alice-uid' AND db_relation_type = 'ManagedEnvironment' AND db_relation_key = 'alice-uid'",
		"cluster_access WHERE tenant = 'alice-uid' AND environment_id = 'alice-uid' AND instance_id = 'engine-uid'",
	} {
		if n := w.count(t, from); n != 1 {
			t.Errorf("%d rows in %s, want 1", n, from)
		}
	}
}

func testFurther(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	c := creating(row(alice, "uid-2"))
	c.Tenant = nil
	w.apply(t, c)
	// Bringing the tenant's rows once more is harmless.
	w.create(t, alice, "uid-3")
	if n := w.count(t, "cluster_access"); n != 1 {
		t.Errorf("%d accesses, want 1", n)
	}
	if n := w.count(t, "application"); n != 3 {
		t.Errorf("%d applications, want 3", n)
	}
}

func testUpdate(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	read := w.chain(t, row(alice, "uid-1")).Application
	w.apply(t, updating(read, "b"))
	now := w.chain(t, read).Application
	want := read
	want.Spec, want.Generation, want.Version = spec("b"), 2, 2
	same(t, "application", want, now)

	_, err := w.Store.Apply(t.Context(), updating(read, "c"))
	wantError(t, "an update of an old version", err, domain.ErrConflict)
	same(t, "application after a refused update", want, w.chain(t, read).Application)

	foreign := now
	foreign.Tenant = bob
	_, err = w.Store.Apply(t.Context(), updating(foreign, "d"))
	wantError(t, "an update in another tenant's name", err, domain.ErrConflict)

	gone := now
	gone.ID = "uid-never"
	_, err = w.Store.Apply(t.Context(), updating(gone, "e"))
	wantError(t, "an update of what is not there", err, domain.ErrConflict)
}

func testRemove(t *testing.T, w world) {
	w.register(t, engine)
	a := row(alice, "uid-1")
	o := w.create(t, alice, a.ID)
	w.finish(t, o, domain.OperationCompleted, "")
	if _, err := w.Store.SaveState(t.Context(), domain.ApplicationState{Application: a.ID, Tenant: alice}); err != nil {
		t.Fatal(err)
	}
	w.exec(t, `INSERT INTO application_owner (application_id, tenant) VALUES ('uid-1', 'alice-uid')`)
	w.exec(t, `INSERT INTO sync_operation (id, tenant, application_id, deployment_name, desired_state)
		VALUES ('sync-1', 'alice-uid', 'uid-1', 'd', 'Running')`)

	removing := func(tenant domain.TenantID) store.Change {
		return store.Change{
			Remove: []store.ApplicationRef{{ID: a.ID, Tenant: tenant}}, Announce: announcing(a),
		}
	}
	w.apply(t, removing(bob))
	if n := w.count(t, "application"); n != 1 {
		t.Error("a removal in another tenant's name removed the application")
	}
	announced := w.apply(t, removing(alice))
	for _, table := range []string{
		"application", "application_state", "deployment_to_application_mapping", "application_owner", "sync_operation",
	} {
		if n := w.count(t, table); n != 0 {
			t.Errorf("%d rows left in %s", n, table)
		}
	}
	task, err := w.Store.Task(t.Context(), domain.ResourceApplication, announced[0].ID)
	if err != nil || task.Application != nil {
		t.Errorf("task after removal: %+v, %v; want one without an application", task, err)
	}
	w.apply(t, removing(alice)) // gone already is what is wanted
}

func testRecreate(t *testing.T, w world) {
	w.register(t, engine)
	old := w.create(t, alice, "uid-old")
	w.finish(t, old, domain.OperationFailed, "broken")
	a := row(alice, "uid-new")
	a.Name = "deployment-uid-old"
	c := creating(a)
	chains, err := w.Store.Chains(t.Context(), c.Insert.Link.Namespace, c.Insert.Link.Name)
	if err != nil || len(chains) != 1 || chains[0].Application.ID != "uid-old" {
		t.Fatalf("chains under the name: %+v, %v", chains, err)
	}
	c.Remove = []store.ApplicationRef{{ID: "uid-old", Tenant: alice}}
	c.Announce = append(announcing(row(alice, "uid-old")), c.Announce...)
	announced := w.apply(t, c)
	if len(announced) != 2 || announced[0].ResourceID != "uid-old" || announced[1].ResourceID != "uid-new" {
		t.Errorf("announced %+v, want the old and then the new one", announced)
	}
	chain := w.chain(t, a)
	if chain.Application.ID != "uid-new" || chain.State != nil || chain.Operation.ID != announced[1].ID {
		t.Errorf("the new chain has something of the old one: %+v", chain)
	}
}

func testAtomic(t *testing.T, w world) {
	w.register(t, engine)
	c := creating(row(alice, "uid-1"))
	c.Announce = append(c.Announce, store.NewOperation{
		ID: domain.NewOperationID(), Tenant: alice, Instance: "no-such-engine",
		ResourceType: domain.ResourceApplication, ResourceID: "uid-1",
	})
	log := w.follow(t)
	_, err := w.Store.Apply(t.Context(), c)
	wantError(t, "a decision whose last part is refused", err, domain.ErrMissingParent)
	for _, from := range []string{
		"application", "deployment_to_application_mapping", "operation", "cluster_user WHERE id = 'alice-uid'", "cluster_access",
	} {
		if n := w.count(t, from); n != 0 {
			t.Errorf("%d rows stayed in %s", n, from)
		}
	}
	sameEvents(t, "events of what did not happen", nil, log.news(t))
}

func testForeignReferences(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	w.create(t, alice, "uid-a")
	w.create(t, bob, "uid-b")
	for _, c := range []struct {
		name   string
		change func() store.Change
	}{
		{"an application in another tenant's environment", func() store.Change {
			c := creating(row(alice, "uid-1"))
			c.Insert.Application.Environment = domain.LocalEnvironment(bob)
			return c
		}},
		{"an application on an instance without access", func() store.Change {
			c := creating(row(alice, "uid-1"))
			c.Insert.Application.Instance = "engine-2"
			return c
		}},
		{"an application of an unknown tenant", func() store.Change {
			c := creating(row("nobody", "uid-1"))
			c.Tenant = nil
			return c
		}},
		{"a link to another tenant's application", func() store.Change {
			c := creating(row(alice, "uid-1"))
			c.Insert.Link.Tenant = bob
			return c
		}},
		{"an update into another tenant's environment", func() store.Change {
			a := row(alice, "uid-a")
			a.Version, a.Environment = 1, domain.LocalEnvironment(bob)
			return store.Change{Update: &a}
		}},
		{"an operation on an unknown instance", func() store.Change {
			a := row(alice, "uid-a")
			a.Instance = "nowhere"
			return store.Change{Announce: announcing(a)}
		}},
	} {
		_, err := w.Store.Apply(t.Context(), c.change())
		wantError(t, c.name, err, domain.ErrMissingParent)
	}
}

func testDamagedSpec(t *testing.T, w world) {
	w.register(t, engine)
	o := w.create(t, alice, "uid-1")
	w.exec(t, `UPDATE application SET spec = 'not JSON'`)
	read := w.chain(t, row(alice, "uid-1")).Application
	if !read.Spec.Equal(domain.ApplicationSpec{}) {
		t.Errorf("spec %+v, want an empty one", read.Spec)
	}
	if _, err := w.Store.Task(t.Context(), domain.ResourceApplication, o.ID); err == nil {
		t.Error("the agent was given a task with a damaged spec")
	}
	if _, err := w.Store.Applications(t.Context(), "", "", 10); err == nil {
		t.Error("a damaged spec was listed as if nothing were wrong")
	}
	w.apply(t, updating(read, "b")) // what taking in the CR does
	if task, err := w.Store.Task(t.Context(), domain.ResourceApplication, o.ID); err != nil || !task.Application.Spec.Equal(spec("b")) {
		t.Errorf("task after the repair: %+v, %v", task, err)
	}
}

func testPlacement(t *testing.T, w world) {
	ctx := t.Context()
	_, err := w.Store.Placement(ctx, alice)
	wantError(t, "placement without an instance", err, domain.ErrNotFound)

	w.register(t, "engine-1", "engine-2", "engine-3")
	w.exec(t, `UPDATE gitops_engine_instance SET ready = FALSE WHERE id = 'engine-3'`)
	for i, want := range []domain.InstanceID{"engine-1", "engine-2", "engine-1", "engine-2"} {
		tenant := domain.TenantID(fmt.Sprintf("tenant-%d", i))
		p, err := w.Store.Placement(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "proposal for the next tenant", store.Placement{Instance: want, Namespace: engineNS}, p)
		w.apply(t, store.Change{Tenant: &store.Tenant{ID: tenant, Namespace: "ns", Instance: p.Instance}})
		p, err = w.Store.Placement(ctx, tenant)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "settled placement", store.Placement{Instance: want, Namespace: engineNS, Settled: true}, p)
	}
	w.exec(t, `UPDATE gitops_engine_instance SET ready = FALSE`)
	if p, err := w.Store.Placement(ctx, "tenant-0"); err != nil || p.Instance != "engine-1" || !p.Settled {
		t.Errorf("a settled tenant moved when its instance was not ready: %+v, %v", p, err)
	}
	_, err = w.Store.Placement(ctx, "tenant-new")
	wantError(t, "placement without a ready instance", err, domain.ErrNotFound)
}

// Two backends propose different instances for a tenant's first two deployments.
func testPlacementRace(t *testing.T, w world) {
	w.register(t, "engine-1", "engine-2")
	var (
		wg   sync.WaitGroup
		errs [2]error
	)
	for i, s := range []store.Store{w.Store, w.Another} {
		a := row(alice, id(i))
		a.Instance = []domain.InstanceID{"engine-1", "engine-2"}[i]
		c := creating(a)
		c.Tenant.Instance = a.Instance
		wg.Go(func() { _, errs[i] = s.Apply(t.Context(), c) })
	}
	wg.Wait()
	lost := errs[0]
	if lost == nil {
		lost = errs[1]
	}
	if (errs[0] == nil) == (errs[1] == nil) || !errors.Is(lost, domain.ErrMissingParent) {
		t.Errorf("outcomes %v and %v, want exactly one %v", errs[0], errs[1], domain.ErrMissingParent)
	}
	if n := w.count(t, "cluster_access"); n != 1 {
		t.Errorf("the tenant is on %d instances", n)
	}
}

func testSameDeploymentTwice(t *testing.T, w world) {
	w.register(t, engine)
	const backends = 8
	var (
		wg   sync.WaitGroup
		errs [backends]error
	)
	for i := range backends {
		s := []store.Store{w.Store, w.Another}[i%2]
		wg.Go(func() { _, errs[i] = s.Apply(t.Context(), creating(row(alice, "uid-1"))) })
	}
	wg.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case !errors.Is(err, domain.ErrConflict):
			t.Errorf("lost with %v, want %v", err, domain.ErrConflict)
		}
	}
	if operations := w.count(t, "operation"); won != 1 || operations != 1 {
		t.Errorf("%d won and %d operations are there, want one of each", won, operations)
	}
}
