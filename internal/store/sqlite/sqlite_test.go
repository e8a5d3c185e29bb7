// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
	"modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened gives a store without a schema and another way to its file.
func opened(t *testing.T) (*Store, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open("sqlite", dsn(path, url.Values{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(raw.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	return s, raw
}

func migrated(t *testing.T) (*Store, *sql.DB) {
	t.Helper()
	s, raw := opened(t)
	if err := s.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, raw
}

func violation(err error) storetest.Violation {
	var said *sqlite.Error
	if !errors.As(err, &said) {
		return storetest.OtherFailure
	}
	switch said.Code() {
	case code.SQLITE_CONSTRAINT_CHECK:
		return storetest.Check
	case code.SQLITE_CONSTRAINT_NOTNULL:
		return storetest.NotNull
	case code.SQLITE_CONSTRAINT_UNIQUE, code.SQLITE_CONSTRAINT_PRIMARYKEY, code.SQLITE_CONSTRAINT_ROWID:
		return storetest.Duplicate
	case code.SQLITE_CONSTRAINT_FOREIGNKEY:
		return storetest.MissingParent
	default:
		return storetest.OtherFailure
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		s, raw := migrated(t)
		return storetest.Subject{Store: s, Another: s, Raw: raw, Time: dialect{}.Time, Violation: violation}
	})
}

func TestMigrations(t *testing.T) {
	storetest.RunMigrations(t, func(t *testing.T) storetest.Unmigrated {
		s, raw := opened(t)
		return storetest.Unmigrated{Migrations: s.Migrations(), Raw: raw, Store: s}
	})
}

func TestSecondProcessIsTurnedAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	first, err := OpenAndMigrate(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Open(t.Context(), path)
	if !errors.Is(err, store.ErrInUse) {
		t.Fatalf("got %v, want %v", err, store.ErrInUse)
	}
	for _, word := range []string{path, "process " + strconv.Itoa(os.Getpid()), "PostgreSQL"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("the message %q does not say %q", err, word)
		}
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), path)
	if err != nil {
		t.Fatalf("after the first has closed: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestNewerSchemaIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := OpenAndMigrate(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO schema_version (version_id, is_applied) VALUES (999, TRUE)`); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), path); !errors.Is(err, store.ErrSchemaNewer) || !strings.Contains(err.Error(), "999") {
		t.Errorf("got %v, want %v with the version", err, store.ErrSchemaNewer)
	}
	// And the refusal let go of the file.
	if _, err := Open(t.Context(), path); errors.Is(err, store.ErrInUse) {
		t.Error("the refused file stays locked")
	}
}

func TestBadFiles(t *testing.T) {
	folder := t.TempDir()
	garbage := filepath.Join(folder, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("not a database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), garbage); !errors.Is(err, store.ErrRefused) {
		t.Errorf("a file that is no database: %v, want %v", err, store.ErrRefused)
	}
	if _, err := Open(t.Context(), filepath.Join(folder, "none", "weir.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that is not there: %v, want %v", err, os.ErrNotExist)
	}
	odd, err := OpenAndMigrate(t.Context(), filepath.Join(folder, "odd name?mode=memory&%41#.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := odd.Close(); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(filepath.Join(folder, "odd name?mode=memory&%41#.db"))
	if err != nil {
		t.Fatalf("the path was taken for something else: %v", err)
	}
	if mode := info.Mode().Perm(); mode != 0o600 {
		t.Errorf("others may read the database: %s", mode)
	}
}

func TestEveryConnectionIsSafe(t *testing.T) {
	s, _ := migrated(t)
	for name, pool := range map[string]*sql.DB{"writer": s.writer, "reader": s.reader} {
		for pragma, want := range map[string]string{
			"journal_mode": "wal", "synchronous": "2", "foreign_keys": "1", "busy_timeout": "5000",
		} {
			var got string
			if err := pool.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
				t.Errorf("%s: %s is %q, %v; want %q", name, pragma, got, err, want)
			}
		}
	}
	if _, err := s.reader.ExecContext(t.Context(), `DELETE FROM cluster_user`); err == nil {
		t.Error("a reader wrote")
	}
}

func TestOnCommit(t *testing.T) {
	s, _ := migrated(t)
	var calls atomic.Int64
	s.OnCommit(func() {
		if _, err := s.Now(context.Background()); err != nil { // reading from the hook must not deadlock
			t.Error(err)
		}
		calls.Add(1)
	})
	step := func(name string, want int64, do func() error) {
		t.Helper()
		before := calls.Load()
		if err := do(); err != nil && want > 0 {
			t.Fatalf("%s: %v", name, err)
		}
		if got := calls.Load() - before; got != want {
			t.Errorf("%s: %d calls, want %d", name, got, want)
		}
	}
	ctx := t.Context()
	var o []store.Operation
	step("register", 1, func() error {
		return s.RegisterEngine(ctx, store.Instance{ID: "e", Cluster: "c", Namespace: "n", Kind: store.EngineNone})
	})
	step("announce", 1, func() (err error) {
		o, err = s.Apply(ctx, store.Change{Announce: []store.NewOperation{{
			ID: domain.NewOperationID(), Tenant: "t", Instance: "e", ResourceType: domain.ResourceApplication, ResourceID: "a",
		}}})
		return err
	})
	step("finish", 1, func() error { return s.Finish(ctx, o[0].ID, 1, domain.OperationCompleted, "") })
	step("a refused finish", 0, func() error { return s.Finish(ctx, o[0].ID, 2, domain.OperationCompleted, "") })
	step("a refused decision", 0, func() error {
		_, err := s.Apply(ctx, store.Change{Update: &store.Application{ID: "none", Version: 1}})
		return err
	})
	step("a read", 0, func() error { _, err := s.Task(ctx, domain.ResourceApplication, o[0].ID); return err })
}

// A writer that is not ours holds the lock for a moment: our write waits.
func TestForeignWriterIsWaitedFor(t *testing.T) {
	s, raw := migrated(t)
	ctx := t.Context()
	foreign, err := raw.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = foreign.Close() }()
	if _, err := foreign.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	written := make(chan error, 1)
	go func() {
		written <- s.RegisterEngine(ctx, store.Instance{ID: "e", Cluster: "c", Namespace: "n", Kind: store.EngineNone})
	}()
	// Readers do not wait for anybody.
	if _, err := s.Instances(ctx); err != nil {
		t.Errorf("reading beside a writer: %v", err)
	}
	select {
	case err := <-written:
		t.Fatalf("wrote beside another writer: %v", err)
	default:
	}
	if _, err := foreign.ExecContext(ctx, `COMMIT`); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Errorf("after the other writer has ended: %v", err)
	}
}

func TestClassify(t *testing.T) {
	_, raw := migrated(t)
	ctx := t.Context()
	if _, err := raw.ExecContext(ctx, `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	_, err := raw.ExecContext(ctx, `DELETE FROM cluster_user`)
	if got := (dialect{}).Classify(err); got != store.FaultRefused {
		t.Errorf("a write to what is read-only: %v is %v", err, got)
	}
	if got := (dialect{}).Classify(errors.New("else")); got != store.FaultOther {
		t.Errorf("an unknown error is %v", got)
	}
}

// Whoever is far behind is told so, rather than given everything at once.
func TestTooFarBehind(t *testing.T) {
	s, raw := migrated(t)
	const insert = `
WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < $1)
INSERT INTO change_log (topic, tenant, key) SELECT 'operation', 't', 'k' FROM numbers`
	if _, err := raw.ExecContext(t.Context(), insert, 100_000); err != nil {
		t.Fatal(err)
	}
	if events, next, err := s.ChangesSince(t.Context(), 0); err != nil || len(events) != 100_000 || next != 100_000 {
		t.Errorf("%d events up to %d, %v; want 100000", len(events), next, err)
	}
	if _, err := raw.ExecContext(t.Context(), insert, 1); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.ChangesSince(t.Context(), 0); !errors.Is(err, store.ErrCursorTooOld) {
		t.Errorf("one more than that: %v, want %v", err, store.ErrCursorTooOld)
	}
}
