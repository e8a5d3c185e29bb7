// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"database/sql"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// storeCredentials writes credentials of two tenants into every sealed column,
// as the backend would, and gives one of the sealed texts.
func storeCredentials(t *testing.T, raw *sql.DB, s *seal.Sealer) seal.Sealed {
	t.Helper()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := raw.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec(`INSERT INTO gitops_engine_cluster (id) VALUES ('cluster')`)
	exec(`INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind) VALUES ('engine', 'cluster', 'engine', 'none')`)
	var last seal.Sealed
	for _, tenant := range []string{"alice", "bob"} {
		column := func(table, column string) []byte {
			last = sealed(t, s, seal.Place{Tenant: domain.TenantID(tenant), Table: table, Row: "row-" + tenant, Column: column}, canary)
			return last.Text
		}
		exec(`INSERT INTO cluster_user (id, namespace) VALUES ($1, $1)`, tenant)
		kubeconfig, token := column("cluster_credentials", "sealed_kubeconfig"), column("cluster_credentials", "sealed_origin")
		exec(`INSERT INTO cluster_credentials (id, tenant, host, sealed_kubeconfig, sealed_origin, key_id) VALUES ($1, $2, 'https://marker-in-the-dump', $3, $4, $5)`,
			"row-"+tenant, tenant, kubeconfig, token, last.KeyID)
		user, password, key := column("repository_credentials", "sealed_username"), column("repository_credentials", "sealed_password"), column("repository_credentials", "sealed_ssh_key")
		exec(`INSERT INTO repository_credentials (id, tenant, instance_id, repository_url, sealed_username, sealed_password, sealed_ssh_key, key_id) VALUES ($1, $2, 'engine', 'https://r', $3, $4, $5, $6)`,
			"row-"+tenant, tenant, user, password, key, last.KeyID)
	}
	return last
}

// wantNoSecrets looks for the canary and the ring's keys in a dump; marks are what
// has to be in it, to know that looking finds something.
func wantNoSecrets(t *testing.T, dump string, ring *seal.Ring, marks ...string) {
	t.Helper()
	for _, mark := range marks {
		if !strings.Contains(dump, mark) {
			t.Errorf("the dump of %d bytes does not even have the mark %.20q", len(dump), mark)
		}
	}
	for _, secret := range append(spellings([]byte(canary)), ringSecrets(t, ring)...) {
		if strings.Contains(dump, secret) {
			t.Error("the dump has a secret in it")
		}
	}
}

func TestSQLiteDumpHasNoSecrets(t *testing.T) {
	db, path := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	raw := openRaw(t, "sqlite", path)
	v := storeCredentials(t, raw, s)
	rotate(t, source, db, seal.RotateOptions{})

	files := func() string {
		var all strings.Builder
		for _, name := range []string{path, path + "-wal", path + "-shm"} {
			content, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			all.Write(content)
		}
		return all.String()
	}
	// Before the checkpoint most of it is in the log, after it in the file.
	wantNoSecrets(t, files(), load(t, source), "marker-in-the-dump", string(v.Text))
	if _, err := raw.ExecContext(t.Context(), `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		t.Fatal(err)
	}
	wantNoSecrets(t, files(), load(t, source), "marker-in-the-dump", string(v.Text))
}

func TestPostgresDumpHasNoSecrets(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	db := newPostgres(t, dsn)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	raw := openRaw(t, "pgx", dsn)
	v := storeCredentials(t, raw, s)
	rotate(t, source, db, seal.RotateOptions{})

	var dump strings.Builder
	for _, table := range texts(t, raw, `SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'`) {
		for _, row := range texts(t, raw, `SELECT t::text FROM "`+table+`" t`) {
			dump.WriteString(row + "\n")
		}
		// Once more with bytes as bytes, as far as they are text.
		for _, row := range texts(t, raw, `SELECT string_agg(encode(decode(substr(m[1], 3), 'hex'), 'escape'), ' ') FROM "`+table+`" t, regexp_matches(t::text, '(\\x[0-9a-f]+)', 'g') m HAVING count(*) > 0`) {
			dump.WriteString(row + "\n")
		}
	}
	wantNoSecrets(t, dump.String(), load(t, source), "marker-in-the-dump", hex.EncodeToString(v.Text))
}

func texts(t *testing.T, raw *sql.DB, query string) []string {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
