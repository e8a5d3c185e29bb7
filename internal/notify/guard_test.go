// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/internal/store"
)

func operation(sequence int64, key string) store.Event {
	return store.Event{Sequence: sequence, Topic: store.TopicOperation, Key: key}
}

func TestGuardDropsWhatIsNotNews(t *testing.T) {
	state := store.Event{Sequence: 3, Topic: store.TopicApplicationState, Key: "a"}
	steps := []struct {
		event store.Event
		news  bool
	}{
		{operation(5, "a"), true},
		{operation(5, "a"), false},
		{operation(4, "a"), false},
		{operation(4, "b"), true},
		{state, true},
		{operation(6, "a"), true},
		{state, false},
	}
	g := newGuard(10)
	for i, s := range steps {
		if got := g.notification(s.event); got != s.news {
			t.Errorf("step %d: %v is news: %v, want %v", i, s.event, got, s.news)
		}
	}
}

// catchUpWith passes an answer of the log through the guard.
func catchUpWith(g *guard, events ...store.Event) {
	g.beginCatchUp()
	for _, e := range events {
		g.caughtUp(e)
	}
	g.endCatchUp()
}

func TestGuardStaysSmall(t *testing.T) {
	const limit, rounds = 10, 1000
	g := newGuard(limit)
	var sequence int64
	for range rounds {
		var notified []store.Event
		for !g.crowded() {
			sequence++
			e := operation(sequence, fmt.Sprint(sequence))
			g.notification(e)
			notified = append(notified, e)
		}
		catchUpWith(g, notified...)
		if size := len(g.keys); size > 2*limit {
			t.Fatalf("%d keys after %d events, limit %d", size, sequence, limit)
		}
	}
	if len(g.keys) != g.recent.Len() {
		t.Errorf("%d keys, but %d in the order of use", len(g.keys), g.recent.Len())
	}
}

// A catch-up's answer larger than the limit is kept until nothing in it can come
// back: not by a lagging notification, not by the next catch-up.
func TestGuardKeepsWhatCanComeBack(t *testing.T) {
	answer := []store.Event{operation(1, "a"), operation(2, "b"), operation(3, "c")}

	t.Run("lagging notifications", func(t *testing.T) {
		g := newGuard(1)
		catchUpWith(g, answer...)
		catchUpWith(g)
		catchUpWith(g)
		for _, e := range answer {
			if g.notification(e) {
				t.Errorf("%v was delivered a second time", e)
			}
		}
	})
	t.Run("read again", func(t *testing.T) {
		g := newGuard(1)
		for range 3 {
			catchUpWith(g, answer...)
			g.notification(operation(100, "z"))
		}
		for _, e := range answer {
			if g.caughtUp(e) {
				t.Errorf("%v was delivered a second time", e)
			}
		}
	})
	t.Run("until a later commit is notified and the log is past it", func(t *testing.T) {
		g := newGuard(1)
		catchUpWith(g, answer...)
		g.notification(operation(4, "d"))
		catchUpWith(g)
		if len(g.keys) != 1 {
			t.Errorf("%d keys are kept, want 1", len(g.keys))
		}
	})
	t.Run("until another connection listens and the log is past it", func(t *testing.T) {
		g := newGuard(1)
		catchUpWith(g, answer...)
		g.connected()
		catchUpWith(g)
		if len(g.keys) != 1 {
			t.Errorf("%d keys are kept, want 1", len(g.keys))
		}
	})
}

func TestGuardIsCrowdedOnceForEachLimit(t *testing.T) {
	g := newGuard(4)
	var asked int
	for i := range int64(17) {
		g.notification(operation(i+1, "a"))
		if g.crowded() {
			asked++
		}
		if g.crowded() {
			t.Fatal("asked twice for the same notifications")
		}
	}
	if asked != 4 {
		t.Errorf("asked for %d catch-ups, want 4", asked)
	}
}
