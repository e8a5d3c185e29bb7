// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// endless is a log that has one more key each time it is asked.
type endless struct{}

func (endless) Now(context.Context) (store.Cursor, error) { return 0, nil }

func (endless) ChangesSince(_ context.Context, after store.Cursor) ([]store.Event, store.Cursor, error) {
	sequence := int64(after) + 1
	return []store.Event{operation(sequence, fmt.Sprint(sequence))}, after + 1, nil
}

func (endless) TrimChanges(context.Context, time.Time) (int, error) { return 0, nil }

func TestInProcessGuardStaysSmall(t *testing.T) {
	const limit = 10
	n := NewInProcess(endless{}, func(func()) {}, Options{Keys: limit})
	for range 1000 {
		if err := n.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if size := len(n.guard.keys); size != limit {
		t.Errorf("%d keys are kept, want %d", size, limit)
	}
}

// broken is a connection that is lost as soon as it is made.
type broken struct{}

func (broken) Next(context.Context) (store.Event, error) { return store.Event{}, errors.New("lost") }
func (broken) Close() error                              { return nil }

func TestListeningGuardStaysSmallWithoutAnyNotification(t *testing.T) {
	const limit = 10
	source := From(func(context.Context) (broken, error) { return broken{}, nil })
	n := NewListening(source, endless{}, Options{Keys: limit})
	for range 1000 {
		if err := n.connection(t.Context()); err == nil {
			t.Fatal("a broken connection ended without an error")
		}
	}
	if size := len(n.guard.keys); size != limit {
		t.Errorf("%d keys are kept, want %d", size, limit)
	}
}

// The cost of an event from the queue to the handler, over many keys.
func BenchmarkNotified(b *testing.B) {
	f := newFeed(endless{}, Options{})
	f.Subscribe(store.TopicOperation, func(store.Event) {})
	events := make([]store.Event, 10_000)
	for i := range events {
		events[i] = operation(0, fmt.Sprint("key-", i))
	}
	b.ReportAllocs()
	var sequence int64
	for b.Loop() {
		e := events[sequence%int64(len(events))]
		sequence++
		e.Sequence = sequence
		f.notified(e)
	}
}
