// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/workqueue"
)

// Queue is a fair workqueue.TypedRateLimitingInterface. Its methods may be called from any goroutine.
type Queue[K Keyed] struct {
	name         string
	limiter      workqueue.TypedRateLimiter[K]
	perWorkspace int
	observe      Observer
	metrics      *Metrics
	waitSeconds  prometheus.Observer // nil without metrics
	epoch        time.Time           // what now counts from; never changes

	// mu guards everything below, and what it points to. It is held for a few steps (in wake and ShutDown: a few for
	// each delayed item) and never while foreign code runs, but for Options.Weight and Keyed.WorkspaceKey, which promise
	// not to call the queue; the rate limiter, the observer and the metrics are called without it.
	//
	// Whenever mu is free:
	//
	//  1. An item is in items exactly if it is ready, running or delayed.
	//  2. An item is in its workspace's line, and in ages, exactly if its state is ready. Get alone makes it running,
	//     from ready; Done alone ends that. So it is handed out once until it is Done (exclusivity), and an Add in
	//     between becomes runningAgain, which Done turns into ready (no loss, and once however many Adds).
	//  3. A workspace is in rotation exactly if mayRun. So Get serves the front without a search, never one at its cap,
	//     and a rotation that is empty means that nothing may be handed out.
	//  4. A workspace is in idlers exactly if it has neither ready nor running items, so an item's workspace pointer
	//     never points to one that was forgotten.
	//  5. The timer stands for the earliest delayed item, or has fired and wake is about to take mu.
	//
	// No wakeup is lost. Call n the number of items that may be handed out now: over all workspaces, the ready items
	// as far as the cap leaves slots. One lineUp, and one slot set free by Done, each raise n by at most one, and each
	// ends in offer, which signals one sleeper of work. (Done of an item that was added again does both, and raises n
	// by one at most: by its own item if there is no cap, by its own slot if there is.) A worker that is awake takes
	// one item or finds n = 0. So while workers sleep and n > 0, at least min(sleepers, n) of them have been signalled
	// and are on their way; a Get that comes in between and takes an item only makes one of them go back to sleep,
	// with n = 0.
	// Sleepers that wait for the end are woken all at once, when shuttingDown is set and when the last ready item goes.
	// Those who wait for a drain sleep on a condition of their own, so that they cannot swallow a worker's signal.
	mu      sync.Mutex
	work    sync.Cond // an item may be handed out, or the end has come
	drained sync.Cond // nothing runs, or nobody wants to wait for that any more

	items      map[K]*item[K]
	workspaces map[string]*workspace[K]
	rotation   rotation[K]
	ages       ages[K]
	idlers     idlers[K]
	spares     spares[K]

	delayed  delayed[K]
	timer    *time.Timer   // nil until something is delayed
	timerDue time.Duration // when it fires; never if it is not set

	ready, running int // items in these states
	waiting        int // workspaces with ready items

	shuttingDown bool
	draining     bool
}

var _ workqueue.TypedRateLimitingInterface[Key] = (*Queue[Key])(nil)

// New makes a queue. It starts nothing: a queue that is let go of without ShutDown leaks nothing, unless items are
// delayed or it appears in metrics.
func New[K Keyed](opts Options[K]) *Queue[K] {
	if opts.RateLimiter == nil {
		opts.RateLimiter = DefaultRateLimiter[K]()
	}
	q := &Queue[K]{
		name:         opts.Name,
		limiter:      opts.RateLimiter,
		perWorkspace: max(0, opts.PerWorkspace),
		observe:      opts.Observe,
		metrics:      opts.Metrics,
		epoch:        time.Now(),
		items:        map[K]*item[K]{},
		workspaces:   map[string]*workspace[K]{},
		rotation:     rotation[K]{weight: opts.Weight},
		timerDue:     never,
	}
	q.work.L, q.drained.L = &q.mu, &q.mu
	if q.metrics != nil {
		q.waitSeconds = q.metrics.open(q.name, q)
	}
	return q
}

// now is the time since the queue was made, by the monotonic clock: turning the wall clock changes no wait or delay.
func (q *Queue[K]) now() time.Duration { return time.Since(q.epoch) }

// Add makes the item ready, or marks it for another run if it is running. It does nothing if that is so already, or if
// the queue is shutting down.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.shuttingDown {
		q.want(q.known(key), q.now())
	}
}

// Len is the number of ready items; by the time it is looked at it may be another.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready
}

// Get waits for the next item whose turn it is. Done must be called with it. After ShutDown Get hands out what is
// ready, and then says shutdown.
func (q *Queue[K]) Get() (key K, shutdown bool) {
	out, ok := q.next()
	if !ok {
		return key, true
	}
	if q.observe != nil {
		q.observe(out.workspace, out.wait, out.depth)
	}
	if q.waitSeconds != nil {
		q.waitSeconds.Observe(out.wait.Seconds())
	}
	return out.key, false
}

// Done ends the item's run. The item becomes ready again if it was added meanwhile; otherwise its slot goes to the next
// of its workspace. Done of an item that is not running does nothing.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.items[key]
	if it == nil || !it.isRunning() {
		return
	}
	w := it.workspace
	w.running--
	q.running--
	if it.state == runningAgain {
		q.lineUp(it, q.now())
	} else {
		it.state, it.workspace = resting, nil
		q.release(it)
		q.offer(w)
		if w.isIdle() {
			q.retire(w, q.now())
		}
	}
	if q.running == 0 {
		q.drained.Broadcast()
	}
}

// ShutDown ends the queue: what is added from now on is ignored, what is delayed is dropped, and Get says shutdown once
// nothing is ready any more. It does not wait, and ends the wait of a ShutDownWithDrain. It may be called repeatedly.
func (q *Queue[K]) ShutDown() { q.shutDown(false) }

// ShutDownWithDrain is ShutDown and then waits, as client-go's does, until no item is running.
func (q *Queue[K]) ShutDownWithDrain() { q.shutDown(true) }

func (q *Queue[K]) shutDown(drain bool) {
	if q.metrics != nil {
		q.metrics.close(q.name, q)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shuttingDown, q.draining = true, drain
	q.dropDelayed()
	q.work.Broadcast()
	q.drained.Broadcast()
	for q.draining && q.running > 0 {
		q.drained.Wait()
	}
}

// ShuttingDown tells whether ShutDown or ShutDownWithDrain was called.
func (q *Queue[K]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shuttingDown
}

// handout is an item on its way to a worker.
type handout[K Keyed] struct {
	key       K
	workspace string
	wait      time.Duration
	depth     int // ready items left
}

// next waits for an item that may run and makes it running; false is the end.
//
// While the queue shuts down an empty rotation is not yet the end: ready items of a workspace at its cap are still to
// come. Items that are runningAgain are no reason to wait: the worker that calls Done for them comes here next.
func (q *Queue[K]) next() (handout[K], bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.rotation.front == nil {
		if q.shuttingDown && q.ready == 0 {
			return handout[K]{}, false
		}
		q.work.Wait()
	}
	w := q.rotation.front
	it := w.pop()
	it.state = running
	w.running++
	q.running++
	q.rotation.served(w.mayRun(q.perWorkspace))

	q.ages.remove(it)
	q.ready--
	if w.ready == 0 {
		q.waiting--
	}
	if q.shuttingDown && q.ready == 0 {
		q.work.Broadcast()
	}
	wait := q.now() - it.since
	w.waits.add(wait)
	return handout[K]{key: it.key, workspace: w.name, wait: wait, depth: q.ready}, true
}

// known finds the item of key, or begins to know it. The caller makes it ready or delayed.
func (q *Queue[K]) known(key K) *item[K] {
	it := q.items[key]
	if it == nil {
		it = q.spares.take(key)
		q.items[key] = it
	}
	return it
}

// release stops knowing an item that neither waits, runs nor is delayed.
func (q *Queue[K]) release(it *item[K]) {
	if it.state == resting && it.place == 0 {
		delete(q.items, it.key)
		q.spares.give(it)
	}
}

// want sees to it that the item will be handed out, once.
func (q *Queue[K]) want(it *item[K], now time.Duration) {
	switch it.state {
	case resting:
		it.workspace = q.busy(it.key.WorkspaceKey())
		q.lineUp(it, now)
	case running:
		it.state = runningAgain
	case ready, runningAgain: // it will be already
	}
}

// lineUp puts the item at the end of its workspace's line.
func (q *Queue[K]) lineUp(it *item[K], now time.Duration) {
	w := it.workspace
	it.state, it.since = ready, now
	w.push(it)
	q.ages.add(it)
	q.ready++
	if w.ready == 1 {
		q.waiting++
	}
	q.offer(w)
}

// offer must be called when w has got an item or a slot: it brings w into the rotation and wakes a worker, if an item of
// w may run.
func (q *Queue[K]) offer(w *workspace[K]) {
	if !w.mayRun(q.perWorkspace) {
		return
	}
	if !w.inRotation {
		q.rotation.join(w)
	}
	q.work.Signal()
}

// busy finds or makes the workspace for an item that becomes ready.
func (q *Queue[K]) busy(name string) *workspace[K] {
	w := q.workspaces[name]
	switch {
	case w == nil:
		w = &workspace[K]{name: name}
		q.workspaces[name] = w
	case w.isIdle():
		q.idlers.remove(w)
	}
	return w
}

// retire remembers a workspace that fell idle for its waits, and forgets others whose time is up: two at most, which is
// more than come in, and keeps Done O(1).
func (q *Queue[K]) retire(w *workspace[K], now time.Duration) {
	q.idlers.add(w, now)
	for range 2 {
		old := q.idlers.expired(now)
		if old == nil {
			return
		}
		q.idlers.remove(old)
		delete(q.workspaces, old.name)
	}
}
