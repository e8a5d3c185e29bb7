// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func record(id string, started int) domain.DeploymentRecord {
	return domain.DeploymentRecord{
		ID: id, Application: "uid-1", Tenant: alice, Trigger: "automated", Revision: "abc", Result: domain.SyncSucceeded,
		Message: "done", Resources: 4, Started: at(started), Finished: at(started + 1),
	}
}

func (w world) record(t *testing.T, r domain.DeploymentRecord) {
	t.Helper()
	if err := w.Store.RecordDeployment(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

func (w world) history(t *testing.T, what string, tenant domain.TenantID, limit int, want ...store.HistoryEntry) {
	t.Helper()
	got, err := w.Store.History(t.Context(), tenant, "uid-1", limit)
	if err != nil {
		t.Fatal(err)
	}
	same(t, what, want, got)
}

func testHistory(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	w.create(t, alice, "uid-2")
	w.create(t, bob, "uid-b")
	w.history(t, "of what was never deployed", alice, 9)
	entry := func(r domain.DeploymentRecord) store.HistoryEntry {
		return store.HistoryEntry{DeploymentRecord: r, Namespace: "ns-alice-uid", Name: "deployment-uid-1"}
	}
	first, second, twin, odd := record("h-3", 1), record("h-1", 5), record("h-2", 5), record("h-4", 9)
	odd.Result, odd.Message, odd.Trigger, odd.Revision = domain.SyncError, "no\x00 text \xff", "\xff", "\x00"
	for _, r := range []domain.DeploymentRecord{twin, first, odd, second} {
		w.record(t, r)
	}
	odd.Message, odd.Trigger, odd.Revision = "no\uFFFD text \uFFFD", "\uFFFD", "\uFFFD"

	again := first
	again.Message, again.Result = "seen once more", domain.SyncFailed
	w.record(t, again)
	gone, foreign := record("h-gone", 2), record("h-foreign", 2)
	gone.Application, foreign.Tenant = "uid-never", bob
	w.record(t, gone)
	w.record(t, foreign)
	other := record("h-other", 3)
	other.Application = "uid-2"
	w.record(t, other)

	all := []store.HistoryEntry{entry(odd), entry(twin), entry(second), entry(first)}
	w.history(t, "newest first", alice, 9, all...)
	w.history(t, "at most two", alice, 2, all[:2]...)
	w.history(t, "in another tenant's name", bob, 9)
	w.holds(t, "after all of it", map[string]int{"deployment_history": 5})

	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: "uid-1", Tenant: alice}}})
	w.record(t, record("h-late", 20))
	w.history(t, "after the application went", alice, 9, all...)
}

// testRemoveFurnishedTenant: one statement takes all that the store has written
// for a tenant, and nothing of its neighbour.
func testRemoveFurnishedTenant(t *testing.T, w world) {
	w.register(t, engine)
	for _, tenant := range []domain.TenantID{alice, bob} {
		suffix := "-" + string(tenant)
		e := remote(tenant, domain.EnvironmentID("env"+suffix))
		w.apply(t, putting(e, "prod"))
		a := row(tenant, domain.ApplicationID("app"+suffix))
		a.Environment = e.ID
		w.apply(t, creating(a))
		w.apply(t, syncing(tenant, a.ID, domain.SyncOperationID("sync"+suffix), "run"))
		w.apply(t, storing(repository(tenant, domain.CredentialID("cred"+suffix)), "git"))
		r := record("h"+suffix, 1)
		r.Application, r.Tenant = a.ID, tenant
		w.record(t, r)
	}
	w.exec(t, `DELETE FROM cluster_user WHERE id = 'alice-uid'`)
	for table, each := range map[string]int{
		"application": 1, "sync_operation": 1, "managed_environment": 2, "cluster_credentials": 1, "cluster_access": 2,
		"repository_credentials": 1, "api_cr_to_database_mapping": 3, "deployment_history": 1,
	} {
		w.holds(t, "after the tenant went", map[string]int{
			table + " WHERE tenant = 'alice-uid'": 0, table + " WHERE tenant = 'bob-uid'": each,
		})
	}
	w.holds(t, "what takes its objects off the engine", map[string]int{"operation WHERE tenant = 'alice-uid'": 4})
	_, err := w.Store.Environment(t.Context(), alice, "env-alice-uid")
	wantError(t, "its environment", err, domain.ErrNotFound)
}

// tenantCalls calls what the kinds besides GitOpsDeployment need, each once.
func tenantCalls(ctx context.Context, s store.Store) map[string]error {
	errs := make(map[string]error)
	_, errs["SyncChains"] = s.SyncChains(ctx, "ns", "name")
	errs["SaveSyncResult"] = s.SaveSyncResult(ctx, "sync-1", domain.SyncResult{})
	_, errs["EnvironmentChains"] = s.EnvironmentChains(ctx, "ns", "name")
	_, errs["Environment"] = s.Environment(ctx, alice, "env-1")
	_, errs["CredentialChains"] = s.CredentialChains(ctx, "ns", "name")
	_, errs["ProjectUses"] = s.ProjectUses(ctx, alice)
	errs["RecordDeployment"] = s.RecordDeployment(ctx, record("h-1", 1))
	_, errs["History"] = s.History(ctx, alice, "uid-1", 1)
	_, errs["Operation"] = s.Operation(ctx, "operation")
	_, errs["sync task"] = s.Task(ctx, domain.ResourceSyncOperation, "operation")
	_, errs["environment task"] = s.Task(ctx, domain.ResourceManagedEnvironment, "operation")
	_, errs["credential task"] = s.Task(ctx, domain.ResourceRepositoryCredential, "operation")
	return errs
}

func testTenantCallsFail(t *testing.T, w world) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range tenantCalls(ended, w.Store) {
		if !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s with a cancelled context: %v, want %v and nothing else", name, err, context.Canceled)
		}
	}
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range tenantCalls(t.Context(), w.Store) {
		if err == nil || errors.Is(err, domain.ErrNotFound) {
			t.Errorf("%s on a closed store: %v", name, err)
		}
	}
}

// testCRLinks walks the link rows of the other tenant kinds in small pages.
func testCRLinks(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "a")
	for _, kind := range []string{"GitOpsDeploymentSyncRun", "GitOpsDeploymentManagedEnvironment", "GitOpsDeploymentRepositoryCredential"} {
		for _, uid := range []string{"1", "2"} {
			w.exec(t, `INSERT INTO api_cr_to_database_mapping (cr_type, cr_uid, cr_namespace, cr_name, tenant, db_relation_type, db_relation_key)
				VALUES ($1, $2, 'ns', 'n', $3, 'SyncOperation', $2)`, kind, uid, string(alice))
		}
	}
	var walked []string
	var after store.CRLink
	for {
		page, err := w.Store.CRLinks(t.Context(), after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, l := range page {
			walked = append(walked, string(l.Kind)+" "+l.UID)
			after = l
			if l.Tenant != alice || l.Namespace != "ns" || l.Name != "n" {
				t.Errorf("link %+v", l)
			}
		}
		if len(page) < 2 {
			break
		}
	}
	same(t, "link rows", []string{
		"GitOpsDeploymentManagedEnvironment 1", "GitOpsDeploymentManagedEnvironment 2",
		"GitOpsDeploymentRepositoryCredential 1", "GitOpsDeploymentRepositoryCredential 2",
		"GitOpsDeploymentSyncRun 1", "GitOpsDeploymentSyncRun 2",
	}, walked)
}
