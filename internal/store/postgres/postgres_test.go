// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/store/storetest"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

func TestMain(m *testing.M) { pg.Main(m) }

func open(t *testing.T, dsn string, options ...postgres.Option) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func rawDB(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	raw, err := sql.Open("pgx", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	return raw
}

func violation(err error) storetest.Violation {
	var said *pgconn.PgError
	if !errors.As(err, &said) {
		return storetest.OtherFailure
	}
	switch said.Code {
	case "23514":
		return storetest.Check
	case "23502":
		return storetest.NotNull
	case "23505":
		return storetest.Duplicate
	case "23503":
		return storetest.MissingParent
	default:
		return storetest.OtherFailure
	}
}

func subject(t *testing.T, dsn string) storetest.Subject {
	t.Helper()
	return storetest.Subject{
		Store:   open(t, dsn, postgres.WithConnections(6)),
		Another: open(t, dsn, postgres.WithConnections(6)),
		Raw:     rawDB(t, dsn),
		Time:    func(at time.Time) any { return at }, Violation: violation,
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		return subject(t, pg.Shared(t).NewDatabase(t))
	})
}

// The races once more at the strictest isolation level, where PostgreSQL ends
// transactions for the sake of others all the time: whatever it ends is run again.
func TestRacesWithSerialisationFailures(t *testing.T) {
	storetest.RunRaces(t, func(t *testing.T) storetest.Subject {
		dsn := pg.Shared(t).NewDatabase(t) + "&default_transaction_isolation=serializable"
		return subject(t, dsn)
	})
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, func(t *testing.T) storetest.Unmigrated {
		dsn := pg.Shared(t).NewEmptyDatabase(t)
		s := open(t, dsn)
		return storetest.Unmigrated{Migrations: s.Migrations(), Raw: rawDB(t, dsn), Store: s}
	})
}

func TestConcurrentMigrationsTakeTurns(t *testing.T) {
	dsn := pg.Shared(t).NewEmptyDatabase(t)
	var (
		wg   sync.WaitGroup
		errs [5]error
	)
	for i := range errs {
		wg.Go(func() {
			s, err := postgres.OpenAndMigrate(t.Context(), dsn)
			if err == nil {
				err = s.Close()
			}
			errs[i] = err
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	if _, err := rawDB(t, dsn).ExecContext(t.Context(), `INSERT INTO schema_version (version_id, is_applied) VALUES (999, TRUE)`); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), dsn)
	if !errors.Is(err, store.ErrSchemaNewer) || !strings.Contains(err.Error(), "999") {
		t.Errorf("got %v, want %v with the version", err, store.ErrSchemaNewer)
	}
}

// Ids compare by bytes whatever the database's locale is, and so do the keys
// that refer to them: an index on one serves the other.
func TestIdsSortByBytes(t *testing.T) {
	rows, err := rawDB(t, pg.Shared(t).NewDatabase(t)).QueryContext(t.Context(), `
SELECT c.relname || '.' || a.attname
FROM pg_constraint k
JOIN pg_class c ON c.oid = k.conrelid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY (k.conkey)
JOIN pg_collation l ON l.oid = a.attcollation
WHERE k.contype IN ('p', 'f') AND c.relnamespace = 'public'::regnamespace AND l.collname <> 'C'
  AND a.attname NOT IN ('kubernetes_resource_type', 'db_relation_type', 'cr_type')`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var column string
		if err := rows.Scan(&column); err != nil {
			t.Fatal(err)
		}
		t.Errorf("%s sorts by locale", column)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}

func TestBadAddresses(t *testing.T) {
	good := pg.Shared(t).NewDatabase(t)
	change := func(f func(*url.URL)) string {
		u, err := url.Parse(good)
		if err != nil {
			t.Fatal(err)
		}
		f(u)
		return u.String()
	}
	wrongPassword := change(func(u *url.URL) { u.User = url.UserPassword("weir", "hunter2") })
	for _, c := range []struct {
		name, dsn string
		want      error
		says      string
	}{
		{"a wrong password", wrongPassword, store.ErrRefused, "password authentication failed"},
		{"a database that is not there", change(func(u *url.URL) { u.Path = "/nosuch" }), store.ErrRefused, "nosuch"},
		{"no connection string", "postgres://weir:hunter2@[::1:5432/x", nil, "postgres://user:password@host:5432/weir"},
	} {
		_, err := postgres.Open(t.Context(), c.dsn)
		if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %v and the words %q", c.name, err, c.want, c.says)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the message has the password in it: %v", c.name, err)
		}
	}
}
