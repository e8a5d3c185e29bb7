// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// on announces one operation on a resource.
func on(tenant domain.TenantID, kind domain.ResourceType, id string) []store.NewOperation {
	return []store.NewOperation{{
		ID: domain.NewOperationID(), Tenant: tenant, Instance: engine, ResourceType: kind, ResourceID: id,
	}}
}

func crLink(kind store.CRKind, tenant domain.TenantID, uid, name string) store.CRLink {
	return store.CRLink{Kind: kind, UID: uid, Tenant: tenant, Namespace: "ns-" + string(tenant), Name: name}
}

// syncing is the decision to take in a sync run.
func syncing(tenant domain.TenantID, application domain.ApplicationID, id domain.SyncOperationID, name string) store.Change {
	return store.Change{
		InsertSync: &store.NewSync{
			Sync: store.SyncOperation{
				ID: id, Tenant: tenant, Application: application, Deployment: "deployment-of-" + name, Revision: "v1", RunningLimit: 3,
			},
			Link: crLink(store.KindSyncRun, tenant, string(id), name),
		},
		Announce: on(tenant, domain.ResourceSyncOperation, string(id)),
	}
}

func (w world) syncChains(t *testing.T, namespace, name string) []store.SyncChain {
	t.Helper()
	chains, err := w.Another.SyncChains(t.Context(), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return chains
}

func (w world) task(t *testing.T, o store.Operation) store.Task {
	t.Helper()
	task, err := w.Store.Task(t.Context(), o.ResourceType, o.ID)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// holds compares the number of rows in tables, or tables and conditions.
func (w world) holds(t *testing.T, when string, want map[string]int) {
	t.Helper()
	for from, n := range want {
		if got := w.count(t, from); got != n {
			t.Errorf("%s: %d rows in %s, want %d", when, got, from, n)
		}
	}
}

func testSync(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	c := syncing(alice, "uid-1", "sync-2", "run")
	o := w.apply(t, c)
	want := store.SyncChain{Link: c.InsertSync.Link, Sync: &c.InsertSync.Sync, Operation: &o[0]}
	same(t, "chain", []store.SyncChain{want}, w.syncChains(t, "ns-alice-uid", "run"))
	same(t, "task", store.Task{Operation: o[0], Sync: &c.InsertSync.Sync}, w.task(t, o[0]))

	w.apply(t, syncing(alice, "uid-1", "sync-3", "other"))
	earlier := syncing(alice, "uid-1", "sync-1", "run")
	e := w.apply(t, earlier)
	same(t, "chains under one name, by UID", []store.SyncChain{
		{Link: earlier.InsertSync.Link, Sync: &earlier.InsertSync.Sync, Operation: &e[0]}, want,
	}, w.syncChains(t, "ns-alice-uid", "run"))
	for _, place := range [][2]string{{"ns-alice-uid", "none"}, {"ns-bob-uid", "run"}, {"run", "ns-alice-uid"}} {
		if chains := w.syncChains(t, place[0], place[1]); len(chains) != 0 {
			t.Errorf("chains of %v: %+v", place, chains)
		}
	}
	_, err := w.Store.Apply(t.Context(), syncing(alice, "uid-1", "sync-2", "run"))
	wantError(t, "the same sync once more", err, domain.ErrConflict)

	w.apply(t, store.Change{RemoveSyncs: []store.SyncRef{{ID: "sync-2", Tenant: bob}}})
	w.holds(t, "after a removal in another tenant's name", map[string]int{"sync_operation": 3, "api_cr_to_database_mapping": 3})
	refs := []store.SyncRef{{ID: "sync-2", Tenant: alice}, {ID: "sync-1", Tenant: alice}, {ID: "sync-never", Tenant: alice}}
	for range 2 { // the second time they are gone already
		w.apply(t, store.Change{RemoveSyncs: refs})
		w.holds(t, "after the removal", map[string]int{
			"sync_operation WHERE id = 'sync-3'": 1, "sync_operation": 1,
			"api_cr_to_database_mapping WHERE cr_uid = 'sync-3'": 1, "api_cr_to_database_mapping": 1,
		})
	}
	same(t, "task of a sync that is gone", store.Task{Operation: o[0]}, w.task(t, o[0]))
}

func testForeignSync(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-a")
	w.create(t, bob, "uid-b")
	for what, application := range map[string]domain.ApplicationID{"another tenant's": "uid-b", "no": "uid-never"} {
		_, err := w.Store.Apply(t.Context(), syncing(alice, application, "sync-1", "run"))
		wantError(t, "a sync of "+what+" application", err, domain.ErrMissingParent)
	}
	w.holds(t, "after both were refused", map[string]int{
		"sync_operation": 0, "api_cr_to_database_mapping": 0, "operation WHERE resource_type = 'SyncOperation'": 0,
	})
}

func testSyncsEndWithTheirApplication(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	w.create(t, alice, "uid-2")
	o := w.apply(t, syncing(alice, "uid-1", "sync-1", "run-1"))[0]
	w.apply(t, syncing(alice, "uid-1", "sync-2", "run-2"))
	w.apply(t, syncing(alice, "uid-2", "sync-3", "run-3"))
	// A CR of another kind may not lose its link by having a sync's UID.
	w.exec(t, `INSERT INTO api_cr_to_database_mapping
		VALUES ('GitOpsDeploymentRepositoryCredential', 'sync-1', 'ns', 'n', 'alice-uid', 'RepositoryCredential', 'sync-1')`)
	all := map[string]int{"sync_operation": 3, "api_cr_to_database_mapping": 4}
	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: "uid-1", Tenant: bob}}})
	w.holds(t, "after a removal in another tenant's name", all)
	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: "uid-1", Tenant: alice}}})
	w.holds(t, "after the removal", map[string]int{
		"sync_operation": 1, "sync_operation WHERE id = 'sync-3'": 1,
		"api_cr_to_database_mapping": 2,
		"api_cr_to_database_mapping WHERE cr_type = 'GitOpsDeploymentSyncRun' AND cr_uid = 'sync-3'":              1,
		"api_cr_to_database_mapping WHERE cr_type = 'GitOpsDeploymentSyncRun' AND cr_uid IN ('sync-1', 'sync-2')": 0,
	})
	same(t, "task of a sync that went along", store.Task{Operation: o}, w.task(t, o))
}

// A link whose row somebody removed by hand is still found, so that it can go.
func testDanglingLinks(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	sync := syncing(alice, "uid-1", "sync-1", "n")
	environment := putting(remote(alice, "env-1"), "n")
	credential := storing(repository(alice, "cred-1"), "n")
	so, eo, co := w.apply(t, sync), w.apply(t, environment), w.apply(t, credential)
	for _, statement := range []string{
		`DELETE FROM sync_operation`, `DELETE FROM managed_environment WHERE kind = 'remote'`, `DELETE FROM repository_credentials`,
	} {
		w.exec(t, statement)
	}
	same(t, "sync", []store.SyncChain{{Link: sync.InsertSync.Link, Operation: &so[0]}}, w.syncChains(t, "ns-alice-uid", "n"))
	same(t, "environment", []store.EnvironmentChain{{Link: environment.PutEnvironment.Link, Operation: &eo[0]}},
		w.environmentChains(t, "ns-alice-uid", "n"))
	same(t, "credential", []store.CredentialChain{{Link: credential.PutCredential.Link, Operation: &co[0]}},
		w.credentialChains(t, "ns-alice-uid", "n"))
	w.exec(t, `DELETE FROM operation`)
	same(t, "without an operation", []store.SyncChain{{Link: sync.InsertSync.Link}}, w.syncChains(t, "ns-alice-uid", "n"))
}

// at gives moments that both databases keep exactly.
func at(seconds int) time.Time {
	return time.Date(2026, 3, 1, 12, 0, seconds, 123456000, time.UTC)
}

func testSyncResult(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	w.apply(t, syncing(alice, "uid-1", "sync-1", "run"))
	w.apply(t, syncing(alice, "uid-1", "sync-2", "neighbour"))
	log := w.follow(t)
	running := domain.SyncResult{Phase: domain.SyncRunning, Message: "1 of 2", StartedAt: at(0)}
	further := running
	further.Message = "2 of 2"
	ended := domain.SyncResult{
		Phase: domain.SyncFailed, Message: "boom", Revision: "abc", Health: "Degraded", Sync: "OutOfSync", StartedAt: at(0), FinishedAt: at(9),
	}
	late := ended
	late.Phase, late.FinishedAt = domain.SyncSucceeded, at(10)
	odd := further
	odd.Message = "no\x00 text \xff"
	shown := further
	shown.Message = "no\uFFFD text \uFFFD"
	event := func(p domain.SyncPhase) []store.Event {
		return []store.Event{{Topic: store.TopicSyncOperation, Tenant: alice, Key: "sync-1", State: string(p)}}
	}
	for _, step := range []struct {
		name       string
		save, want domain.SyncResult
		events     []store.Event
	}{
		{"nothing yet", domain.SyncResult{}, domain.SyncResult{}, nil},
		{"begun", running, running, event(domain.SyncRunning)},
		{"the same again", running, running, nil},
		{"further along", further, further, event(domain.SyncRunning)},
		{"odd text", odd, shown, event(domain.SyncRunning)},
		{"ended", ended, ended, event(domain.SyncFailed)},
		{"the end again", ended, ended, nil},
		{"another end", late, ended, nil},
		{"a late report", running, ended, nil},
	} {
		if err := w.Store.SaveSyncResult(t.Context(), "sync-1", step.save); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		same(t, step.name, step.want, w.syncChains(t, "ns-alice-uid", "run")[0].Sync.Result)
		sameEvents(t, step.name, step.events, log.news(t))
	}
	same(t, "the neighbour's", domain.SyncResult{}, w.syncChains(t, "ns-alice-uid", "neighbour")[0].Sync.Result)
	if err := w.Store.SaveSyncResult(t.Context(), "sync-never", running); err != nil {
		t.Errorf("a result of a sync that is gone: %v", err)
	}
	w.exec(t, `UPDATE sync_operation SET running_limit = 5 WHERE id = 'sync-1'`)
	w.exec(t, `UPDATE sync_operation SET health = 'Missing' WHERE id = 'sync-1'`)
	sameEvents(t, "edits by hand: one that says nothing, one that does", event(domain.SyncFailed), log.news(t))
}

func testSyncConstraints(t *testing.T, w world) {
	w.furnish(t)
	w.refused(t, []refusal{
		{`UPDATE sync_operation SET phase = 'Paused'`, Check},
		{`UPDATE sync_operation SET phase = 'Succeeded'`, Check},
		{`UPDATE sync_operation SET phase = 'Failed'`, Check},
		{`UPDATE sync_operation SET finished_on = created_on`, Check},
		{`UPDATE sync_operation SET phase = 'Running', finished_on = created_on`, Check},
		{`UPDATE cluster_credentials SET version = 0`, Check},
		{`UPDATE repository_credentials SET version = 0`, Check},
	})
	for _, phase := range []string{"Succeeded", "Failed", "Error"} {
		w.exec(t, `UPDATE sync_operation SET phase = $1, finished_on = created_on`, phase)
	}
	w.exec(t, `UPDATE sync_operation SET phase = 'Running', finished_on = NULL`)
	// What the schema refuses, the store reports.
	for name, r := range map[string]domain.SyncResult{
		"an end without its time": {Phase: domain.SyncSucceeded},
		"a time without an end":   {Phase: domain.SyncRunning, FinishedAt: at(1)},
	} {
		if err := w.Store.SaveSyncResult(t.Context(), "sync-a", r); err == nil {
			t.Errorf("%s was stored", name)
		}
	}
}

func testEarlierSync(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	w.create(t, alice, "uid-2")
	operations := make(map[domain.SyncOperationID]store.Operation)
	for _, s := range []struct {
		id          domain.SyncOperationID
		application domain.ApplicationID
		created     int
	}{{"sync-c", "uid-1", 1}, {"sync-a", "uid-1", 2}, {"sync-b", "uid-1", 2}, {"sync-0", "uid-2", 0}} {
		operations[s.id] = w.apply(t, syncing(alice, s.application, s.id, string(s.id)))[0]
		w.exec(t, `UPDATE sync_operation SET created_on = $1 WHERE id = $2`, w.Time(at(s.created)), string(s.id))
	}
	waiting := func(when string, want map[domain.SyncOperationID]bool) {
		t.Helper()
		for sync, o := range operations {
			if got := w.task(t, o).EarlierSync; got != want[sync] {
				t.Errorf("%s: an earlier one than %s: %t, want %t", when, sync, got, want[sync])
			}
		}
	}
	waiting("the oldest first, then by id", map[domain.SyncOperationID]bool{"sync-a": true, "sync-b": true})
	save := func(id domain.SyncOperationID, r domain.SyncResult) {
		t.Helper()
		if err := w.Store.SaveSyncResult(t.Context(), id, r); err != nil {
			t.Fatal(err)
		}
	}
	save("sync-c", domain.SyncResult{Phase: domain.SyncRunning, StartedAt: at(3)})
	waiting("while the first runs", map[domain.SyncOperationID]bool{"sync-a": true, "sync-b": true})
	save("sync-c", domain.SyncResult{Phase: domain.SyncError, StartedAt: at(3), FinishedAt: at(4)})
	waiting("after the first", map[domain.SyncOperationID]bool{"sync-b": true})
	w.apply(t, store.Change{RemoveSyncs: []store.SyncRef{{ID: "sync-a", Tenant: alice}}})
	waiting("after the second was removed", nil)
}

func testTaskKinds(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	kinds := []domain.ResourceType{
		domain.ResourceApplication, domain.ResourceSyncOperation, domain.ResourceManagedEnvironment, domain.ResourceRepositoryCredential,
	}
	// All under one id, so that only the type keeps them apart.
	w.apply(t, syncing(alice, "uid-1", "uid-1", "n"))
	w.apply(t, putting(remote(alice, "uid-1"), "n"))
	w.apply(t, storing(repository(alice, "uid-1"), "n"))
	for _, kind := range kinds {
		_, err := w.Store.Task(t.Context(), kind, domain.NewOperationID())
		wantError(t, "the task of no operation on "+string(kind), err, domain.ErrNotFound)
		o, err := w.Store.LatestOperation(t.Context(), kind, "uid-1")
		if err != nil {
			t.Fatal(err)
		}
		alone, err := w.Store.Operation(t.Context(), o.ID)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "the operation alone", o, alone)
		for _, asked := range kinds {
			o.ResourceType = asked
			task := w.task(t, o)
			got := map[domain.ResourceType]bool{
				domain.ResourceApplication: task.Application != nil, domain.ResourceSyncOperation: task.Sync != nil,
				domain.ResourceManagedEnvironment: task.Environment != nil, domain.ResourceRepositoryCredential: task.Credential != nil,
			}
			want := map[domain.ResourceType]bool{kinds[0]: false, kinds[1]: false, kinds[2]: false, kinds[3]: false}
			want[asked] = asked == kind
			same(t, "what is in the task of "+string(kind)+" read as "+string(asked), want, got)
		}
	}
	_, err := w.Store.Operation(t.Context(), domain.NewOperationID())
	wantError(t, "no operation", err, domain.ErrNotFound)
}
