// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// testReuseRace is the argument beside the statement that announces, played
// out: writers change applications while workers carry out operations. When it
// is quiet, for each application, somebody who finished an operation must have
// seen the last version that was written; otherwise a tenant's edit was lost.
// Only the last edit before the quiet can show a loss, so there are many rounds.
func testReuseRace(t *testing.T, w world) {
	const (
		applications = 3
		writers      = 2 // for each application
		edits        = 2 // by each, in a round
		workers      = 3
		rounds       = 15
	)
	w.register(t, engine)
	for n := range applications {
		w.create(t, alice, id(n))
	}
	r := race{seen: make(map[domain.ApplicationID]int64)}
	for round := range rounds {
		r.written.Store(false)
		var writing, working sync.WaitGroup
		for n := range applications {
			for i := range writers {
				s := []store.Store{w.Store, w.Another}[i%2]
				writing.Go(func() { r.write(t, s, row(alice, id(n)), fmt.Sprintf("%d/%d", round, i), edits) })
			}
		}
		for i := range workers {
			s := []store.Store{w.Store, w.Another}[i%2]
			working.Go(func() { r.work(t, s) })
		}
		writing.Wait()
		r.written.Store(true)
		working.Wait()
		for n := range applications {
			a := w.chain(t, row(alice, id(n))).Application
			if want := int64(1 + (round+1)*writers*edits); a.Version != want {
				t.Fatalf("%s is at version %d, want %d", a.ID, a.Version, want)
			}
			if seen := r.seen[a.ID]; seen != a.Version {
				t.Fatalf("%s: the last version is %d, but whoever finished saw %d", a.ID, a.Version, seen)
			}
		}
	}
	t.Logf("%d edits, %d operations, %d conflicts when finishing, %d when editing",
		applications*writers*edits*rounds, w.count(t, "operation"), r.overtaken.Load(), r.collided.Load())
}

type race struct {
	written             atomic.Bool
	overtaken, collided atomic.Int64

	mu   sync.Mutex
	seen map[domain.ApplicationID]int64
}

// write makes its edits, each decided on what it read and decided again where
// another writer came first.
func (r *race) write(t *testing.T, s store.Store, a store.Application, path string, edits int) {
	for done := 0; done < edits; {
		chains, err := s.Chains(t.Context(), "ns-"+string(a.Tenant), a.Name)
		if err != nil || len(chains) != 1 {
			t.Errorf("read %s: %d chains, %v", a.ID, len(chains), err)
			return
		}
		_, err = s.Apply(t.Context(), updating(chains[0].Application, fmt.Sprintf("%s/%d", path, done)))
		switch {
		case err == nil:
			done++
		case errors.Is(err, domain.ErrConflict):
			r.collided.Add(1)
		default:
			t.Errorf("edit %s: %v", a.ID, err)
			return
		}
	}
}

// work carries out what is unfinished until nothing is and nothing comes.
func (r *race) work(t *testing.T, s store.Store) {
	for {
		last := r.written.Load()
		waiting, err := s.Unfinished(t.Context(), "", "", 10)
		if err != nil {
			t.Errorf("list: %v", err)
			return
		}
		if last && len(waiting) == 0 {
			return
		}
		for _, o := range waiting {
			if err := r.carryOut(t.Context(), s, o.ID); err != nil {
				t.Errorf("carry out %s: %v", o.ID, err)
				return
			}
		}
	}
}

func (r *race) carryOut(ctx context.Context, s store.Store, o domain.OperationID) error {
	for {
		task, err := s.Task(ctx, domain.ResourceApplication, o)
		if err != nil {
			return err
		}
		if task.Operation.State.Final() {
			return nil
		}
		// The agent's own work takes time; this stands for it.
		if _, err := s.Instances(ctx); err != nil {
			return err
		}
		err = s.Finish(ctx, o, task.Operation.Version, domain.OperationCompleted, "")
		if errors.Is(err, domain.ErrConflict) {
			r.overtaken.Add(1)
			continue
		}
		if err != nil {
			return err
		}
		r.saw(*task.Application)
		return nil
	}
}

func (r *race) saw(a store.Application) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[a.ID] = max(r.seen[a.ID], a.Version)
}

// testConcurrentWriters has several decide on the same version at once: one
// wins each round, and no write is lost or applied twice.
func testConcurrentWriters(t *testing.T, w world) {
	const writers, rounds = 6, 8
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	for round := range rounds {
		read := w.chain(t, row(alice, "uid-1")).Application
		var (
			wg   sync.WaitGroup
			errs [writers]error
		)
		for i := range writers {
			s := []store.Store{w.Store, w.Another}[i%2]
			wg.Go(func() { _, errs[i] = s.Apply(t.Context(), updating(read, fmt.Sprintf("%d-%d", round, i))) })
		}
		wg.Wait()
		winner := -1
		for i, err := range errs {
			switch {
			case err == nil && winner < 0:
				winner = i
			case err == nil:
				t.Fatalf("round %d: %d and %d both won", round, winner, i)
			case !errors.Is(err, domain.ErrConflict):
				t.Fatalf("round %d: %d lost with %v", round, i, err)
			}
		}
		now := w.chain(t, read).Application
		if winner < 0 || now.Version != read.Version+1 || now.Spec.Path != fmt.Sprintf("%d-%d", round, winner) {
			t.Fatalf("round %d: %d won, and the row is %+v", round, winner, now)
		}
	}
}
