// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"container/heap"
	"math"
	"time"
)

// never is a due time that does not come.
const never = time.Duration(math.MaxInt64)

// AddAfter adds the item when the delay has passed. If it is delayed already the earlier time counts.
func (q *Queue[K]) AddAfter(key K, delay time.Duration) {
	if delay <= 0 {
		q.Add(key)
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return
	}
	now := q.now()
	due := now + min(delay, never-now)
	it := q.known(key)
	switch {
	case it.place == 0:
		it.due = due
		heap.Push(&q.delayed, it)
	case due < it.due:
		it.due = due
		heap.Fix(&q.delayed, it.place-1)
	}
	q.setTimer(now)
}

// AddRateLimited adds the item after the time that the rate limiter says.
func (q *Queue[K]) AddRateLimited(key K) { q.AddAfter(key, q.limiter.When(key)) }

// Forget ends the item's backoff: its next failure counts as the first. Done must be called all the same.
func (q *Queue[K]) Forget(key K) { q.limiter.Forget(key) }

// NumRequeues is how often the item was added with AddRateLimited since it was last forgotten.
func (q *Queue[K]) NumRequeues(key K) int { return q.limiter.NumRequeues(key) }

// setTimer makes the timer stand for the earliest delayed item.
//
// It is called after every change of the heap, so an item never waits for a timer that is set for later. The timer may
// fire for an item that is gone, or a firing may be on its way when the timer is set again; wake goes by the heap and
// the time alone, so one call too many does nothing.
func (q *Queue[K]) setTimer(now time.Duration) {
	next := never
	if len(q.delayed) > 0 {
		next = q.delayed[0].due
	}
	if next == q.timerDue {
		return
	}
	q.timerDue = next
	switch {
	case q.timer == nil:
		q.timer = time.AfterFunc(next-now, q.wake)
	case next == never:
		q.timer.Stop()
	default:
		q.timer.Reset(next - now)
	}
}

// wake is the timer's function: it adds every delayed item whose time has come.
func (q *Queue[K]) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for len(q.delayed) > 0 && q.delayed[0].due <= now {
		it := heap.Pop(&q.delayed).(*item[K])
		q.want(it, now)
	}
	q.timerDue = never // it has fired
	q.setTimer(now)
}

// dropDelayed forgets all delays, and stops the timer whatever it stands for.
func (q *Queue[K]) dropDelayed() {
	for _, it := range q.delayed {
		it.place = 0
		q.release(it)
	}
	q.delayed = nil
	if q.timer != nil {
		q.timer.Stop()
	}
}

// delayed is a heap (container/heap) by due time, in which each item knows its place.
type delayed[K Keyed] []*item[K]

func (d delayed[K]) Len() int           { return len(d) }
func (d delayed[K]) Less(i, j int) bool { return d[i].due < d[j].due }

func (d delayed[K]) Swap(i, j int) {
	d[i], d[j] = d[j], d[i]
	d[i].place, d[j].place = i+1, j+1
}

func (d *delayed[K]) Push(x any) {
	it := x.(*item[K])
	*d = append(*d, it)
	it.place = len(*d)
}

func (d *delayed[K]) Pop() any {
	last := len(*d) - 1
	it := (*d)[last]
	(*d)[last] = nil
	*d = (*d)[:last]
	it.place = 0
	return it
}
