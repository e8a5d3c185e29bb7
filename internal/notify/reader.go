// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"

	"github.com/weir-gitops/weir/internal/store"
)

// ListenSource makes connections that listen.
type ListenSource interface {
	// Listen connects and returns when listening has begun: what commits
	// afterwards is notified. ctx bounds only the call, not the connection's life.
	Listen(ctx context.Context) (Listener, error)
}

// Listener is a connection that listens.
type Listener interface {
	// Next waits for a notification. They come in the order of the commits. After
	// an error the connection is given up, except after store.ErrBadNotification.
	Next(ctx context.Context) (store.Event, error)
	// Close ends the connection, without waiting long for a server that does not
	// answer. It is not called while Next runs.
	Close() error
}

// From makes a ListenSource of a store's own method, whatever type its listeners
// have.
func From[L Listener](listen func(context.Context) (L, error)) ListenSource {
	return listenFunc(func(ctx context.Context) (Listener, error) {
		l, err := listen(ctx)
		if err != nil {
			return nil, err
		}
		return l, nil
	})
}

type listenFunc func(context.Context) (Listener, error)

func (f listenFunc) Listen(ctx context.Context) (Listener, error) { return f(ctx) }

// reader takes notifications from a connection as fast as they come. It never
// waits for the handlers: a listener that does not read makes PostgreSQL keep
// notifications for everybody, until commits fail.
type reader struct {
	// events is closed when the connection is of no use any more; err says why.
	events chan store.Event
	err    error
	// lost has something when a notification was dropped or not understood since it
	// was last emptied, so that the log has to be read.
	lost chan struct{}
	stop func()
}

// readFrom starts reading. stop ends it, and returns when nothing of it runs and
// the connection is closed.
func readFrom(ctx context.Context, l Listener, queue int) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{
		events: make(chan store.Event, queue),
		lost:   make(chan struct{}, 1),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer close(r.events)
		r.err = r.read(ctx, l)
	}()
	r.stop = func() {
		cancel()
		<-ended
		// The connection may be dead already; nothing is left to be done about it.
		_ = l.Close()
	}
	return r
}

func (r *reader) read(ctx context.Context, l Listener) error {
	for {
		e, err := l.Next(ctx)
		switch {
		case errors.Is(err, store.ErrBadNotification):
			signal(r.lost)
		case err != nil:
			return err
		default:
			select {
			case r.events <- e:
			default:
				signal(r.lost)
			}
		}
	}
}

// signal leaves a mark in a channel with room for one. A mark that is there
// already says the same: it is taken before the log is read.
func signal(mark chan struct{}) {
	select {
	case mark <- struct{}{}:
	default:
	}
}
