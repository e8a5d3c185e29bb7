// SPDX-License-Identifier: Apache-2.0

package fairq

import "time"

// state is where an item is between Add and Done. A delay is independent of it: an item of any state may be delayed too.
type state uint8

const (
	resting      state = iota // known for its delay only
	ready                     // in its workspace's line
	running                   // handed out
	runningAgain              // handed out, and added since
)

// item is what the queue knows of one K, from the first Add until it neither waits, runs nor is delayed.
type item[K Keyed] struct {
	key   K
	state state

	// workspace is set while the item is ready or running; it keeps the workspace from being forgotten.
	workspace *workspace[K]

	// Links of two lists that hold exactly the ready items: the line of the workspace, and all by age.
	behind       *item[K]
	older, newer *item[K]
	since        time.Duration // when it became ready

	// Place in the heap of delayed items; 0 is "not delayed", so places count from 1.
	place int
	due   time.Duration
}

func (it *item[K]) isRunning() bool { return it.state == running || it.state == runningAgain }

// ages lists the ready items of all workspaces, the longest ready first. It exists to tell the oldest wait in O(1).
type ages[K Keyed] struct {
	oldest, newest *item[K]
}

func (a *ages[K]) add(it *item[K]) {
	it.older, it.newer = a.newest, nil
	if a.newest == nil {
		a.oldest = it
	} else {
		a.newest.newer = it
	}
	a.newest = it
}

func (a *ages[K]) remove(it *item[K]) {
	if it.older == nil {
		a.oldest = it.newer
	} else {
		it.older.newer = it.newer
	}
	if it.newer == nil {
		a.newest = it.older
	} else {
		it.newer.older = it.older
	}
	it.older, it.newer = nil, nil
}

// maxSpares bounds the memory that spares keep after a burst.
const maxSpares = 256

// spares keeps items for reuse, so that a queue in steady state allocates nothing.
type spares[K Keyed] struct {
	items []*item[K]
}

func (s *spares[K]) take(key K) *item[K] {
	n := len(s.items)
	if n == 0 {
		return &item[K]{key: key}
	}
	it := s.items[n-1]
	s.items[n-1] = nil
	s.items = s.items[:n-1]
	it.key = key
	return it
}

// give must get an item that nothing links to any more.
func (s *spares[K]) give(it *item[K]) {
	if len(s.items) < maxSpares {
		*it = item[K]{}
		s.items = append(s.items, it)
	}
}
