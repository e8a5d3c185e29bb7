// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func (w world) uses(t *testing.T, what string, tenant domain.TenantID, want ...store.ProjectUse) {
	t.Helper()
	got, err := w.Store.ProjectUses(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	same(t, what, want, got)
}

func testProjectUses(t *testing.T, w world) {
	w.register(t, engine)
	w.uses(t, "of nobody", alice)
	narrow := remote(alice, "env-narrow")
	narrow.Credentials.ClusterResources = false
	w.apply(t, putting(remote(alice, "env-wide"), "wide"))
	w.apply(t, putting(narrow, "narrow"))
	w.uses(t, "of environments alone", alice)
	// Upper case sorts before lower case: by bytes, not by a locale.
	for n, u := range []store.ProjectUse{
		{Repository: "https://b", Environment: "alice-uid", Namespace: "ns"},
		{Repository: "https://a", Environment: "env-wide", Namespace: "y"},
		{Repository: "https://a", Environment: "env-wide", Namespace: "x"},
		{Repository: "https://a", Environment: "env-narrow", Namespace: "x"},
		{Repository: "https://B", Environment: "alice-uid", Namespace: "ns"},
		{Repository: "https://b", Environment: "alice-uid", Namespace: "ns"},
	} {
		a := row(alice, id(n))
		a.Spec.RepoURL, a.Environment, a.Spec.Namespace = u.Repository, u.Environment, u.Namespace
		w.apply(t, creating(a))
	}
	w.create(t, bob, "uid-b")

	last := store.ProjectUse{Repository: "https://b", Environment: "alice-uid", Namespace: "ns"}
	others := []store.ProjectUse{
		{Repository: "https://B", Environment: "alice-uid", Namespace: "ns"},
		{Repository: "https://a", Environment: "env-narrow", Namespace: "x"},
		{Repository: "https://a", Environment: "env-wide", Namespace: "x", ClusterResources: true},
		{Repository: "https://a", Environment: "env-wide", Namespace: "y", ClusterResources: true},
	}
	w.uses(t, "each once and in order", alice, append(others, last)...)
	w.uses(t, "the neighbour's", bob, store.ProjectUse{Repository: "https://example.org/repo.git", Environment: "bob-uid", Namespace: "ns"})

	// What one of two leaves, the other still uses.
	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: id(0), Tenant: alice}}})
	w.uses(t, "after one of two went", alice, append(others, last)...)
	left := w.chain(t, row(alice, id(5))).Application
	w.apply(t, updating(left, "b")) // which also names another repository
	w.uses(t, "after the other changed", alice,
		append(others, store.ProjectUse{Repository: "https://example.org/repo.git", Environment: "alice-uid", Namespace: "ns"})...)

	// An environment that is given up lets nothing be deployed without a namespace.
	w.apply(t, store.Change{
		Remove:             []store.ApplicationRef{{ID: id(5), Tenant: alice}, {ID: id(4), Tenant: alice}, {ID: id(3), Tenant: alice}},
		RemoveEnvironments: []store.EnvironmentRef{{ID: "env-wide", Tenant: alice}},
	})
	w.uses(t, "of an abandoned environment", alice,
		store.ProjectUse{Repository: "https://a", Environment: "env-wide", Namespace: "x"},
		store.ProjectUse{Repository: "https://a", Environment: "env-wide", Namespace: "y"})
}
