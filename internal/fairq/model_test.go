// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestAgainstModel drives a queue with random calls from random numbers of waiting workers and compares it after every
// call with a model that is too simple to be wrong: exclusivity, caps, order inside a workspace, no loss, and no worker
// asleep while there is something for it.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rapid.SyncTest(t, func(t *rapid.T) {
			m := newMachine(rapid.IntRange(0, 3).Draw(t, "cap"))
			t.Repeat(map[string]func(*rapid.T){
				"add":   m.add,
				"after": m.addAfter,
				"get":   m.get,
				"done":  m.done,
				"time":  m.passTime,
				"":      m.check,
			})
			m.finish(t)
		})
	})
}

// modelItem is an item as its user sees it.
type modelItem struct {
	ready, running, again bool
	due                   time.Time // zero: not delayed
}

// machine is the queue, the model, and the workers that wait in Get.
type machine struct {
	q     *Queue[Key]
	limit int

	items map[Key]*modelItem
	lines map[string][]Key // ready items by workspace, in order
	runs  map[string]int   // running items by workspace

	workers int // waiting in Get
	got     chan result
	delays  time.Duration
}

func newMachine(limit int) *machine {
	return &machine{
		q: New(Options[Key]{PerWorkspace: limit}), limit: limit,
		items: map[Key]*modelItem{}, lines: map[string][]Key{}, runs: map[string]int{},
		got: make(chan result, 1000),
	}
}

func (m *machine) draw(t *rapid.T) (Key, *modelItem) {
	k := Key{
		Workspace:   rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "workspace"),
		Application: rapid.SampledFrom([]string{"1", "2", "3", "4"}).Draw(t, "application"),
	}
	if m.items[k] == nil {
		m.items[k] = &modelItem{}
	}
	return k, m.items[k]
}

func (m *machine) add(t *rapid.T) {
	k, it := m.draw(t)
	m.q.Add(k)
	m.want(k, it)
}

func (m *machine) want(k Key, it *modelItem) {
	switch {
	case it.running:
		it.again = true
	case !it.ready:
		it.ready = true
		m.lines[k.Workspace] = append(m.lines[k.Workspace], k)
	}
}

// addAfter never has two delays end at the same time, because nothing is promised about the order of such a pair.
func (m *machine) addAfter(t *rapid.T) {
	k, it := m.draw(t)
	m.delays++
	delay := time.Duration(rapid.IntRange(1, 5).Draw(t, "seconds"))*time.Second + m.delays
	m.q.AddAfter(k, delay)
	if due := time.Now().Add(delay); it.due.IsZero() || due.Before(it.due) {
		it.due = due
	}
}

func (m *machine) get(*rapid.T) {
	m.workers++
	go func() {
		k, shutdown := m.q.Get()
		m.got <- result{k, shutdown}
	}()
}

func (m *machine) done(t *rapid.T) {
	var running []Key
	for k, it := range m.items {
		if it.running {
			running = append(running, k)
		}
	}
	if len(running) == 0 {
		t.Skip("nothing runs")
	}
	slices.SortFunc(running, func(a, b Key) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	m.doneOne(rapid.SampledFrom(running).Draw(t, "item"))
}

func (m *machine) doneOne(k Key) {
	m.q.Done(k)
	it := m.items[k]
	again := it.again
	it.running, it.again = false, false
	m.runs[k.Workspace]--
	if again {
		m.want(k, it)
	}
}

func (m *machine) passTime(t *rapid.T) {
	m.pass(time.Duration(rapid.IntRange(1, 3).Draw(t, "seconds")) * time.Second)
}

func (m *machine) pass(d time.Duration) {
	advance(d)
	var due []Key
	for k, it := range m.items {
		if !it.due.IsZero() && !it.due.After(time.Now()) {
			due = append(due, k)
		}
	}
	slices.SortFunc(due, func(a, b Key) int { return m.items[a].due.Compare(m.items[b].due) })
	for _, k := range due {
		m.items[k].due = time.Time{}
		m.want(k, m.items[k])
	}
}

// check lets the workers have what they can have, and compares.
func (m *machine) check(t *rapid.T) {
	synctest.Wait()
	handedOut := map[string][]Key{}
	for range len(m.got) {
		r := <-m.got
		if r.shutdown {
			t.Fatal("Get says shutdown")
		}
		m.workers--
		handedOut[r.key.Workspace] = append(handedOut[r.key.Workspace], r.key)
	}
	for ws, keys := range handedOut {
		m.checkHandedOut(t, ws, keys)
	}
	if m.workers > 0 && m.mayRun() {
		t.Fatalf("%d workers sleep while there are items for them: %v", m.workers, m.lines)
	}
	m.checkStats(t)
}

// checkHandedOut takes the items that were handed out at one moment, which come in any order: several workers got them.
func (m *machine) checkHandedOut(t *rapid.T, ws string, keys []Key) {
	if len(keys) > len(m.lines[ws]) {
		t.Fatalf("handed out %v, but only %v are ready", keys, m.lines[ws])
	}
	first := m.lines[ws][:len(keys)]
	m.lines[ws] = m.lines[ws][len(keys):]
	for _, k := range keys {
		if !slices.Contains(first, k) {
			t.Fatalf("handed out %v, want %v first", keys, first)
		}
		if m.items[k].running {
			t.Fatalf("%v is handed out twice at once", k)
		}
		m.items[k].ready, m.items[k].running = false, true
	}
	m.runs[ws] += len(keys)
	if m.limit > 0 && m.runs[ws] > m.limit {
		t.Fatalf("%d items of %q run, the cap is %d", m.runs[ws], ws, m.limit)
	}
}

func (m *machine) mayRun() bool {
	for ws, line := range m.lines {
		if len(line) > 0 && (m.limit == 0 || m.runs[ws] < m.limit) {
			return true
		}
	}
	return false
}

func (m *machine) checkStats(t *rapid.T) {
	var want Stats
	for _, it := range m.items {
		if !it.due.IsZero() {
			want.Delayed++
		}
	}
	for _, n := range m.runs {
		want.Running += n
	}
	for ws, line := range m.lines {
		want.Ready += len(line)
		if len(line) > 0 {
			want.Waiting++
			if m.limit > 0 && m.runs[ws] == m.limit {
				want.Capped++
			}
		}
	}
	got := m.q.Stats()
	got.Oldest = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	if m.q.Len() != want.Ready {
		t.Fatalf("Len = %d, want %d", m.q.Len(), want.Ready)
	}
}

// finish lets everything come to its end: all that was ever wanted is handed out, nothing is left, and all workers
// are told to go.
func (m *machine) finish(t *rapid.T) {
	m.pass(time.Minute)
	for m.check(t); m.mayRun() || m.q.Stats().Running > 0; m.check(t) {
		for k, it := range m.items {
			if it.running {
				m.doneOne(k)
			}
		}
		m.get(t)
	}
	if diff := cmp.Diff(Stats{}, m.q.Stats()); diff != "" {
		t.Fatal(diff)
	}
	if len(m.q.items) != 0 {
		t.Fatalf("%d items are still known", len(m.q.items))
	}
	m.q.ShutDown()
	synctest.Wait()
	if len(m.got) != m.workers {
		t.Fatalf("%d of %d workers were told to go", len(m.got), m.workers)
	}
}
