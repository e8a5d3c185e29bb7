// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/sqlite"
)

func openedFile(t testing.TB) *sqlite.Store {
	t.Helper()
	s, err := sqlite.OpenAndMigrate(t.Context(), filepath.Join(t.TempDir(), "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the store: %v", err)
		}
	})
	return s
}

func TestSQLiteDeliversEveryEventOnceInOrder(t *testing.T) {
	noLeaks(t)
	s := openedFile(t)
	work := newWorkload(t, s, 12)
	n := notify.NewInProcess(s, s.OnCommit, notify.Options{})
	rec := record(n)
	started(t, n)
	work.write(t, 5, 40, 1000, func() {})
	want := work.last(t)
	eventually(t, func() []string { return rec.check(want) })

	events, _, err := s.ChangesSince(t.Context(), work.since)
	if err != nil {
		t.Fatal(err)
	}
	var sequences []int64
	for _, e := range events {
		sequences = append(sequences, e.Sequence)
	}
	if diff := cmp.Diff(sequences, rec.sequences()); diff != "" {
		t.Errorf("delivered, compared with the log (-log +delivered):\n%s", diff)
	}
}

// unreadable is a log that cannot be read for a while.
type unreadable struct {
	store.Changes
	broken atomic.Bool
}

func (u *unreadable) ChangesSince(ctx context.Context, after store.Cursor) ([]store.Event, store.Cursor, error) {
	if u.broken.Load() {
		return nil, 0, errSimDown
	}
	return u.Changes.ChangesSince(ctx, after)
}

func TestSQLiteTrimmedLogMeansResync(t *testing.T) {
	noLeaks(t)
	s := openedFile(t)
	work := newWorkload(t, s, 3)
	log := &unreadable{Changes: s}
	n := notify.NewInProcess(log, s.OnCommit, hurried(nil))
	rec := record(n)
	started(t, n)

	log.broken.Store(true)
	work.write(t, 2, 10, 100, func() {})
	if gone, err := s.TrimChanges(t.Context(), time.Now().Add(time.Hour)); err != nil || gone == 0 {
		t.Fatalf("trimmed %d: %v", gone, err)
	}
	now, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	work.since = now
	log.broken.Store(false)
	eventually(t, func() []string {
		if rec.resyncCount() == 0 {
			return []string{"no resync"}
		}
		return nil
	})
	work.write(t, 2, 10, 100, func() {})
	want := work.last(t)
	eventually(t, func() []string { return rec.check(want) })
	if rec.resyncCount() != 1 {
		t.Errorf("%d resyncs, want 1", rec.resyncCount())
	}
}
