// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func remote(tenant domain.TenantID, id domain.EnvironmentID) store.Environment {
	return store.Environment{
		ID: id, Tenant: tenant, Name: "prod", AllowAutomated: true,
		Credentials: &store.ClusterCredentials{
			Host: "https://cluster.example.org", SealedAccess: []byte{0, 0xff, 's'}, KeyID: "key-1",
			Namespaces: []string{"one", "two"}, ClusterResources: true, ServiceAccount: "kube-system/weir", TokenExpires: at(30),
		},
	}
}

// putting is the decision to take in an environment.
func putting(e store.Environment, name string) store.Change {
	return store.Change{
		Tenant: tenantRows(e.Tenant),
		PutEnvironment: &store.PutEnvironment{
			Environment: e, Instance: engine, Link: crLink(store.KindEnvironment, e.Tenant, string(e.ID), name),
		},
		Announce: on(e.Tenant, domain.ResourceManagedEnvironment, string(e.ID)),
	}
}

// environmentAt is the environment as it is read, or decided on, at a version.
func environmentAt(e store.Environment, version int64) store.Environment {
	c := *e.Credentials
	c.Version = version
	e.Credentials = &c
	return e
}

func (w world) environmentChains(t *testing.T, namespace, name string) []store.EnvironmentChain {
	t.Helper()
	chains, err := w.Another.EnvironmentChains(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// isEnvironment compares what is read of an environment by its id.
func (w world) isEnvironment(t *testing.T, when string, want store.Environment) {
	t.Helper()
	got, err := w.Store.Environment(t.Context(), want.Tenant, want.ID)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	same(t, when, want, got)
}

func testEnvironment(t *testing.T, w world) {
	w.register(t, engine)
	e := remote(alice, "env-1")
	c := putting(e, "prod")
	o := w.apply(t, c)
	e = environmentAt(e, 1)
	w.isEnvironment(t, "as put", e)
	same(t, "chain", []store.EnvironmentChain{{Link: c.PutEnvironment.Link, Environment: &e, Operation: &o[0]}},
		w.environmentChains(t, "ns-alice-uid", "prod"))
	same(t, "task", store.Task{Operation: o[0], Environment: &e}, w.task(t, o[0]))
	for _, place := range [][2]string{{"ns-alice-uid", "none"}, {"ns-bob-uid", "prod"}} {
		if chains := w.environmentChains(t, place[0], place[1]); len(chains) != 0 {
			t.Errorf("chains of %v: %+v", place, chains)
		}
	}

	// Everything that can be replaced, also by nothing.
	next := store.Environment{ID: "env-1", Tenant: alice, Name: "production", Credentials: &store.ClusterCredentials{
		Host: "https://other.example.org", SealedAccess: []byte("anew"), KeyID: "key-2", Version: 1,
	}}
	reused := w.apply(t, putting(next, "prod"))
	if reused[0].ID != o[0].ID || reused[0].Version != 2 {
		t.Errorf("announced %+v, want the waiting one", reused)
	}
	w.isEnvironment(t, "as replaced", environmentAt(next, 2))
	next.Credentials = &store.ClusterCredentials{Host: "https://open.example.org", Version: 2}
	reused = w.apply(t, putting(next, "prod"))
	w.isEnvironment(t, "with nothing sealed, so without a key", environmentAt(next, 3))
	w.holds(t, "after the puts", map[string]int{
		"cluster_credentials": 1, "managed_environment WHERE kind = 'remote'": 1, "api_cr_to_database_mapping": 1,
		"cluster_access WHERE environment_id = 'env-1' AND instance_id = 'engine-uid'": 1,
	})

	for range 2 { // the second time it is gone already
		w.apply(t, store.Change{RemoveEnvironments: []store.EnvironmentRef{{ID: "env-1", Tenant: alice}}})
		w.holds(t, "after the removal", map[string]int{
			"cluster_credentials": 0, "managed_environment WHERE kind = 'remote'": 0, "managed_environment": 1,
			"api_cr_to_database_mapping": 0, "cluster_access WHERE environment_id = 'env-1'": 0,
		})
	}
	_, err := w.Store.Environment(t.Context(), alice, "env-1")
	wantError(t, "an environment that is gone", err, domain.ErrNotFound)
	same(t, "task of an environment that is gone", store.Task{Operation: reused[0]}, w.task(t, o[0]))
}

func testForeignEnvironment(t *testing.T, w world) {
	w.register(t, engine)
	mine := remote(alice, "env-a")
	w.apply(t, putting(mine, "prod"))
	w.create(t, bob, "uid-b")
	mine = environmentAt(mine, 1)
	for what, key := range map[string]store.EnvironmentRef{
		"another tenant's environment": {ID: "env-a", Tenant: bob},
		"the tenant's own namespace":   {ID: domain.LocalEnvironment(alice), Tenant: alice},
		"another tenant's namespace":   {ID: domain.LocalEnvironment(alice), Tenant: bob},
	} {
		_, err := w.Store.Environment(t.Context(), key.Tenant, key.ID)
		wantError(t, "reading "+what, err, domain.ErrNotFound)
		for version := range int64(3) {
			_, err = w.Store.Apply(t.Context(), putting(environmentAt(remote(key.Tenant, key.ID), version), "prod"))
			wantError(t, "overwriting "+what, err, domain.ErrConflict)
		}
	}
	unchanged := map[string]int{
		"cluster_credentials": 1, "managed_environment WHERE kind = 'remote'": 1, "managed_environment WHERE kind = 'local'": 2,
		"api_cr_to_database_mapping": 1, "operation WHERE resource_type = 'ManagedEnvironment'": 1,
	}
	w.holds(t, "after all were refused", unchanged)
	w.apply(t, store.Change{
		RemoveEnvironments: []store.EnvironmentRef{{ID: "env-a", Tenant: bob}, {ID: domain.LocalEnvironment(alice), Tenant: alice}},
		LeavesEnvironment:  bob,
	})
	w.holds(t, "after removals of what is not one's own environment", unchanged)
	w.isEnvironment(t, "after all of it", mine)

	c := putting(remote(bob, "env-b"), "prod")
	c.PutEnvironment.Instance = "no-such-engine"
	_, err := w.Store.Apply(t.Context(), c)
	wantError(t, "an environment on an unknown instance", err, domain.ErrMissingParent)
	w.holds(t, "after that", unchanged)
}

// testStaleEnvironment: a decision that was made on another version than the
// present one is refused with all that belongs to it.
func testStaleEnvironment(t *testing.T, w world) {
	w.register(t, engine)
	e := remote(alice, "env-1")
	w.apply(t, putting(e, "prod"))
	w.apply(t, putting(environmentAt(e, 1), "prod"))
	log := w.follow(t)
	before := map[string]int{
		"application": 0, "operation": 1, "cluster_user": 2, "api_cr_to_database_mapping": 1, "cluster_credentials": 1,
		"managed_environment WHERE kind = 'remote'": 1, "repository_credentials": 0,
	}
	refused := func(what string, e store.Environment) {
		t.Helper()
		c := creating(row(bob, "uid-b"))
		c.PutEnvironment = putting(e, "prod").PutEnvironment
		c.PutEnvironment.Environment.Name, c.PutEnvironment.Environment.Credentials.Host = "other", "https://other"
		c.PutCredential = storing(repository(alice, "cred-1"), "n").PutCredential
		_, err := w.Store.Apply(t.Context(), c)
		wantError(t, what, err, domain.ErrConflict)
	}
	for _, stale := range []int64{0, 1, 3} {
		refused("a put of a stale version", environmentAt(e, stale))
		w.isEnvironment(t, "after a refused put", environmentAt(e, 2))
		w.holds(t, "after a refused put", before)
	}
	refused("a put of what has gone meanwhile", environmentAt(remote(alice, "env-gone"), 4))
	w.holds(t, "after a refused put", before)
	sameEvents(t, "events of what did not happen", nil, log.news(t))
}

// testAbandonedEnvironment: while a deployment points to an environment whose CR
// is gone, the row stays; it goes when the last deployment has left.
func testAbandonedEnvironment(t *testing.T, w world) {
	w.register(t, engine)
	for _, e := range []store.Environment{remote(alice, "env-1"), remote(alice, "env-kept"), remote(bob, "env-b")} {
		w.apply(t, putting(e, string(e.ID)))
	}
	for _, a := range []store.Application{row(alice, "uid-1"), row(alice, "uid-2"), row(bob, "uid-b")} {
		a.Environment = map[domain.TenantID]domain.EnvironmentID{alice: "env-1", bob: "env-b"}[a.Tenant]
		w.apply(t, creating(a))
	}
	operation := w.apply(t, store.Change{
		RemoveEnvironments: []store.EnvironmentRef{{ID: "env-1", Tenant: alice}},
		Announce:           on(alice, domain.ResourceManagedEnvironment, "env-1"),
	})[0]
	// Bob's is in the same state, and must not go with alice's.
	w.apply(t, store.Change{RemoveEnvironments: []store.EnvironmentRef{{ID: "env-b", Tenant: bob}}})
	w.exec(t, `UPDATE application SET environment_id = 'bob-uid' WHERE id = 'uid-b'`)

	abandoned := store.Environment{ID: "env-1", Tenant: alice, Name: "prod", AllowAutomated: true}
	stays := func(when string) {
		t.Helper()
		w.isEnvironment(t, when, abandoned)
		w.holds(t, when, map[string]int{"cluster_credentials WHERE id = 'env-1'": 0, "api_cr_to_database_mapping WHERE cr_uid = 'env-1'": 0})
	}
	stays("after its CR went")
	same(t, "task", store.Task{Operation: operation, Environment: &abandoned}, w.task(t, operation))
	_, err := w.Store.Apply(t.Context(), putting(remote(bob, "env-1"), "prod"))
	wantError(t, "another tenant's put over an abandoned environment", err, domain.ErrConflict)
	stays("after that")

	moved := w.chain(t, row(alice, "uid-1")).Application
	moved.Environment = domain.LocalEnvironment(alice)
	w.apply(t, store.Change{Update: &moved, LeavesEnvironment: alice})
	stays("while one of two deployments has moved")
	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: "uid-2", Tenant: alice}}})
	stays("where nobody asked")
	w.apply(t, store.Change{LeavesEnvironment: alice})
	_, err = w.Store.Environment(t.Context(), alice, "env-1")
	wantError(t, "the environment after the last deployment left", err, domain.ErrNotFound)
	w.isEnvironment(t, "one with a CR and without deployments", environmentAt(remote(alice, "env-kept"), 1))
	w.holds(t, "in the end", map[string]int{
		"cluster_access WHERE environment_id = 'env-1'": 0, "managed_environment WHERE id = 'env-b'": 1,
		"managed_environment WHERE id = 'alice-uid'": 1, "application": 2,
	})
}

// testLeaveEnvironment: leaving and forgetting are one decision, whichever way
// the deployment leaves.
func testLeaveEnvironment(t *testing.T, w world) {
	w.register(t, engine)
	for what, leave := range map[string]func(a store.Application) store.Change{
		"moved": func(a store.Application) store.Change {
			a.Environment = domain.LocalEnvironment(alice)
			return store.Change{Update: &a, LeavesEnvironment: alice}
		},
		"removed": func(a store.Application) store.Change {
			return store.Change{Remove: []store.ApplicationRef{{ID: a.ID, Tenant: alice}}, LeavesEnvironment: alice}
		},
	} {
		e := remote(alice, domain.EnvironmentID("env-"+what))
		w.apply(t, putting(e, what))
		a := row(alice, domain.ApplicationID("uid-"+what))
		a.Environment = e.ID
		w.apply(t, creating(a))
		w.apply(t, store.Change{RemoveEnvironments: []store.EnvironmentRef{{ID: e.ID, Tenant: alice}}})
		if _, err := w.Store.Environment(t.Context(), alice, e.ID); err != nil {
			t.Fatal(err)
		}
		w.apply(t, leave(w.chain(t, a).Application))
		_, err := w.Store.Environment(t.Context(), alice, e.ID)
		wantError(t, "the environment after its deployment was "+what, err, domain.ErrNotFound)
	}
}

// atOnce applies the same decision, made anew, several times at once; one is to
// win, and the others are to be told that they lost.
func (w world) atOnce(t *testing.T, c func() store.Change) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var (
		wg   sync.WaitGroup
		errs [6]error
	)
	for n := range errs {
		s := []store.Store{w.Store, w.Another}[n%2]
		wg.Go(func() { _, errs[n] = s.Apply(ctx, c()) })
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
	if won != 1 {
		t.Errorf("%d won, want 1", won)
	}
}

func testEnvironmentRace(t *testing.T, w world) {
	w.register(t, engine)
	for version := range int64(3) {
		w.atOnce(t, func() store.Change { return putting(environmentAt(remote(alice, "env-1"), version), "prod") })
		w.isEnvironment(t, "after a race", environmentAt(remote(alice, "env-1"), version+1))
	}
	w.holds(t, "in the end", map[string]int{"operation": 1, "api_cr_to_database_mapping": 1, "operation WHERE version = 3": 1})
}

// testAbandonRace: an environment's CR goes while a deployment to it comes. The
// row is there as long as the deployment is, whichever was first, and a removal
// that lost succeeds when it is made again.
func testAbandonRace(t *testing.T, w world) {
	w.register(t, engine)
	for round := range 8 {
		e := remote(alice, domain.EnvironmentID("env-"+id(round)))
		w.apply(t, putting(e, string(e.ID)))
		a := row(alice, id(round))
		a.Environment = e.ID
		removal := store.Change{RemoveEnvironments: []store.EnvironmentRef{{ID: e.ID, Tenant: alice}}}
		var (
			wg              sync.WaitGroup
			coming, leaving error
		)
		wg.Go(func() { _, coming = w.Store.Apply(t.Context(), creating(a)) })
		wg.Go(func() { _, leaving = w.Another.Apply(t.Context(), removal) })
		wg.Wait()
		for _, err := range []error{coming, leaving} {
			if err != nil && !errors.Is(err, domain.ErrMissingParent) {
				t.Errorf("lost with %v, want %v", err, domain.ErrMissingParent)
			}
		}
		if coming != nil && leaving != nil {
			t.Errorf("both lost: %v, %v", coming, leaving)
		}
		w.apply(t, removal)
		if coming != nil {
			_, err := w.Store.Environment(t.Context(), alice, e.ID)
			wantError(t, "an environment without deployments", err, domain.ErrNotFound)
			continue
		}
		w.isEnvironment(t, "an environment with one", store.Environment{ID: e.ID, Tenant: alice, Name: e.Name, AllowAutomated: true})
		w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: a.ID, Tenant: alice}}, LeavesEnvironment: alice})
	}
	w.holds(t, "in the end", map[string]int{"managed_environment WHERE kind = 'remote'": 0, "cluster_credentials": 0, "api_cr_to_database_mapping": 0})
}
