// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

var (
	errSimDown = errors.New("simulated: the database does not answer")
	errSimCut  = errors.New("simulated: the connection was cut")
)

// simDB is a database with PostgreSQL's rules in small: sequences are drawn when a
// row is written, transactions commit in any order, a row that is written in an open
// transaction is locked, cursors are transaction ids, and notifications leave in
// commit order. It serves to put faults where a real server would not.
type simDB struct {
	mu        sync.Mutex
	sequence  int64
	xid       int64
	open      map[int64]*simTx
	log       []simEntry
	horizon   store.Cursor
	listeners []*simListener
	down      bool
	// slow is how long the log takes to be read.
	slow      time.Duration
	reads     int
	committed []func()
	// route decides what becomes of a notification on its way to a listener.
	route func(*simListener, store.Event)
}

type simTx struct {
	xid    int64
	events []store.Event
}

type simEntry struct {
	xid   int64
	event store.Event
}

func newSimDB() *simDB {
	return &simDB{
		xid:   1,
		open:  map[int64]*simTx{},
		route: func(l *simListener, e store.Event) { l.send(e) },
	}
}

func (d *simDB) begin() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.xid++
	d.open[d.xid] = &simTx{xid: d.xid}
	return d.xid
}

// write changes a key in a transaction, unless another open one holds the key.
func (d *simDB) write(xid int64, key string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for other, tx := range d.open {
		holds := slices.ContainsFunc(tx.events, func(e store.Event) bool { return e.Key == key })
		if other != xid && holds {
			return false
		}
	}
	d.sequence++
	tx := d.open[xid]
	tx.events = append(tx.events, store.Event{Sequence: d.sequence, Topic: store.TopicOperation, Key: key})
	return true
}

func (d *simDB) commit(xid int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	tx := d.open[xid]
	delete(d.open, xid)
	for _, e := range tx.events {
		d.log = append(d.log, simEntry{xid, e})
		for _, l := range d.listeners {
			d.route(l, e)
		}
	}
	for _, f := range d.committed {
		f()
	}
}

// onCommit registers what to call after each commit.
func (d *simDB) onCommit(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.committed = append(d.committed, f)
}

// change writes and commits one key.
func (d *simDB) change(key string) {
	xid := d.begin()
	d.write(xid, key)
	d.commit(xid)
}

func (d *simDB) openXids() []int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	var xids []int64
	for xid := range d.open {
		xids = append(xids, xid)
	}
	slices.Sort(xids)
	return xids
}

// last is the sequence of each key's last committed change.
func (d *simDB) last() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	last := map[string]int64{}
	for _, e := range d.log {
		last[name(e.event)] = max(last[name(e.event)], e.event.Sequence)
	}
	return last
}

// trim forgets what the cursors given from now on will not need.
func (d *simDB) trim() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.horizon = d.xmin()
}

// trimTooMuch forgets also what is needed because of open transactions.
func (d *simDB) trimTooMuch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.horizon = store.Cursor(d.xid + 1)
}

// restore puts the database back to how it was empty.
func (d *simDB) restore() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sequence, d.xid, d.log, d.open = 0, 1, nil, map[int64]*simTx{}
}

// failOver goes on as a replica that had not received the last n events.
func (d *simDB) failOver(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.log = d.log[:len(d.log)-n]
	last := d.log[len(d.log)-1]
	d.sequence, d.xid = last.event.Sequence, last.xid
	for _, l := range d.listeners {
		l.sever()
	}
}

func (d *simDB) setDown(down bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.down = down
}

func (d *simDB) readCount() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.reads
}

// each calls f for every connection that was made, dead ones too.
func (d *simDB) each(f func(*simListener)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.listeners {
		f(l)
	}
}

func (d *simDB) xmin() store.Cursor {
	oldest := d.xid + 1
	for xid := range d.open {
		oldest = min(oldest, xid)
	}
	return store.Cursor(oldest)
}

func (d *simDB) ChangesSince(ctx context.Context, after store.Cursor) ([]store.Event, store.Cursor, error) {
	if err := d.think(ctx); err != nil {
		return nil, 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reads++
	switch {
	case d.down:
		return nil, 0, errSimDown
	case after < d.horizon:
		return nil, 0, store.ErrCursorTooOld
	}
	var events []store.Event
	for _, e := range d.log {
		if store.Cursor(e.xid) >= after {
			events = append(events, e.event)
		}
	}
	slices.SortFunc(events, func(a, b store.Event) int { return cmp.Compare(a.Sequence, b.Sequence) })
	return events, d.xmin(), nil
}

func (d *simDB) think(ctx context.Context) error {
	d.mu.Lock()
	slow := d.slow
	d.mu.Unlock()
	if slow == 0 {
		return nil
	}
	select {
	case <-time.After(slow):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *simDB) setSlow(slow time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.slow = slow
}

func (d *simDB) Now(context.Context) (store.Cursor, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return 0, errSimDown
	}
	return d.xmin(), nil
}

func (d *simDB) TrimChanges(context.Context, time.Time) (int, error) {
	return 0, errors.New("simulated: not asked for")
}

func (d *simDB) Listen(context.Context) (*simListener, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.down {
		return nil, errSimDown
	}
	l := &simListener{wake: make(chan struct{}, 1)}
	d.listeners = append(d.listeners, l)
	return l, nil
}

// simListener is a connection that can be cut, stall, and speak nonsense.
type simListener struct {
	mu      sync.Mutex
	pending []simNotification
	stalled bool
	cut     bool
	closed  int
	wake    chan struct{}
}

type simNotification struct {
	event store.Event
	bad   bool
}

var _ notify.Listener = (*simListener)(nil)

func (l *simListener) send(e store.Event)     { l.push(simNotification{event: e}) }
func (l *simListener) sendNonsense()          { l.push(simNotification{bad: true}) }
func (l *simListener) stall(on bool)          { l.change(func() { l.stalled = on }) }
func (l *simListener) sever()                 { l.change(func() { l.cut = true }) }
func (l *simListener) push(n simNotification) { l.change(func() { l.pending = append(l.pending, n) }) }

func (l *simListener) change(f func()) {
	l.mu.Lock()
	f()
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// take gives the next notification; false where there is nothing to be had now.
func (l *simListener) take() (simNotification, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.cut:
		return simNotification{}, false, errSimCut
	case l.stalled || len(l.pending) == 0:
		return simNotification{}, false, nil
	}
	n := l.pending[0]
	l.pending = l.pending[1:]
	return n, true, nil
}

func (l *simListener) Next(ctx context.Context) (store.Event, error) {
	for {
		n, ok, err := l.take()
		switch {
		case err != nil:
			return store.Event{}, err
		case ok && n.bad:
			return store.Event{}, store.ErrBadNotification
		case ok:
			return n.event, nil
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return store.Event{}, ctx.Err()
		}
	}
}

func (l *simListener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed++
	return nil
}

// elapse lets the fake time of a bubble pass.
func elapse(d time.Duration) { <-time.After(d) }
