// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

// recorder is a consumer that keeps what it was told, and says whether any of it
// broke a promise.
type recorder struct {
	mu     sync.Mutex
	events []store.Event
	// told is the last event of each key, known also what listing showed.
	told     map[string]int64
	known    map[string]int64
	resyncs  int
	problems []string
	// list is what the consumer does when it has to look at everything again.
	list func() map[string]int64
	// hold, where not nil, is waited for by the handler.
	hold chan struct{}
}

func record(n notify.Notifier) *recorder {
	r := &recorder{told: map[string]int64{}, known: map[string]int64{}}
	n.Subscribe(store.TopicOperation, r.handle)
	n.Subscribe(store.TopicApplicationState, r.handle)
	n.OnResync(r.resync)
	return r
}

// name is what a key is called in messages and maps.
func name(e store.Event) string { return string(e.Topic) + "/" + e.Key }

func (r *recorder) handle(e store.Event) {
	r.mu.Lock()
	hold := r.hold
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id := name(e)
	if e.Sequence <= r.told[id] {
		r.problems = append(r.problems, fmt.Sprintf("%s: %d delivered after %d", id, e.Sequence, r.told[id]))
	}
	r.told[id] = max(r.told[id], e.Sequence)
	r.known[id] = max(r.known[id], e.Sequence)
	r.events = append(r.events, e)
}

func (r *recorder) resync() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.resyncs++
	if r.list == nil {
		return
	}
	for id, sequence := range r.list() {
		r.known[id] = max(r.known[id], sequence)
	}
}

func (r *recorder) setHold(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case on && r.hold == nil:
		r.hold = make(chan struct{})
	case !on && r.hold != nil:
		close(r.hold)
		r.hold = nil
	}
}

// check compares with the last committed sequence of each key.
func (r *recorder) check(want map[string]int64) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	problems := slices.Clone(r.problems)
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if r.known[id] != want[id] {
			problems = append(problems, fmt.Sprintf("%s: last known %d, last committed %d", id, r.known[id], want[id]))
		}
	}
	return problems
}

func (r *recorder) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.events)
}

func (r *recorder) sequences() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	var s []int64
	for _, e := range r.events {
		s = append(s, e.Sequence)
	}
	return s
}

func (r *recorder) resyncCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.resyncs
}
