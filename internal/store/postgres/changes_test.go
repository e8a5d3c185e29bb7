// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

func registered(t *testing.T, s *postgres.Store) {
	t.Helper()
	err := s.RegisterEngine(t.Context(), store.Instance{ID: "engine", Cluster: "cluster", Namespace: "ns", Kind: store.EngineNone})
	if err != nil {
		t.Fatal(err)
	}
}

func announce(ctx context.Context, s *postgres.Store, resource string) (store.Operation, error) {
	announced, err := s.Apply(ctx, store.Change{Announce: []store.NewOperation{{
		ID: domain.NewOperationID(), Tenant: "tenant", Instance: "engine",
		ResourceType: domain.ResourceApplication, ResourceID: resource,
	}}})
	if err != nil {
		return store.Operation{}, err
	}
	return announced[0], nil
}

const insertByHand = `
INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id) VALUES ($1, 'tenant', 'engine', 'Application', $1)`

func resources(events []store.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.Resource)
	}
	return all
}

// A transaction that took its number first commits last, with a reading in
// between: the reading must not move past it.
func TestLateCommitIsNotSkipped(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	s, raw, ctx := open(t, dsn), rawDB(t, dsn), t.Context()
	registered(t, s)
	start, err := s.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	early, err := raw.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = early.Rollback() }()
	if _, err := early.ExecContext(ctx, insertByHand, "early"); err != nil {
		t.Fatal(err)
	}
	if _, err := announce(ctx, s, "late"); err != nil {
		t.Fatal(err)
	}
	first, next, err := s.ChangesSince(ctx, start)
	if err != nil || !slices.Equal(resources(first), []string{"late"}) {
		t.Fatalf("before the early one commits: %+v, %v", first, err)
	}
	if err := early.Commit(); err != nil {
		t.Fatal(err)
	}
	second, _, err := s.ChangesSince(ctx, next)
	if err != nil || !slices.Contains(resources(second), "early") {
		t.Fatalf("the early one was skipped: %+v, %v", second, err)
	}
	if second[0].Resource != "early" || second[0].Sequence >= first[0].Sequence {
		t.Errorf("the early one did not take its number first, so this proved nothing: %+v, then %+v", first, second)
	}
}

func hear(t *testing.T, l *postgres.Listener) store.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	e, err := l.Next(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestListenerHearsWhatTheLogHas(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	before := goleak.IgnoreCurrent()
	s, raw, ctx := open(t, dsn), rawDB(t, dsn), t.Context()
	registered(t, s)
	start, err := s.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	o, err := announce(ctx, s, "a")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(ctx, o.ID, 1, domain.OperationFailed, "no"); err != nil {
		t.Fatal(err)
	}
	if _, err := raw.ExecContext(ctx, insertByHand, "by hand"); err != nil {
		t.Fatal(err)
	}
	heard := []store.Event{hear(t, l), hear(t, l), hear(t, l)}
	logged, _, err := s.ChangesSince(ctx, start)
	if err != nil || !slices.Equal(heard, logged) {
		t.Errorf("heard %+v\nlogged %+v, %v", heard, logged, err)
	}

	// Neither what somebody notifies by hand nor the end of a context is the end
	// of the listener.
	for _, statement := range []string{`NOTIFY weir_change, 'not from the trigger'`, `NOTIFY weir_change, '{"seq":0}'`} {
		if _, err := raw.ExecContext(ctx, statement); err != nil {
			t.Fatal(err)
		}
		if e, err := l.Next(ctx); !errors.Is(err, store.ErrBadNotification) {
			t.Errorf("%s: heard %+v, %v; want %v", statement, e, err, store.ErrBadNotification)
		}
	}
	short, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Next(short); !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("with a cancelled context: %v", err)
	}
	if err := l.Ping(ctx); err != nil {
		t.Error(err)
	}
	if _, err := announce(ctx, s, "b"); err != nil {
		t.Fatal(err)
	}
	if e := hear(t, l); e.Resource != "b" {
		t.Errorf("heard %+v, want b", e)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Next(ctx); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("after closing: %v, want %v", err, domain.ErrUnavailable)
	}
	if err := errors.Join(s.Close(), raw.Close()); err != nil {
		t.Error(err)
	}
	goleak.VerifyNone(t, before)
}

// Notifications come in the order of commits, so for one key the numbers that
// are heard only grow.
func TestListenerHearsOneKeyInOrder(t *testing.T) {
	const keys, writers, rounds = 3, 4, 20
	dsn := pg.Shared(t).NewDatabase(t)
	s, ctx := open(t, dsn), t.Context()
	registered(t, s)
	var operations []store.Operation
	for n := range keys {
		o, err := announce(ctx, s, fmt.Sprint(n))
		if err != nil {
			t.Fatal(err)
		}
		operations = append(operations, o)
	}
	l, err := s.Listen(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	var writing sync.WaitGroup
	for w := range writers {
		writing.Go(func() {
			for round := range rounds {
				o := operations[(w+round)%keys]
				if err := s.Finish(ctx, o.ID, 1, domain.OperationInProgress, fmt.Sprintf("%d of %d", round, w)); err != nil {
					t.Errorf("write: %v", err)
				}
			}
		})
	}
	last := make(map[string]int64)
	for range writers * rounds {
		e := hear(t, l)
		if e.Sequence <= last[e.Key] {
			t.Errorf("%s: heard %d after %d", e.Key, e.Sequence, last[e.Key])
		}
		last[e.Key] = e.Sequence
	}
	writing.Wait()
}
