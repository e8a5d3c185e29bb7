// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// steady is how long a connection, or the attempt to make one, has to last for the
// wait before the next one to begin small again. Without it a connection that breaks
// as soon as it is made would be made twenty times a second.
const steady = time.Second

// errSilent ends a connection on which notifications do not arrive.
var errSilent = errors.New("an event was committed, but its notification did not come")

// Listening is the notifier for PostgreSQL.
type Listening struct {
	*feed
	source ListenSource
}

var _ Notifier = (*Listening)(nil)

// NewListening makes a notifier that listens to source and catches up from changes.
func NewListening(source ListenSource, changes store.Changes, opts Options) *Listening {
	return &Listening{feed: newFeed(changes, opts), source: source}
}

// Run implements Notifier: one connection after the other.
func (l *Listening) Run(ctx context.Context) error {
	if err := l.begin(); err != nil {
		return err
	}
	defer l.setTrouble(ErrNotDelivering)
	wait := l.opts.backoff()
	for ctx.Err() == nil {
		began := time.Now()
		err := l.connection(ctx)
		if ctx.Err() != nil {
			break
		}
		if time.Since(began) >= steady {
			wait.reset()
		}
		pauseFor := wait.next()
		l.setTrouble(fmt.Errorf("%w: %w", ErrNotDelivering, err))
		l.metrics.reconnects.Inc()
		l.log.WarnContext(ctx, "listening for changes again soon", "error", err, "wait", pauseFor)
		pause(ctx, pauseFor)
	}
	return nil
}

// connection listens until the connection ends or is given up. It hears changes
// before it asks for those it missed, see the package's documentation.
func (l *Listening) connection(ctx context.Context) error {
	if err := l.start(ctx); err != nil {
		return err
	}
	listener, err := l.listen(ctx)
	if err != nil {
		return err
	}
	r := readFrom(ctx, listener, l.opts.Queue)
	defer r.stop()
	l.guard.connected()
	if err := l.place(ctx); err != nil {
		return err
	}
	l.metrics.connected.Inc()
	defer l.metrics.connected.Dec()
	l.log.InfoContext(ctx, "listening for changes")
	return l.serve(ctx, r)
}

func (l *Listening) listen(ctx context.Context) (Listener, error) {
	ctx, cancel := context.WithTimeout(ctx, l.opts.CallTimeout)
	defer cancel()
	listener, err := l.source.Listen(ctx)
	if err != nil {
		return nil, fmt.Errorf("listening for changes: %w", err)
	}
	return listener, nil
}

// serve delivers what a connection notifies, with catch-ups in between.
func (l *Listening) serve(ctx context.Context, r *reader) error {
	s := newWatchkeeping(l)
	defer s.stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case e, open := <-r.events:
			if !open {
				return fmt.Errorf("the listening connection ended: %w", r.err)
			}
			err = s.heard(ctx, e)
		case <-r.lost:
			err = s.catchUp(ctx)
		case <-s.due.C:
			err = s.check(ctx)
		case <-s.silence.C:
			return errSilent
		}
		if err != nil {
			return err
		}
	}
}
