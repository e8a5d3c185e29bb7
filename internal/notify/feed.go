// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// feed is what both notifiers share: the place in the log, the guard, and the
// handlers. Only the goroutine of Run uses what is between guard and ran.
type feed struct {
	subscribers
	changes store.Changes
	opts    Options
	log     *slog.Logger
	metrics *metrics

	guard  *guard
	cursor store.Cursor
	// placed says that cursor is good; rewritten that the database's history is
	// not the one that was followed; resyncDue that consumers have to look at everything.
	placed, rewritten, resyncDue bool
	// atEnd says that cursor is from Now, not from reading the log.
	atEnd bool
	// lastHeard is the last event that was delivered from a notification since the
	// cursor moved; the zero event where there is none.
	lastHeard store.Event
	// patience is how long the next catch-up may take.
	patience time.Duration

	ran     atomic.Bool
	ready   chan struct{}
	trouble atomic.Pointer[error]
}

func newFeed(changes store.Changes, opts Options) *feed {
	opts = opts.withDefaults()
	f := &feed{
		changes: changes,
		opts:    opts,
		log:     opts.Log,
		metrics: newMetrics(opts.Metrics),
		guard:   newGuard(opts.Keys),
		ready:   make(chan struct{}),

		patience: opts.CallTimeout,
	}
	f.setTrouble(ErrNotDelivering)
	return f
}

// Ready implements Notifier.
func (f *feed) Ready() <-chan struct{} { return f.ready }

// Healthy implements Notifier.
func (f *feed) Healthy() error { return *f.trouble.Load() }

func (f *feed) setTrouble(err error) { f.trouble.Store(&err) }

// begin refuses a second Run.
func (f *feed) begin() error {
	if f.ran.Swap(true) {
		return ErrAlreadyRun
	}
	return nil
}

// start takes the end of the log for a place to go on from, where there is none. It
// comes before changes are heard, so that all that is heard is after the cursor.
func (f *feed) start(ctx context.Context) error {
	if f.placed {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, f.opts.CallTimeout)
	defer cancel()
	now, err := f.changes.Now(ctx)
	if err != nil {
		return fmt.Errorf("finding the end of the change log: %w", err)
	}
	if now < f.cursor {
		f.rewritten = true
	}
	if f.rewritten {
		f.guard.forgetAll()
	}
	f.cursor, f.placed, f.rewritten, f.atEnd = now, true, false, true
	f.lastHeard = store.Event{}
	return nil
}

// place reads what happened before changes were heard and lets consumers know
// that delivery has begun, at the first time or again.
//
// Even a cursor for the log's end can be refused: where a transaction has been open
// for so long that the events since it began have been trimmed or are too many. To
// insist would stop all delivery until it ends. As consumers are about to list anyhow,
// nothing is missed by going on; what suffers is that each catch-up makes them list
// again.
func (f *feed) place(ctx context.Context) error {
	atEnd := f.atEnd
	_, err := f.catchUp(ctx)
	if atEnd && errors.Is(err, store.ErrCursorTooOld) {
		f.placed = true
	} else if err != nil {
		return err
	}
	if f.resyncDue {
		f.resyncDue = false
		f.metrics.resyncs.Inc()
		f.log.WarnContext(ctx, "changes may have been missed: consumers look at everything again")
		f.callResync()
	}
	f.setTrouble(nil)
	select {
	case <-f.ready:
	default:
		close(f.ready)
	}
	return nil
}

// misplaced gives the cursor up. Delivery has to begin anew, as at the first time, and
// consumers then have to look at everything.
func (f *feed) misplaced() { f.placed, f.resyncDue, f.atEnd = false, true, false }

// news is what a catch-up delivered: how many events, and the largest sequence.
type news struct {
	count int
	last  int64
}

// catchUp reads the log from the cursor and delivers what was not delivered before.
// After an error that is store.ErrCursorTooOld, start and place have to follow.
func (f *feed) catchUp(ctx context.Context) (news, error) {
	events, next, err := f.read(ctx)
	f.metrics.caughtUp(err)
	if err != nil {
		if errors.Is(err, store.ErrCursorTooOld) {
			f.misplaced()
		}
		return news{}, err
	}
	var found news
	f.guard.beginCatchUp()
	for _, e := range events {
		if !f.guard.caughtUp(e) {
			f.metrics.dropped.Inc()
			continue
		}
		f.deliver(e)
		found.count++
		found.last = max(found.last, e.Sequence)
	}
	f.cursor, f.lastHeard, f.atEnd = next, store.Event{}, false
	f.guard.endCatchUp()
	return found, nil
}

// mostPatience is how many times CallTimeout a catch-up may take after others took
// too long. What was not read in time has to be read by the next one too, with what
// was added since, so one that is never given more time may never succeed.
const mostPatience = 16

// read asks the log, and doubts the answer where it cannot be of the database that
// gave the cursor: one that was put back to an older copy, or a replica that took over
// before it had everything.
func (f *feed) read(ctx context.Context) ([]store.Event, store.Cursor, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	events, next, err := f.changes.ChangesSince(ctx, f.cursor)
	if err == nil {
		f.patience = f.opts.CallTimeout
	} else if ctx.Err() != nil {
		f.patience = min(2*f.patience, mostPatience*f.opts.CallTimeout)
	}
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("reading the change log: %w", err)
	case next < f.cursor || !f.remembers(events):
		f.rewritten = true
		return nil, 0, fmt.Errorf("the change log has lost what it had: %w", store.ErrCursorTooOld)
	}
	return events, next, nil
}

// remembers says whether an answer contains the event that was heard last. That one
// committed after the cursor was given, so the log has to have it; and as
// notifications come in commit order, a log that has it has those before it.
func (f *feed) remembers(answer []store.Event) bool {
	if f.lastHeard == (store.Event{}) {
		return true
	}
	at, found := slices.BinarySearchFunc(answer, f.lastHeard.Sequence, func(e store.Event, sequence int64) int {
		return cmp.Compare(e.Sequence, sequence)
	})
	return found && answer[at] == f.lastHeard
}

// notified delivers an event straight from its notification.
func (f *feed) notified(e store.Event) {
	if !f.guard.notification(e) {
		f.metrics.dropped.Inc()
		return
	}
	f.lastHeard = e
	f.deliver(e)
}

func (f *feed) deliver(e store.Event) {
	f.metrics.delivering(e.Topic)
	f.call(e)
}
