// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/storetest"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// failFirst makes the first n inserts of operations fail as PostgreSQL fails a
// transaction that lost against another. A sequence counts them, because it
// does not go back when a transaction does.
func failFirst(t *testing.T, raw *sql.DB, n int, state string) {
	t.Helper()
	for _, statement := range []string{
		`CREATE SEQUENCE tries`,
		strings.NewReplacer("{n}", strconv.Itoa(n), "{state}", state).Replace(`
CREATE FUNCTION fail_first() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	IF nextval('tries') <= {n} THEN
		RAISE EXCEPTION 'injected' USING ERRCODE = '{state}';
	END IF;
	RETURN NEW;
END $$`),
		`CREATE TRIGGER fail_first BEFORE INSERT ON operation FOR EACH ROW EXECUTE FUNCTION fail_first()`,
	} {
		if _, err := raw.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLostTransactionsAreRunAgain(t *testing.T) {
	for _, c := range []struct {
		name, state string
		failures    int
		tries       int
		want        error
	}{
		{"a serialisation failure", "40001", 2, 3, nil},
		{"a deadlock", "40P01", 3, 4, nil},
		{"serialisation failures without end", "40001", 99, 6, domain.ErrConflict},
		{"what trying again does not help", "23514", 1, 1, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dsn := pg.Shared(t).NewDatabase(t)
			s, raw := open(t, dsn), rawDB(t, dsn)
			registered(t, s)
			failFirst(t, raw, c.failures, c.state)
			_, err := announce(t.Context(), s, "a")
			if c.tries > c.failures && err != nil {
				t.Errorf("after %d failures: %v", c.failures, err)
			}
			if c.want != nil && !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			var tries int
			if err := raw.QueryRowContext(t.Context(), `SELECT last_value FROM tries`).Scan(&tries); err != nil || tries != c.tries {
				t.Errorf("tried %d times, %v; want %d", tries, err, c.tries)
			}
		})
	}
}

// A real deadlock: the store holds one application and waits for another, which
// an operator holds who then waits for the first. PostgreSQL ends whoever has
// waited for longer, which is the store; it comes back when the operator is done.
func TestDeadlockWithAnOperator(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	s, raw, ctx := open(t, dsn), rawDB(t, dsn), t.Context()
	registered(t, s)
	for _, id := range []domain.ApplicationID{"one", "two"} {
		a := store.Application{ID: id, Tenant: "t", Name: string(id), Spec: domain.ApplicationSpec{RepoURL: "https://git.example.com/shop", Path: "deploy"}, Instance: "engine", Environment: "t", Generation: 1}
		if _, err := s.Apply(ctx, store.Change{
			Tenant: &store.Tenant{ID: "t", Namespace: "ns", Instance: "engine"},
			Insert: &store.NewApplication{Application: a, Link: store.Link{Application: id, Tenant: "t", Namespace: "ns", Name: string(id)}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	operator, err := raw.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = operator.Rollback() }()
	if _, err := operator.ExecContext(ctx, `UPDATE application SET name = 'held' WHERE id = 'two'`); err != nil {
		t.Fatal(err)
	}
	removed := make(chan error, 1)
	go func() {
		_, err := s.Apply(ctx, store.Change{Remove: []store.ApplicationRef{{ID: "one", Tenant: "t"}, {ID: "two", Tenant: "t"}}})
		removed <- err
	}()
	eventually(t, "the store waits for the operator", func() bool {
		var waiting int
		err := raw.QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		return err == nil && waiting == 1
	})
	_, err = operator.ExecContext(ctx, `UPDATE application SET name = 'held' WHERE id = 'one'`)
	if err == nil {
		err = operator.Commit()
	}
	if err != nil {
		t.Logf("PostgreSQL ended the operator instead: %v", err)
		_ = operator.Rollback()
	}
	if err := <-removed; err != nil {
		t.Errorf("the store's transaction: %v", err)
	}
	var left, deadlocks int
	if err := raw.QueryRowContext(ctx, `SELECT count(*) FROM application`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d applications left, %v", left, err)
	}
	eventually(t, "PostgreSQL counts a deadlock", func() bool {
		err := raw.QueryRowContext(ctx, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&deadlocks)
		return err == nil && deadlocks > 0
	})
}

// eventually polls for what the server does not signal.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			t.Fatal("never happened: " + what)
		case <-tick.C:
		}
	}
}

func TestServerAway(t *testing.T) {
	server := pg.New(t, pg.Options{})
	dsn := server.NewDatabase(t)
	s, ctx := open(t, dsn), t.Context()
	registered(t, s)
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()

	if err := server.Halt(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Next(ctx); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("listening: %v, want %v", err, domain.ErrUnavailable)
	}
	for range 2 { // with connections that have died, and with none
		for name, err := range storetest.EveryCall(ctx, s) {
			if !errors.Is(err, domain.ErrUnavailable) {
				t.Errorf("%s while the server is away: %v, want %v", name, err, domain.ErrUnavailable)
			}
		}
	}
	if _, err := s.Listen(ctx); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("Listen while the server is away: %v, want %v", err, domain.ErrUnavailable)
	}
	if err := server.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := announce(ctx, s, "a"); err != nil {
		t.Errorf("after the server came back: %v", err)
	}
}

// Connections that are cut between two statements cost at most an ErrUnavailable
// for each of them, and nothing is half written.
func TestCutConnections(t *testing.T) {
	server := pg.New(t, pg.Options{})
	dsn := server.NewDatabase(t)
	s, ctx := open(t, dsn), t.Context()
	registered(t, s)
	if cut, err := server.CutConnections(ctx, database(dsn)); err != nil || cut == 0 {
		t.Fatalf("cut %d connections, %v", cut, err)
	}
	eventually(t, "the store works again", func() bool {
		_, err := announce(ctx, s, "a")
		if err != nil && !errors.Is(err, domain.ErrUnavailable) {
			t.Fatalf("got %v, want %v", err, domain.ErrUnavailable)
		}
		return err == nil
	})
	waiting, err := s.Unfinished(ctx, "", "", 10)
	if err != nil || len(waiting) != 1 {
		t.Errorf("%d operations, %v; want 1", len(waiting), err)
	}
}

func database(dsn string) string { return dsn[strings.LastIndex(dsn, "/")+1 : strings.Index(dsn, "?")] }

// What a create costs is part of the contract with the benchmark: one statement
// to read, one transaction of five to write, one to look at the task, one to end it.
func TestStatementsForACreate(t *testing.T) {
	server := pg.New(t, pg.Options{CountStatements: true})
	dsn := server.NewDatabase(t)
	s, ctx := open(t, dsn), t.Context()
	registered(t, s)
	create := func(id domain.ApplicationID, tenant *store.Tenant) {
		t.Helper()
		if _, err := s.Chains(ctx, "ns", string(id)); err != nil {
			t.Fatal(err)
		}
		a := store.Application{ID: id, Tenant: "t", Name: string(id), Spec: domain.ApplicationSpec{RepoURL: "https://git.example.com/shop", Path: "deploy"}, Instance: "engine", Environment: "t", Generation: 1}
		o, err := s.Apply(ctx, store.Change{
			Tenant: tenant,
			Insert: &store.NewApplication{Application: a, Link: store.Link{Application: id, Tenant: "t", Namespace: "ns", Name: string(id)}},
			Announce: []store.NewOperation{{
				ID: domain.NewOperationID(), Tenant: "t", Instance: "engine",
				ResourceType: domain.ResourceApplication, ResourceID: string(id),
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Task(ctx, domain.ResourceApplication, o[0].ID); err != nil {
			t.Fatal(err)
		}
		if err := s.Finish(ctx, o[0].ID, o[0].Version, domain.OperationCompleted, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		id     domain.ApplicationID
		tenant *store.Tenant
		want   int64
	}{
		// The begin and the commit of the pipeline come on top. They are left out
		// because the statistics list them only when they are prepared, not when they run.
		{"first", &store.Tenant{ID: "t", Namespace: "ns", Instance: "engine"}, 10},
		{"second", nil, 6},
	} {
		if err := server.ResetStatements(ctx); err != nil {
			t.Fatal(err)
		}
		create(c.id, c.tenant)
		statements, err := server.Statements(ctx, database(dsn))
		if err != nil {
			t.Fatal(err)
		}
		var total int64
		for _, statement := range statements {
			if statement.Text != "begin" && statement.Text != "commit" {
				total += statement.Calls
			}
		}
		if total != c.want {
			t.Errorf("the %s create took %d statements, want %d: %+v", c.id, total, c.want, statements)
		}
	}
}
