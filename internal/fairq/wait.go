// SPDX-License-Identifier: Apache-2.0

package fairq

import "time"

const (
	// keepWaits is how long the waits of a workspace are remembered after it fell idle.
	keepWaits = time.Hour
	// maxIdle bounds how many idle workspaces are remembered, whatever their age, so that a stream of short-lived
	// tenants cannot make the queue grow.
	maxIdle = 16384
)

// Waits are the waits of one workspace since it was last idle for an hour.
type Waits struct {
	Count          uint64        // items handed out
	Sum, Max, Last time.Duration // how long they had been ready
	Ready, Running int           // items now
	Oldest         time.Duration // how long the oldest of the ready ones has been ready by now
}

// Stats are the state of the queue at one moment.
type Stats struct {
	Ready   int // items waiting to be handed out; Len
	Running int // items handed out and not Done
	Delayed int // items waiting for their time

	Waiting int           // workspaces that have ready items
	Capped  int           // those among them that wait only for a slot of their own
	Oldest  time.Duration // how long the oldest ready item has been ready
}

// Waits tells how long a workspace's items had to wait. A workspace that is not known, or not any more, has none.
func (q *Queue[K]) Waits(workspace string) Waits {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	w := q.workspaces[workspace]
	if w == nil || w.isIdle() && now-w.waits.idleSince >= keepWaits {
		return Waits{}
	}
	out := Waits{
		Count: w.waits.count, Sum: w.waits.sum, Max: w.waits.max, Last: w.waits.last,
		Ready: w.ready, Running: w.running,
	}
	if w.first != nil {
		out.Oldest = now - w.first.since
	}
	return out
}

// Stats tells the state of the queue now.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := Stats{
		Ready: q.ready, Running: q.running, Delayed: len(q.delayed),
		Waiting: q.waiting, Capped: q.waiting - q.rotation.len,
	}
	if q.ages.oldest != nil {
		out.Oldest = q.now() - q.ages.oldest.since
	}
	return out
}

// waits are a workspace's measurements, and its place among the idle workspaces while it is idle.
type waits[K Keyed] struct {
	count          uint64
	sum, max, last time.Duration

	idleSince    time.Duration
	older, newer *workspace[K]
}

func (w *waits[K]) add(wait time.Duration) {
	w.count++
	w.sum += wait
	w.max = max(w.max, wait)
	w.last = wait
}

// idlers lists the workspaces that are remembered only for their waits, the one idle for longest first.
type idlers[K Keyed] struct {
	oldest, newest *workspace[K]
	len            int
}

func (l *idlers[K]) add(w *workspace[K], now time.Duration) {
	w.waits.idleSince = now
	w.waits.older, w.waits.newer = l.newest, nil
	if l.newest == nil {
		l.oldest = w
	} else {
		l.newest.waits.newer = w
	}
	l.newest = w
	l.len++
}

func (l *idlers[K]) remove(w *workspace[K]) {
	if w.waits.older == nil {
		l.oldest = w.waits.newer
	} else {
		w.waits.older.waits.newer = w.waits.newer
	}
	if w.waits.newer == nil {
		l.newest = w.waits.older
	} else {
		w.waits.newer.waits.older = w.waits.older
	}
	w.waits.older, w.waits.newer = nil, nil
	l.len--
}

// expired is the workspace to forget next, or nil.
func (l *idlers[K]) expired(now time.Duration) *workspace[K] {
	if l.oldest != nil && (l.len > maxIdle || now-l.oldest.waits.idleSince >= keepWaits) {
		return l.oldest
	}
	return nil
}
