// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

const (
	tenant   domain.TenantID   = "tenant"
	instance domain.InstanceID = "instance"
)

// workload is many writers on few rows of a real database.
type workload struct {
	store      store.Store
	operations []store.Operation
	// since is from before the first write.
	since   store.Cursor
	changes atomic.Int64
}

// newWorkload makes the rows that are then written to.
func newWorkload(t testing.TB, s store.Store, rows int) *workload {
	t.Helper()
	ctx := t.Context()
	err := s.RegisterEngine(ctx, store.Instance{ID: instance, Cluster: "cluster", Namespace: "engine", Kind: store.EngineNone})
	if err != nil {
		t.Fatal(err)
	}
	w := &workload{store: s}
	for i := range rows {
		id := application(i)
		made, err := s.Apply(ctx, store.Change{
			Tenant: &store.Tenant{ID: tenant, Namespace: "tenant", Instance: instance},
			Insert: &store.NewApplication{
				Application: store.Application{
					ID: id, Tenant: tenant, Name: string(id), Instance: instance, Environment: domain.LocalEnvironment(tenant),
				},
				Link: store.Link{Application: id, Tenant: tenant, Namespace: "tenant", Name: string(id)},
			},
			Announce: []store.NewOperation{announcement(string(id))},
		})
		if err != nil {
			t.Fatal(err)
		}
		w.operations = append(w.operations, made...)
	}
	if w.since, err = s.Now(ctx); err != nil {
		t.Fatal(err)
	}
	return w
}

func application(i int) domain.ApplicationID { return domain.ApplicationID(fmt.Sprintf("app-%d", i)) }

func announcement(resource string) store.NewOperation {
	return store.NewOperation{
		ID: domain.NewOperationID(), Tenant: tenant, Instance: instance,
		ResourceType: domain.ResourceApplication, ResourceID: resource,
	}
}

// change commits one change: of a state, of an operation, or of several new
// operations in one transaction.
func (w *workload) change(ctx context.Context) error {
	number := w.changes.Add(1)
	i := rand.IntN(len(w.operations))
	switch rand.IntN(8) {
	case 0:
		var many store.Change
		for range 3 {
			n := announcement("")
			n.ResourceID = string(n.ID)
			many.Announce = append(many.Announce, n)
		}
		_, err := w.store.Apply(ctx, many)
		return err
	case 1, 2, 3:
		_, err := w.store.SaveState(ctx, domain.ApplicationState{
			Application: application(i), Tenant: tenant, EngineUID: "uid", Sequence: number, HealthMessage: fmt.Sprint(number),
		})
		return err
	default:
		o := w.operations[i]
		return w.store.Finish(ctx, o.ID, o.Version, domain.OperationInProgress, fmt.Sprint(number))
	}
}

// write has several writers make so many changes each, while the database may be
// away now and then, and calls between after every so many changes in all.
func (w *workload) write(t *testing.T, writers, each, every int, between func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var writing sync.WaitGroup
	committed := make(chan struct{})
	for range writers {
		writing.Go(func() {
			for range each {
				if err := w.insist(ctx); err != nil {
					t.Errorf("writing: %v", err)
					return
				}
				committed <- struct{}{}
			}
		})
	}
	go func() {
		writing.Wait()
		close(committed)
	}()
	var count int
	for range committed {
		if count++; count%every == 0 {
			between()
		}
	}
}

// insist makes a change, again and again while the database is away. Whether a
// try whose answer was lost took effect does not matter: the log knows.
func (w *workload) insist(ctx context.Context) error {
	for {
		err := w.change(ctx)
		if !errors.Is(err, domain.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		pauseBetweenTries(ctx)
	}
}

// last reads from the log itself the last sequence of each key.
func (w *workload) last(t *testing.T) map[string]int64 {
	t.Helper()
	var events []store.Event
	eventually(t, func() []string {
		var err error
		if events, _, err = w.store.ChangesSince(t.Context(), w.since); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
	last := map[string]int64{}
	for _, e := range events {
		last[name(e)] = max(last[name(e)], e.Sequence)
	}
	return last
}

// pauseBetweenTries is for what a real server does not signal.
func pauseBetweenTries(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

// eventually waits until nothing is wrong.
func eventually(t *testing.T, wrong func() []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		problems := wrong()
		if len(problems) == 0 {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("in the end, of %d: %v", len(problems), problems[:min(len(problems), 5)])
		}
		pauseBetweenTries(ctx)
	}
}

// started runs a notifier until the test ends, and waits until it is ready.
func started(t testing.TB, n notify.Notifier) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
	select {
	case <-n.Ready():
	case <-time.After(30 * time.Second):
		t.Fatalf("not ready: %v", n.Healthy())
	}
}
