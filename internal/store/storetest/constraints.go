// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"strings"
	"testing"
)

// furnish gives two tenants one row in every table that tenants own. Ids end in
// the tenant's letter; {a} in a statement stands for it.
func (w world) furnish(t *testing.T) {
	t.Helper()
	w.exec(t, `INSERT INTO gitops_engine_cluster (id) VALUES ('cluster')`)
	w.exec(t, `INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind, ready) VALUES ('engine', 'cluster', 'engine', 'none', TRUE)`)
	w.exec(t, `INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind, ready) VALUES ('engine-2', 'cluster', 'engine-2', 'builtin', TRUE)`)
	for _, letter := range []string{"a", "b"} {
		for _, statement := range furniture {
			w.place(t, statement, letter)
		}
	}
}

// place adds a piece for one tenant. Bytes are written differently in the two
// databases, so sealed values are a parameter.
func (w world) place(t *testing.T, statement, letter string) {
	t.Helper()
	var args []any
	if strings.Contains(statement, "$1") {
		args = append(args, []byte("sealed"))
	}
	w.exec(t, strings.ReplaceAll(statement, "{a}", letter), args...)
}

var furniture = []string{
	`INSERT INTO cluster_user (id, namespace) VALUES ('{a}', 'ns-{a}')`,
	`INSERT INTO cluster_credentials (id, tenant, host, sealed_origin, key_id) VALUES ('cred-{a}', '{a}', 'https://h', $1, 'key-1')`,
	`INSERT INTO managed_environment (id, tenant, name, kind) VALUES ('{a}', '{a}', '', 'local')`,
	`INSERT INTO managed_environment (id, tenant, name, kind, credentials_id) VALUES ('env-{a}', '{a}', 'prod', 'remote', 'cred-{a}')`,
	`INSERT INTO kubernetes_to_db_resource_mapping VALUES ('Namespace', '{a}', 'ManagedEnvironment', '{a}', '{a}')`,
	`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('{a}', '{a}', 'engine')`,
	`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('{a}', 'env-{a}', 'engine')`,
	`INSERT INTO application (id, tenant, name, spec, instance_id, environment_id, generation) VALUES ('app-{a}', '{a}', 'n', '{}', 'engine', 'env-{a}', 1)`,
	`INSERT INTO application_state (application_id, tenant, engine_uid, sequence) VALUES ('app-{a}', '{a}', 'e', 1)`,
	`INSERT INTO deployment_to_application_mapping (application_id, tenant, namespace, name) VALUES ('app-{a}', '{a}', 'ns', 'n')`,
	`INSERT INTO api_cr_to_database_mapping VALUES ('GitOpsDeployment', 'cr-{a}', 'ns', 'n', '{a}', 'Application', 'app-{a}')`,
	`INSERT INTO sync_operation (id, tenant, application_id, deployment_name, desired_state) VALUES ('sync-{a}', '{a}', 'app-{a}', 'n', 'Running')`,
	`INSERT INTO repository_credentials (id, tenant, instance_id, repository_url, sealed_password, key_id) VALUES ('repo-{a}', '{a}', 'engine', 'https://r', $1, 'key-1')`,
	`INSERT INTO app_project_repository (id, tenant, repository_credentials_id, repository_url) VALUES ('apr-{a}', '{a}', 'repo-{a}', 'https://r')`,
	`INSERT INTO app_project_managed_environment (id, tenant, managed_environment_id) VALUES ('apm-{a}', '{a}', 'env-{a}')`,
	`INSERT INTO application_owner (application_id, tenant) VALUES ('app-{a}', '{a}')`,
	`INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ('op-{a}', '{a}', 'engine', 'Application', 'app-{a}')`,
}

// ownedTables are those whose rows end with their tenant.
var ownedTables = []string{
	"cluster_user", "cluster_credentials", "managed_environment", "kubernetes_to_db_resource_mapping", "cluster_access",
	"application", "application_state", "deployment_to_application_mapping", "api_cr_to_database_mapping",
	"sync_operation", "repository_credentials", "app_project_repository", "app_project_managed_environment", "application_owner",
}

type refusal struct {
	statement string
	want      Violation
}

func (w world) refused(t *testing.T, all []refusal) {
	t.Helper()
	for _, c := range all {
		_, err := w.Raw.ExecContext(t.Context(), c.statement)
		if err == nil {
			t.Errorf("accepted: %s", c.statement)
		} else if got := w.Violation(err); got != c.want {
			t.Errorf("%s: refused as %s (%v), want %s", c.statement, got, err, c.want)
		}
	}
}

func testConstraints(t *testing.T, w world) {
	w.furnish(t)
	w.refused(t, []refusal{
		// Values outside what a column knows.
		{`INSERT INTO cluster_user (id, namespace) VALUES ('', 'ns')`, Check},
		{`UPDATE gitops_engine_instance SET kind = 'flux'`, Check},
		{`UPDATE gitops_engine_instance SET namespace = ''`, Check},
		{`UPDATE gitops_engine_cluster SET tenant = 'a'`, Check},
		{`UPDATE managed_environment SET kind = 'elsewhere'`, Check},
		{`INSERT INTO managed_environment (id, tenant, name, kind) VALUES ('other', 'a', '', 'local')`, Check},
		{`UPDATE managed_environment SET credentials_id = 'cred-a' WHERE id = 'a'`, Check},
		{`UPDATE cluster_credentials SET key_id = ''`, Check},
		{`UPDATE repository_credentials SET key_id = ''`, Check},
		{`UPDATE repository_credentials SET repository_url = ''`, Check},
		{`UPDATE app_project_repository SET repository_url = ''`, Check},
		{`UPDATE application SET generation = -1`, Check},
		{`UPDATE application SET version = 0`, Check},
		{`UPDATE operation SET state = 'Done'`, Check},
		{`UPDATE operation SET resource_type = 'Pod'`, Check},
		{`UPDATE operation SET resource_id = ''`, Check},
		{`UPDATE operation SET tenant = ''`, Check},
		{`UPDATE operation SET version = 0`, Check},
		{`UPDATE sync_operation SET desired_state = 'Paused'`, Check},
		{`UPDATE kubernetes_to_db_resource_mapping SET kubernetes_resource_type = 'Pod'`, Check},
		{`UPDATE kubernetes_to_db_resource_mapping SET db_relation_type = 'Pod'`, Check},
		{`UPDATE api_cr_to_database_mapping SET cr_type = 'Pod'`, Check},
		{`UPDATE api_cr_to_database_mapping SET db_relation_type = 'Pod'`, Check},
		{`UPDATE change_log SET topic = 'weather'`, Check},
		{`INSERT INTO deployment_history (id, tenant, application_id, deployment_uid, deployment_namespace, deployment_name, trigger, result, resources_changed, started_on)
			SELECT 'h', 'a', 'x', 'x', 'x', 'x', 'x', 'x', -1, created_on FROM cluster_user WHERE id = 'a'`, Check},
		// What has to be there.
		{`UPDATE application SET environment_id = NULL`, NotNull},
		{`UPDATE application SET tenant = NULL`, NotNull},
		{`UPDATE operation SET instance_id = NULL`, NotNull},
		{`UPDATE cluster_credentials SET key_id = NULL`, NotNull},
		// What may be there once.
		{`INSERT INTO cluster_user (id, namespace) VALUES ('a', 'again')`, Duplicate},
		{`INSERT INTO application (id, tenant, name, spec, instance_id, environment_id, generation) VALUES ('app-a', 'b', 'n', '{}', 'engine', 'b', 1)`, Duplicate},
		{`INSERT INTO application_state (application_id, tenant, engine_uid, sequence) VALUES ('app-a', 'a', 'e', 1)`, Duplicate},
		{`INSERT INTO deployment_to_application_mapping (application_id, tenant, namespace, name) VALUES ('app-a', 'a', 'ns', 'other')`, Duplicate},
		{`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('a', 'a', 'engine-2')`, Duplicate},
		{`INSERT INTO app_project_repository (id, tenant, repository_url) VALUES ('more', 'a', 'https://r')`, Duplicate},
		{`INSERT INTO app_project_managed_environment (id, tenant, managed_environment_id) VALUES ('more', 'a', 'env-a')`, Duplicate},
		{`INSERT INTO kubernetes_to_db_resource_mapping VALUES ('Namespace', 'a', 'ManagedEnvironment', 'a', 'a')`, Duplicate},
		{`INSERT INTO kubernetes_to_db_resource_mapping VALUES ('Namespace', 'other', 'ManagedEnvironment', 'a', 'a')`, Duplicate},
		{`INSERT INTO api_cr_to_database_mapping VALUES ('GitOpsDeployment', 'cr-a', 'ns', 'n', 'a', 'Application', 'app-a')`, Duplicate},
		{`INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ('more', 'a', 'engine', 'Application', 'app-a')`, Duplicate},
		{`INSERT INTO change_log_horizon (horizon) VALUES (1)`, Duplicate},
		// What has to refer to something.
		{`INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind) VALUES ('i', 'none', 'ns', 'none')`, MissingParent},
		{`INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ('o', 'a', 'none', 'Application', 'x')`, MissingParent},
		{`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('a', 'none', 'engine')`, MissingParent},
		{`UPDATE cluster_access SET instance_id = 'none' WHERE environment_id = 'a'`, MissingParent},
		{`INSERT INTO repository_credentials (id, tenant, instance_id, repository_url) VALUES ('r', 'a', 'none', 'https://r')`, MissingParent},
		{`INSERT INTO cluster_credentials (id, tenant, host) VALUES ('c', 'none', 'h')`, MissingParent},
		{`INSERT INTO api_cr_to_database_mapping VALUES ('GitOpsDeployment', 'x', 'ns', 'n', 'none', 'Application', 'x')`, MissingParent},
		{`INSERT INTO deployment_history (id, tenant, application_id, deployment_uid, deployment_namespace, deployment_name, trigger, result, started_on)
			SELECT 'h', 'none', 'x', 'x', 'x', 'x', 'x', 'x', created_on FROM cluster_user WHERE id = 'a'`, MissingParent},
	})
	// Operations that do not wait may be many.
	w.exec(t, `UPDATE operation SET state = 'Completed'`)
	w.exec(t, `INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ('more', 'a', 'engine', 'Application', 'app-a')`)
}

// testCompositeKeys: whatever is written, no row of tenant a refers to one of b.
func testCompositeKeys(t *testing.T, w world) {
	w.furnish(t)
	w.refused(t, []refusal{
		{`UPDATE managed_environment SET credentials_id = 'cred-b' WHERE id = 'env-a'`, MissingParent},
		{`UPDATE gitops_engine_cluster SET credentials_id = 'cred-a'`, MissingParent},
		{`INSERT INTO cluster_access (tenant, environment_id, instance_id) VALUES ('a', 'env-b', 'engine')`, MissingParent},
		{`UPDATE application SET environment_id = 'env-b' WHERE id = 'app-a'`, MissingParent},
		{`UPDATE application SET environment_id = 'b' WHERE id = 'app-a'`, MissingParent},
		{`UPDATE application SET instance_id = 'engine-2' WHERE id = 'app-a'`, MissingParent},
		{`UPDATE application SET tenant = 'b' WHERE id = 'app-a'`, MissingParent},
		{`UPDATE application_state SET tenant = 'b' WHERE application_id = 'app-a'`, MissingParent},
		{`UPDATE deployment_to_application_mapping SET tenant = 'b' WHERE application_id = 'app-a'`, MissingParent},
		{`UPDATE application_owner SET tenant = 'b' WHERE application_id = 'app-a'`, MissingParent},
		{`UPDATE sync_operation SET tenant = 'b' WHERE id = 'sync-a'`, MissingParent},
		{`UPDATE sync_operation SET application_id = 'app-b' WHERE id = 'sync-a'`, MissingParent},
		{`UPDATE app_project_repository SET repository_credentials_id = 'repo-b' WHERE id = 'apr-a'`, MissingParent},
		{`UPDATE app_project_managed_environment SET managed_environment_id = 'env-b' WHERE id = 'apm-a'`, MissingParent},
	})
}

// testRemoveTenant: one statement takes everything of the tenant, along all
// paths, and nothing of its neighbour. Its operations stay: they are what will
// take its objects off the engine.
func testRemoveTenant(t *testing.T, w world) {
	w.furnish(t)
	w.exec(t, `INSERT INTO deployment_history (id, tenant, application_id, deployment_uid, deployment_namespace, deployment_name, trigger, result, started_on)
		SELECT 'h', 'a', 'app-a', 'cr-a', 'ns', 'n', 'commit', 'Succeeded', created_on FROM cluster_user WHERE id = 'a'`)
	w.exec(t, `DELETE FROM application WHERE id = 'app-a'`)
	if n := w.count(t, "deployment_history"); n != 1 {
		t.Error("the history went with the application")
	}
	w.place(t, furniture[7], "a")
	w.exec(t, `DELETE FROM cluster_user WHERE id = 'a'`)
	for _, table := range ownedTables {
		column := "tenant"
		if table == "cluster_user" {
			column = "id"
		}
		if n := w.count(t, table+" WHERE "+column+" = 'a'"); n != 0 {
			t.Errorf("%d rows of the removed tenant in %s", n, table)
		}
		if n := w.count(t, table+" WHERE "+column+" = 'b'"); n == 0 {
			t.Errorf("nothing left of the neighbour in %s", table)
		}
	}
	if n := w.count(t, "deployment_history"); n != 0 {
		t.Error("the history outlived the tenant")
	}
	if n := w.count(t, "operation WHERE tenant = 'a'"); n != 1 {
		t.Errorf("%d operations of the removed tenant, want 1", n)
	}
}

func testOtherCascades(t *testing.T, w world) {
	w.furnish(t)
	w.refused(t, []refusal{
		// In use: the ones who use it have to be dealt with first.
		{`DELETE FROM cluster_credentials WHERE id = 'cred-a'`, MissingParent},
		{`DELETE FROM repository_credentials WHERE id = 'repo-a'`, MissingParent},
		{`DELETE FROM managed_environment WHERE id = 'env-a'`, MissingParent},
		{`DELETE FROM cluster_access WHERE tenant = 'a' AND environment_id = 'env-a'`, MissingParent},
		{`DELETE FROM gitops_engine_instance WHERE id = 'engine'`, MissingParent},
		{`DELETE FROM gitops_engine_cluster WHERE id = 'cluster'`, MissingParent},
		{`DELETE FROM cluster_user WHERE id = 'weir-internal'`, MissingParent},
	})
	w.exec(t, `DELETE FROM application WHERE id = 'app-a'`)
	w.exec(t, `DELETE FROM managed_environment WHERE id = 'env-a'`)
	for _, from := range []string{
		"cluster_access WHERE environment_id = 'env-a'", "app_project_managed_environment WHERE id = 'apm-a'", "sync_operation WHERE id = 'sync-a'",
	} {
		if n := w.count(t, from); n != 0 {
			t.Errorf("%d rows in %s", n, from)
		}
	}
	w.exec(t, `INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ('op-2', 'a', 'engine-2', 'Application', 'x')`)
	w.exec(t, `DELETE FROM gitops_engine_instance WHERE id = 'engine-2'`)
	if n := w.count(t, "operation WHERE id = 'op-2'"); n != 0 {
		t.Error("an operation outlived the instance that would carry it out")
	}
}

func testMoveEnvironment(t *testing.T, w world) {
	w.furnish(t)
	w.exec(t, `UPDATE cluster_access SET instance_id = 'engine-2' WHERE tenant = 'a' AND environment_id = 'env-a'`)
	if n := w.count(t, "application WHERE id = 'app-a' AND instance_id = 'engine-2'"); n != 1 {
		t.Error("the application stayed behind")
	}
	if n := w.count(t, "application WHERE id = 'app-b' AND instance_id = 'engine'"); n != 1 {
		t.Error("the neighbour's application moved")
	}
}

func testAuditLog(t *testing.T, w world) {
	const entry = `INSERT INTO audit_log (at, actor, tenant, verb, object_kind, object_uid, result, previous_hash, hash)
		SELECT created_on, 'x', 'a', 'create', 'k', 'u', 'ok', $1, $2 FROM cluster_user`
	w.exec(t, entry, []byte("beginning"), []byte("first"))
	// The chain does not fork, and no entry is in it twice.
	for _, hashes := range [][2]string{{"beginning", "other"}, {"first", "first"}} {
		_, err := w.Raw.ExecContext(t.Context(), entry, []byte(hashes[0]), []byte(hashes[1]))
		if err == nil || w.Violation(err) != Duplicate {
			t.Errorf("after %s, %s: %v, want it refused as %s", hashes[0], hashes[1], err, Duplicate)
		}
	}
	for _, statement := range []string{`UPDATE audit_log SET actor = 'somebody else'`, `DELETE FROM audit_log`} {
		if _, err := w.Raw.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("accepted: %s", statement)
		}
	}
	if n := w.count(t, "audit_log WHERE actor = 'x'"); n != 1 {
		t.Error("the entry is not what it was")
	}
}
