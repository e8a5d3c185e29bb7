// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// When discovery is asked. A definition is announced a little before it is served,
// and by one server before the others: one question is not enough.
const (
	debounce      = 200 * time.Millisecond
	askAgain      = time.Second
	askLast       = 5 * time.Second
	askAnyway     = 10 * time.Minute
	askPatience   = 60 * time.Second
	silentRetry   = 10 * time.Second
	failureFirst  = time.Second
	failureLonger = 15 * time.Second
)

// Run fills the cache and keeps it up to date until the context ends. When it
// returns, all its goroutines have ended and no handler runs. An API server that
// cannot be reached is tried for ever. A cache runs once.
func (c *ClusterCache) Run(ctx context.Context) error {
	if c.ran.Swap(true) {
		return ErrAlreadyRun
	}
	ctx, cancel := context.WithCancel(ctx)
	m := manager{ClusterCache: c, workers: map[target]*worker{}}
	defer func() {
		cancel()
		m.wait()
		c.http.CloseIdleConnections()
	}()
	timer := time.NewTimer(0)
	defer timer.Stop()
	soon := true // the timer runs for a change that was noticed, or for the start
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.stale:
			// It is not set again by each of many changes: they would put it off for as
			// long as they go on.
			if !soon {
				soon = true
				m.questions = 3
				timer.Reset(debounce)
			}
		case <-timer.C:
			soon = false
			timer.Reset(m.refresh(ctx))
		}
	}
}

// manager decides what is watched. It belongs to the goroutine of Run.
type manager struct {
	*ClusterCache
	workers map[target]*worker
	// questions are left to ask after a change, this one included.
	questions int
	failures  int
}

// worker is a running watcher.
type worker struct {
	plan   plan
	feed   feed
	scope  *scopeFeed // nil if nothing is stored
	cancel context.CancelFunc
	done   chan struct{}
}

// refresh asks discovery and makes the watchers fit. It gives the time of the next
// question.
func (m *manager) refresh(ctx context.Context) time.Duration {
	asking, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	m.mu.Lock()
	before := m.served
	m.mu.Unlock()
	now, failed, err := discover(asking, m.discovery, before)
	if err != nil {
		if ctx.Err() == nil {
			m.settings.Logger.WarnContext(ctx, "discovery failed; trying again", "error", err)
		}
		m.failures++
		return jitter(min(failureFirst<<min(m.failures-1, 10), failureLonger))
	}
	m.failures = 0
	if len(failed) > 0 {
		m.settings.Logger.WarnContext(ctx, "groups do not answer to discovery; keeping what is known of them", "groups", failed)
	}
	m.fit(ctx, now, failed)
	m.questions = max(0, m.questions-1)
	switch {
	case m.questions == 2:
		return askAgain
	case m.questions == 1:
		return askLast
	case len(failed) > 0:
		return jitter(silentRetry)
	}
	return jitter(askAnyway)
}

// fit starts and stops watchers.
func (m *manager) fit(ctx context.Context, now served, failed []schema.GroupVersion) {
	want := now.targets(m.settings)
	for t, w := range m.workers {
		p, ok := want[t]
		if ok && p == w.plan {
			continue
		}
		w.cancel()
		<-w.done
		if !ok || p.stored != w.plan.stored || p.namespaced != w.plan.namespaced {
			m.drop(t, w)
			continue
		}
		// Another version of the same objects. They stay, and the list that the new
		// watcher begins with finds them as they are: nobody is told of anything.
		m.start(ctx, t, p, w.scope)
	}
	// Who is told of a new kind can be sure that its objects are awaited.
	m.tell(func() {
		m.served, m.failed, m.asked = now, failed, true
		for t := range want {
			if m.states[t] == nil {
				m.states[t] = &state{}
			}
		}
	})
	for t, p := range want {
		if m.workers[t] == nil {
			m.start(ctx, t, p, nil)
		}
	}
}

// drop forgets a target that is not served any more.
func (m *manager) drop(t target, w *worker) {
	delete(m.workers, t)
	if w.scope != nil {
		w.scope.close()
	}
	m.tell(func() { delete(m.states, t) })
}

func (m *manager) start(ctx context.Context, t target, p plan, scope *scopeFeed) {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{plan: p, feed: noFeed{}, cancel: cancel, done: make(chan struct{})}
	if p.stored {
		if scope == nil {
			scope = &scopeFeed{store: m.store, scope: m.store.open(t.gk), handlers: m.settings.EventHandlers}
		}
		scope.version = p.resource.GroupVersion()
		w.scope, w.feed = scope, scope
	}
	if definesKinds(t.gk) {
		w.feed = &definitionsFeed{feed: w.feed, changed: m.askSoon}
	}
	watcher := &watcher{
		client: m.client.Resource(p.resource).Namespace(t.namespace),
		feed:   w.feed,
		resync: m.settings.ResyncPeriod,
		lists:  m.lists,
		report: func(err error) { m.report(t, err) },
		log:    m.settings.Logger.With("resource", p.resource.String(), "namespace", t.namespace),
	}
	m.workers[t] = w
	go func() {
		defer close(w.done)
		watcher.run(ctx)
	}()
}

// report notes how it goes with a target.
func (c *ClusterCache) report(t target, err error) {
	c.tell(func() {
		if s := c.states[t]; s != nil {
			s.synced = s.synced || err == nil
			s.err = err
		}
	})
	if apierrors.IsNotFound(err) {
		c.askSoon() // it may not be served any more
	}
}

// askSoon has discovery asked again. It does not block.
func (c *ClusterCache) askSoon() {
	select {
	case c.stale <- struct{}{}:
	default:
	}
}

// wait returns when all watchers have ended.
func (m *manager) wait() {
	for _, w := range m.workers {
		w.cancel()
		<-w.done
	}
}
