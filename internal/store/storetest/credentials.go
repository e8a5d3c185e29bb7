// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func repository(tenant domain.TenantID, id domain.CredentialID) store.RepositoryCredential {
	return store.RepositoryCredential{
		ID: id, Tenant: tenant, Instance: engine, Repository: "https://example.org/private.git",
		SealedUsername: []byte{0, 0xff, 'u'}, SealedPassword: []byte{0, 0xff, 'p'}, KeyID: "key-1",
	}
}

// storing is the decision to take in a credential.
func storing(c store.RepositoryCredential, name string) store.Change {
	return store.Change{
		Tenant: tenantRows(c.Tenant),
		PutCredential: &store.PutCredential{
			Credential: c, Link: crLink(store.KindCredential, c.Tenant, string(c.ID), name),
		},
		Announce: on(c.Tenant, domain.ResourceRepositoryCredential, string(c.ID)),
	}
}

func credentialAt(c store.RepositoryCredential, version int64) store.RepositoryCredential {
	c.Version = version
	return c
}

func (w world) credentialChains(t *testing.T, namespace, name string) []store.CredentialChain {
	t.Helper()
	chains, err := w.Another.CredentialChains(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

// isCredential compares the one credential under a name.
func (w world) isCredential(t *testing.T, when, name string, want store.RepositoryCredential) {
	t.Helper()
	chains := w.credentialChains(t, "ns-"+string(want.Tenant), name)
	if len(chains) != 1 {
		t.Fatalf("%s: %d chains, want one: %+v", when, len(chains), chains)
	}
	same(t, when, &want, chains[0].Credential)
}

func testCredential(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	given := repository(alice, "cred-1")
	c := storing(given, "git")
	o := w.apply(t, c)
	given = credentialAt(given, 1)
	same(t, "chain", []store.CredentialChain{{Link: c.PutCredential.Link, Credential: &given, Operation: &o[0]}},
		w.credentialChains(t, "ns-alice-uid", "git"))
	same(t, "task", store.Task{Operation: o[0], Credential: &given}, w.task(t, o[0]))
	for _, place := range [][2]string{{"ns-alice-uid", "none"}, {"ns-bob-uid", "git"}} {
		if chains := w.credentialChains(t, place[0], place[1]); len(chains) != 0 {
			t.Errorf("chains of %v: %+v", place, chains)
		}
	}
	w.apply(t, storing(repository(alice, "cred-2"), "other"))

	// What one has and the other has not, in both directions.
	next := store.RepositoryCredential{
		ID: "cred-1", Tenant: alice, Instance: engine, Repository: "ssh://git@example.org/private.git",
		SealedSSHKey: []byte("sealed key"), KeyID: "key-2", Version: 1,
	}
	w.apply(t, storing(next, "git"))
	w.isCredential(t, "as replaced", "git", credentialAt(next, 2))
	w.apply(t, storing(credentialAt(given, 2), "git"))
	w.isCredential(t, "as replaced again", "git", credentialAt(given, 3))
	given.Instance = "engine-2"
	w.apply(t, storing(credentialAt(given, 3), "git"))
	w.isCredential(t, "as moved", "git", credentialAt(given, 4))
	w.isCredential(t, "the other", "other", credentialAt(repository(alice, "cred-2"), 1))
	w.holds(t, "after all the puts", map[string]int{"repository_credentials": 2, "api_cr_to_database_mapping": 2})

	w.apply(t, store.Change{RemoveCredentials: []store.CredentialRef{{ID: "cred-1", Tenant: bob}}})
	w.isCredential(t, "after a removal in another tenant's name", "git", credentialAt(given, 4))
	for range 2 { // the second time it is gone already
		w.apply(t, store.Change{RemoveCredentials: []store.CredentialRef{{ID: "cred-1", Tenant: alice}}})
		w.holds(t, "after the removal", map[string]int{
			"repository_credentials": 1, "repository_credentials WHERE id = 'cred-2'": 1,
			"api_cr_to_database_mapping": 1, "api_cr_to_database_mapping WHERE cr_uid = 'cred-2'": 1,
		})
	}
	task := w.task(t, o[0])
	if task.Credential != nil || task.Operation.ID != o[0].ID {
		t.Errorf("task of a credential that is gone: %+v", task)
	}
}

// testRefusedCredential: neither another tenant's credential nor a later version
// is overwritten, and a refused put takes the rest of its decision along.
func testRefusedCredential(t *testing.T, w world) {
	w.register(t, engine)
	mine := repository(alice, "cred-1")
	w.apply(t, storing(mine, "git"))
	w.apply(t, storing(credentialAt(mine, 1), "git"))
	w.create(t, bob, "uid-b")
	log := w.follow(t)
	before := map[string]int{
		"repository_credentials": 1, "api_cr_to_database_mapping": 1, "operation": 2, "application": 1, "sync_operation": 0,
		"managed_environment WHERE kind = 'remote'": 0,
	}
	unknown := repository(bob, "cred-b")
	unknown.Instance = "no-such-engine"
	for _, c := range []struct {
		name string
		put  store.RepositoryCredential
		want error
	}{
		{"a put as if there were none", credentialAt(mine, 0), domain.ErrConflict},
		{"a put of an older version", credentialAt(mine, 1), domain.ErrConflict},
		{"a put of a version that is not there yet", credentialAt(mine, 3), domain.ErrConflict},
		{"a put of what has gone meanwhile", credentialAt(repository(alice, "cred-gone"), 2), domain.ErrConflict},
		{"another tenant's put", credentialAt(repository(bob, "cred-1"), 0), domain.ErrConflict},
		{"another tenant's put of the right version", credentialAt(repository(bob, "cred-1"), 2), domain.ErrConflict},
		{"a put on an unknown instance", unknown, domain.ErrMissingParent},
	} {
		c.put.Repository = "https://example.org/other.git"
		change := storing(c.put, "git")
		change.InsertSync = syncing(bob, "uid-b", "sync-1", "run").InsertSync
		change.PutEnvironment = putting(remote(bob, "env-b"), "prod").PutEnvironment
		change.Insert = creating(row(bob, "uid-c")).Insert
		_, err := w.Store.Apply(t.Context(), change)
		wantError(t, c.name, err, c.want)
		w.isCredential(t, "after "+c.name, "git", credentialAt(mine, 2))
		w.holds(t, "after "+c.name, before)
	}
	sameEvents(t, "events of what did not happen", nil, log.news(t))
}

func testCredentialRace(t *testing.T, w world) {
	w.register(t, engine)
	for version := range int64(3) {
		w.atOnce(t, func() store.Change { return storing(credentialAt(repository(alice, "cred-1"), version), "git") })
		w.isCredential(t, "after a race", "git", credentialAt(repository(alice, "cred-1"), version+1))
	}
	w.holds(t, "in the end", map[string]int{"operation": 1, "api_cr_to_database_mapping": 1, "operation WHERE version = 3": 1})
}
