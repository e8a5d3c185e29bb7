// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// watchkeeping decides, during one connection's life, when the log is read and
// whether the connection still deserves trust.
type watchkeeping struct {
	l *Listening
	// due fires when the next catch-up is.
	due   *time.Timer
	retry backoff
	// owed is the sequence of an event that a check delivered and whose notification
	// is awaited, 0 where there is none. silence fires when it has not come.
	owed    int64
	silence *time.Timer
}

func newWatchkeeping(l *Listening) *watchkeeping {
	s := &watchkeeping{
		l:       l,
		due:     time.NewTimer(l.opts.CatchUpEvery),
		retry:   l.opts.backoff(),
		silence: time.NewTimer(l.opts.NotifyWithin),
	}
	s.silence.Stop()
	return s
}

func (s *watchkeeping) stop() {
	s.due.Stop()
	s.silence.Stop()
}

// heard delivers a notified event. One that is not before the owed one proves that
// the connection carries what is committed.
func (s *watchkeeping) heard(ctx context.Context, e store.Event) error {
	if s.owed != 0 && e.Sequence >= s.owed {
		s.owed = 0
		s.silence.Stop()
	}
	s.l.notified(e)
	if s.l.guard.crowded() {
		return s.check(ctx)
	}
	return nil
}

// check catches up where nothing is known to be lost. If it finds something all
// the same, that is still on its way, or the connection is dead.
func (s *watchkeeping) check(ctx context.Context) error {
	found, err := s.read(ctx)
	if err != nil || found.count == 0 || s.owed != 0 {
		return err
	}
	s.owed = found.last
	s.silence.Reset(s.l.opts.NotifyWithin)
	return nil
}

// catchUp reads the log because a notification is known to be lost: it says
// nothing about the connection that the answer contains news.
func (s *watchkeeping) catchUp(ctx context.Context) error {
	_, err := s.read(ctx)
	return err
}

// read catches up, and tries again soon where the database does not answer:
// notifications are delivered meanwhile. Only where the cursor is of no use any more
// is the connection given up, because beginning anew is what puts that right.
func (s *watchkeeping) read(ctx context.Context) (news, error) {
	found, err := s.l.catchUp(ctx)
	switch {
	case errors.Is(err, store.ErrCursorTooOld):
		return news{}, err
	case err != nil && ctx.Err() != nil:
		return news{}, ctx.Err()
	case err != nil:
		wait := s.retry.next()
		s.due.Reset(wait)
		s.l.setTrouble(err)
		s.l.log.WarnContext(ctx, "catching up again soon", "error", err, "wait", wait)
		return news{}, nil
	}
	s.retry.reset()
	s.due.Reset(s.l.opts.CatchUpEvery)
	s.l.setTrouble(nil)
	s.l.metrics.recovered.Add(float64(found.count))
	return found, nil
}
