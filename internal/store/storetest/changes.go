// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// settled gives a cursor that covers all that has happened. A transaction under
// way elsewhere on the server may keep a cursor back for a while, which is
// allowed; then this waits for it.
func (w world) settled(t *testing.T) store.Cursor {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		c, err := w.Store.Now(ctx)
		if err != nil {
			t.Fatal(err)
		}
		events, _, err := w.Store.ChangesSince(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		if len(events) == 0 {
			return c
		}
	}
}

// follower reads the log as package notify does: an event that it has seen
// already is not news.
type follower struct {
	store  store.Store
	cursor store.Cursor
	seen   map[int64]store.Event
}

func (w world) follow(t *testing.T) *follower {
	t.Helper()
	return &follower{store: w.Store, cursor: w.settled(t), seen: make(map[int64]store.Event)}
}

// news reads on and checks that events come in order.
func (f *follower) news(t *testing.T) []store.Event {
	t.Helper()
	events, next, err := f.store.ChangesSince(t.Context(), f.cursor)
	if err != nil {
		t.Fatal(err)
	}
	f.cursor = next
	var fresh []store.Event
	for i, e := range events {
		if i > 0 && e.Sequence <= events[i-1].Sequence {
			t.Fatalf("not in the order of the sequence: %+v", events)
		}
		if _, known := f.seen[e.Sequence]; !known {
			fresh = append(fresh, e)
		}
		f.seen[e.Sequence] = e
	}
	return fresh
}

func sameEvents(t *testing.T, what string, want, got []store.Event) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.Event{}, "Sequence"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func operationEvent(o store.Operation, s domain.OperationState) store.Event {
	return store.Event{
		Topic: store.TopicOperation, Tenant: o.Tenant, Key: string(o.ID), ResourceType: o.ResourceType, Resource: o.ResourceID,
		State: string(s), Instance: o.Instance,
	}
}

func testChanges(t *testing.T, w world) {
	w.register(t, engine)
	log, whole := w.follow(t), w.follow(t)
	sameEvents(t, "nothing happened", nil, log.news(t))

	o := w.create(t, alice, "uid-1")
	state := store.Event{Topic: store.TopicApplicationState, Tenant: alice, Key: "uid-1"}
	var want []store.Event
	steps := []struct {
		name string
		do   func()
		want []store.Event
	}{
		{"announced", func() {}, []store.Event{operationEvent(o, domain.OperationWaiting)}},
		{"reused", func() { w.apply(t, updating(w.chain(t, row(alice, "uid-1")).Application, "b")) }, nil},
		{
			"begun", func() { w.finish(t, store.Operation{ID: o.ID, Version: 2}, domain.OperationInProgress, "1 of 2") },
			[]store.Event{operationEvent(o, domain.OperationInProgress)},
		},
		{
			"further along", func() { w.finish(t, store.Operation{ID: o.ID, Version: 2}, domain.OperationInProgress, "2 of 2") },
			[]store.Event{operationEvent(o, domain.OperationInProgress)},
		},
		{"the same again", func() { w.finish(t, store.Operation{ID: o.ID, Version: 2}, domain.OperationInProgress, "2 of 2") }, nil},
		{
			"ended", func() { w.finish(t, store.Operation{ID: o.ID, Version: 2}, domain.OperationCompleted, "") },
			[]store.Event{operationEvent(o, domain.OperationCompleted)},
		},
		{"first state", func() { w.save(t, report("one", 1, "Progressing")) }, []store.Event{state}},
		{"a state that says nothing new", func() { w.save(t, report("one", 2, "Progressing")) }, nil},
		{"another state", func() { w.save(t, report("one", 3, "Healthy")) }, []store.Event{state}},
		{"a late state", func() { w.save(t, report("one", 1, "Missing")) }, nil},
		{"collected", func() {
			if _, err := w.Store.Collect(t.Context(), time.Now().Add(time.Hour), 9); err != nil {
				t.Fatal(err)
			}
		}, nil},
	}
	for _, step := range steps {
		step.do()
		sameEvents(t, step.name, step.want, log.news(t))
		want = append(want, step.want...)
	}
	sameEvents(t, "all of it", want, whole.news(t))
}

func (w world) save(t *testing.T, s domain.ApplicationState) {
	t.Helper()
	if _, err := w.Store.SaveState(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

func testChangesByHand(t *testing.T, w world) {
	w.register(t, engine)
	o := w.create(t, alice, "uid-1")
	w.save(t, report("one", 1, "Healthy"))
	log := w.follow(t)
	w.exec(t, `UPDATE operation SET state = 'Failed', human_readable_state = 'an operator stepped in' WHERE id = $1`, string(o.ID))
	w.exec(t, `UPDATE application_state SET health = 'Degraded' WHERE application_id = 'uid-1'`)
	w.exec(t, `INSERT INTO operation (id, tenant, instance_id, resource_type, resource_id)
		VALUES ('by-hand', 'alice-uid', 'engine-uid', 'SyncOperation', 'sync-1')`)
	sameEvents(t, "edits by hand", []store.Event{
		operationEvent(o, domain.OperationFailed),
		{Topic: store.TopicApplicationState, Tenant: alice, Key: "uid-1"},
		{Topic: store.TopicOperation, Tenant: alice, Key: "by-hand", ResourceType: domain.ResourceSyncOperation, Resource: "sync-1", State: "Waiting", Instance: engine},
	}, log.news(t))
}

// testFollower reads the log while many write it, and compares what it got with
// what is there in the end.
func testFollower(t *testing.T, w world) {
	const writers, rounds = 6, 15
	w.register(t, engine)
	log := w.follow(t)
	var writing sync.WaitGroup
	for n := range writers {
		s := []store.Store{w.Store, w.Another}[n%2]
		writing.Go(func() {
			for round := range rounds {
				announced, err := s.Apply(t.Context(), creating(row(alice, domain.ApplicationID(fmt.Sprintf("%d-%d", n, round)))))
				if err != nil {
					t.Errorf("create: %v", err)
					return
				}
				if err := s.Finish(t.Context(), announced[0].ID, 1, domain.OperationCompleted, ""); err != nil {
					t.Errorf("finish: %v", err)
				}
			}
		})
	}
	finished := make(chan struct{})
	go func() {
		writing.Wait()
		close(finished)
	}()
	for last := false; !last; {
		select {
		case <-finished:
			last = true
		default:
		}
		log.news(t)
	}
	followed := log.seen
	if n := w.count(t, "change_log"); n != len(followed) || n != 2*writers*rounds {
		t.Errorf("followed %d events of %d, want %d", len(followed), n, 2*writers*rounds)
	}
	// For one key, sequence order is the order in which it happened.
	begun := make(map[string]int64)
	for seq, e := range followed {
		if e.State == string(domain.OperationWaiting) {
			begun[e.Key] = seq
		}
	}
	for seq, e := range followed {
		if e.State == string(domain.OperationCompleted) && seq < begun[e.Key] {
			t.Errorf("%s completed at %d, before it was announced at %d", e.Key, seq, begun[e.Key])
		}
	}
}

func testTrim(t *testing.T, w world) {
	w.register(t, engine)
	ctx := t.Context()
	start := w.settled(t)
	w.create(t, alice, "uid-1")
	middle := w.settled(t)
	trim := func(before time.Time, want int) {
		t.Helper()
		if n, err := w.Store.TrimChanges(ctx, before); err != nil || n != want {
			t.Errorf("trimmed %d, %v; want %d", n, err, want)
		}
	}
	read := func(after store.Cursor) []store.Event {
		t.Helper()
		events, _, err := w.Store.ChangesSince(ctx, after)
		if err != nil {
			t.Fatal(err)
		}
		return events
	}
	trim(time.Now().Add(-time.Hour), 0)
	if events := read(start); len(events) != 1 {
		t.Errorf("%d events, want 1", len(events))
	}
	trim(time.Now().Add(time.Hour), 1)
	_, _, err := w.Store.ChangesSince(ctx, start)
	wantError(t, "a cursor from before what was trimmed", err, store.ErrCursorTooOld)
	w.create(t, alice, "uid-2")
	if events := read(middle); len(events) != 1 || events[0].Resource != "uid-2" {
		t.Errorf("events after trimming: %+v", events)
	}
	end := w.settled(t)
	trim(time.Now().Add(time.Hour), 1)
	if events := read(end); len(events) != 0 {
		t.Errorf("events after trimming everything: %+v", events)
	}
}

func testForeignCursor(t *testing.T, w world) {
	_, _, err := w.Store.ChangesSince(t.Context(), 1<<40)
	wantError(t, "a cursor that this database never gave", err, store.ErrCursorTooOld)
}
