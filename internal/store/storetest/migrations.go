// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"database/sql"
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Unmigrated is a database without a schema.
type Unmigrated struct {
	Migrations store.Migrations
	Raw        *sql.DB
	// Store is the store on it, to be used once it is migrated.
	Store store.Store
}

// RunMigrations brings a database from every earlier version, with rows that
// were valid there, to the present one, and sees that they are still there and
// of use.
func RunMigrations(t *testing.T, fresh func(*testing.T) Unmigrated) {
	versions, err := fresh(t).Migrations.Versions()
	if err != nil {
		t.Fatal(err)
	}
	if len(versions) < 2 {
		t.Fatalf("versions %v: nothing to migrate from", versions)
	}
	for _, version := range append([]int64{0}, versions...) {
		t.Run(fmt.Sprintf("from version %d", version), func(t *testing.T) {
			u := fresh(t)
			if version > 0 {
				if err := u.Migrations.UpTo(t.Context(), version); err != nil {
					t.Fatal(err)
				}
				insertAt(t, u.Raw, version)
				insertDataKeyAt(t, u.Raw, version)
				insertSpecsAt(t, u.Raw)
			}
			log := logAt(t, u, version)
			for range 2 { // the second finds nothing to do
				if err := u.Migrations.Up(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			w := world{Subject{Store: u.Store, Another: u.Store, Raw: u.Raw}}
			log.check(t, w)
			if version > 0 {
				checkSpecsAfter(t, w, version)
				checkAfter(t, w, version)
				checkDataKeyAfter(t, w, version)
			}
			// What a new database can do, an old one can now, too.
			testChanges(t, w)
		})
	}
}

// insertAt writes, as the program of that version would have, a deployment that
// failed to be carried out, and what else the version had tables for.
func insertAt(t *testing.T, raw *sql.DB, version int64) {
	t.Helper()
	statements := []string{
		`INSERT INTO gitops_engine_cluster (id) VALUES ('old-cluster')`,
		`INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind) VALUES ('old-engine', 'old-cluster', 'engine', 'argocd')`,
		`INSERT INTO cluster_user (id, namespace) VALUES ('old', 'ns-old')`,
		`INSERT INTO managed_environment (id, tenant, name, kind) VALUES ('old', 'old', '', 'local')`,
		`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('old', 'old', 'old-engine')`,
		`INSERT INTO application (id, tenant, name, spec, instance_id, environment_id, generation, version)
			VALUES ('old-app', 'old', 'd', '{"repoURL":"https://old","path":"p","namespace":"ns","automated":false}', 'old-engine', 'old', 3, 7)`,
		`INSERT INTO deployment_to_application_mapping (application_id, tenant, namespace, name) VALUES ('old-app', 'old', 'ns-old', 'd')`,
		`INSERT INTO application_state (application_id, tenant, engine_uid, sequence, health) VALUES ('old-app', 'old', 'e', 5, 'Healthy')`,
		`INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id, version) VALUES ('old-op', 'old', 'old-engine', 'Application', 'old-app', 2)`,
	}
	if version >= 3 {
		statements = append(statements,
			`INSERT INTO deployment_history (id, tenant, application_id, deployment_uid, deployment_namespace, deployment_name, trigger, result, started_on)
				SELECT 'old-history', 'old', 'old-app', 'old-app', 'ns-old', 'd', 'commit', 'Succeeded', created_on FROM cluster_user WHERE id = 'old'`)
	}
	for _, statement := range statements {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
}

func checkAfter(t *testing.T, w world, version int64) {
	t.Helper()
	ctx := t.Context()
	chains, err := w.Store.Chains(ctx, "ns-old", "d")
	if err != nil || len(chains) != 1 {
		t.Fatalf("chains: %+v, %v", chains, err)
	}
	c := chains[0]
	same(t, "application", store.Application{
		ID: "old-app", Tenant: "old", Name: "d", Instance: "old-engine", Environment: "old", Generation: 3, Version: 7,
		Spec: domain.ApplicationSpec{RepoURL: "https://old", Path: "p", Namespace: "ns"},
	}, c.Application)
	if c.State == nil || c.State.Sequence != 5 || c.Operation == nil || c.Operation.Version != 2 {
		t.Errorf("the chain lost its state or operation: %+v", c)
	}
	if version >= 3 && w.count(t, "deployment_history") != 1 {
		t.Error("the history is lost")
	}
	log := w.follow(t)
	reused, err := w.Store.Apply(ctx, updating(c.Application, "new"))
	if err != nil || reused[0].ID != "old-op" || reused[0].Version != 3 {
		t.Fatalf("the waiting operation was not reused: %+v, %v", reused, err)
	}
	if err := w.Store.Finish(ctx, "old-op", 3, domain.OperationCompleted, ""); err != nil {
		t.Fatal(err)
	}
	sameEvents(t, "events of old rows", []store.Event{operationEvent(*c.Operation, domain.OperationCompleted)}, log.news(t))
	if _, err := w.Store.Apply(ctx, store.Change{Remove: []store.ApplicationRef{{ID: "old-app", Tenant: "old"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Store.Collect(ctx, c.Operation.CreatedOn.AddDate(1, 0, 0), 10); err != nil {
		t.Fatal(err)
	}
}

// damagedSpecs are what an operator's hand may have left in a row.
func damagedSpecs() map[string]string {
	return map[string]string{
		"damaged-text": "not JSON", "damaged-empty": "", "damaged-cut": `{"repoURL":"https://cut","namespace":"n`,
		"damaged-list": `["repoURL"]`, "damaged-number": "3", "damaged-null": "null", "damaged-other": `{"path":"p","repoURL":null}`,
	}
}

// insertSpecsAt adds applications besides those of insertAt whose specs no
// program can read, or only in part.
func insertSpecsAt(t *testing.T, raw *sql.DB) {
	t.Helper()
	for id, spec := range damagedSpecs() {
		if _, err := raw.ExecContext(t.Context(),
			`INSERT INTO application (id, tenant, name, spec, instance_id, environment_id, generation) VALUES ($1, 'old', 'd', $2, 'old-engine', 'old', 1)`,
			id, spec); err != nil {
			t.Fatal(err)
		}
	}
}

// checkSpecsAfter: what version 5 took out of the specs is there, and a damaged
// spec stopped nothing and is as damaged as before.
func checkSpecsAfter(t *testing.T, w world, version int64) {
	t.Helper()
	filled := "application WHERE id = 'old-app' AND repo_url = 'https://old' AND namespace = 'ns'"
	if version < 5 && w.count(t, filled) != 1 {
		t.Error("the application's repository and namespace were not filled in")
	}
	for id, spec := range damagedSpecs() {
		var is, repository, namespace string
		if err := w.Raw.QueryRowContext(t.Context(), `SELECT spec, repo_url, namespace FROM application WHERE id = $1`, id).
			Scan(&is, &repository, &namespace); err != nil {
			t.Fatal(err)
		}
		if is != spec || repository != "" || namespace != "" {
			t.Errorf("%s: spec %q, repository %q, namespace %q; want %q and nothing else", id, is, repository, namespace, spec)
		}
	}
	// What taking in a CR does is what repairs it.
	repaired := store.Application{
		ID: "damaged-text", Tenant: "old", Name: "d", Instance: "old-engine", Environment: "old", Generation: 2, Version: 1, Spec: spec("p"),
	}
	w.apply(t, store.Change{Update: &repaired})
	w.holds(t, "after the repair", map[string]int{
		"application WHERE id = 'damaged-text' AND repo_url = 'https://example.org/repo.git' AND namespace = 'ns'": 1,
	})
	w.exec(t, `DELETE FROM application WHERE id LIKE 'damaged-%'`)
}

// oldLog is the change log before the migration, with the newest entry trimmed,
// so that the numbers have come further than the rows show.
type oldLog struct {
	cursor store.Cursor
	newest int64
	rows   []string
}

const logRows = `SELECT seq, topic, tenant, key, resource_type, resource, state, instance FROM change_log ORDER BY seq`

func readLog(t *testing.T, raw *sql.DB) (newest int64, entries []string) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), logRows)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var text [7]string
		if err := rows.Scan(&newest, &text[0], &text[1], &text[2], &text[3], &text[4], &text[5], &text[6]); err != nil {
			t.Fatal(err)
		}
		entries = append(entries, fmt.Sprint(newest, text))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return newest, entries
}

// logAt notes the log of a version that has one; nil for one that has none.
func logAt(t *testing.T, u Unmigrated, version int64) *oldLog {
	t.Helper()
	if version < 2 {
		return nil
	}
	newest, all := readLog(t, u.Raw)
	if len(all) < 2 {
		t.Fatalf("%d entries in the old log, want some: %v", len(all), all)
	}
	if _, err := u.Raw.ExecContext(t.Context(), `DELETE FROM change_log WHERE seq = $1`, newest); err != nil {
		t.Fatal(err)
	}
	w := world{Subject{Store: u.Store, Another: u.Store, Raw: u.Raw}}
	return &oldLog{cursor: w.settled(t), newest: newest, rows: all[:len(all)-1]}
}

// check: the entries are as they were, a cursor from before still means the same
// place, and no number is given twice.
func (l *oldLog) check(t *testing.T, w world) {
	t.Helper()
	if l == nil {
		return
	}
	_, rows := readLog(t, w.Raw)
	same(t, "the old entries", l.rows, rows)
	w.exec(t, `INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id)
		VALUES ('after', 'old', 'old-engine', 'SyncOperation', 'old-sync')`)
	events, _, err := w.Store.ChangesSince(t.Context(), l.cursor)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 1 || events[0].Key != "after" || events[0].Sequence <= l.newest {
		t.Errorf("after the old cursor: %+v, want one with a number above %d", events, l.newest)
	}
	w.exec(t, `DELETE FROM operation WHERE id = 'after'`)
}
