// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"sync"
	"time"
)

// flights does what several callers want at the same time once. A flight belongs
// to all who wait for it and to none in particular: it does not end with the
// context of whoever began it, but when its time is up or when the last of them
// has gone.
type flights struct {
	timeout time.Duration

	mu     sync.Mutex
	closed bool
	byKey  map[string]*flight
	all    sync.WaitGroup
}

type flight struct {
	// waiting is guarded by flights.mu.
	waiting int
	cancel  context.CancelFunc
	// done is closed when value and err are set.
	done  chan struct{}
	value any
	err   error
}

// share joins the flight of a key, or begins it.
func share[T any](ctx context.Context, f *flights, key string, work func(context.Context) (T, error)) (T, error) {
	var none T
	one, err := f.join(ctx, key, func(ctx context.Context) (any, error) { return work(ctx) })
	if err != nil {
		return none, err
	}
	select {
	case <-one.done:
	case <-ctx.Done():
		f.leave(key, one)
		return none, ctx.Err()
	}
	if one.err != nil {
		return none, one.err
	}
	return one.value.(T), nil
}

func (f *flights) join(ctx context.Context, key string, work func(context.Context) (any, error)) (*flight, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, ErrClosed
	}
	if one, ok := f.byKey[key]; ok {
		one.waiting++
		return one, nil
	}
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.timeout)
	one := &flight{waiting: 1, cancel: cancel, done: make(chan struct{})}
	f.byKey[key] = one
	f.all.Go(func() {
		defer cancel()
		value, err := work(own)
		if err != nil && errors.Is(own.Err(), context.DeadlineExceeded) {
			err = &Error{Kind: ErrTimeout, Problem: "took longer than " + f.timeout.String(), Remedy: "try again, or make it smaller", cause: err}
		}
		one.value, one.err = value, err
		f.mu.Lock()
		f.remove(key, one)
		f.mu.Unlock()
		close(one.done)
	})
	return one, nil
}

// leave takes one caller off. A flight without any is called off, and nobody can
// join it any more: the next caller begins another.
func (f *flights) leave(key string, one *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.waiting--; one.waiting == 0 {
		one.cancel()
		f.remove(key, one)
	}
}

func (f *flights) remove(key string, one *flight) {
	if f.byKey[key] == one {
		delete(f.byKey, key)
	}
}

// close calls all flights off and waits for them.
func (f *flights) close() {
	f.mu.Lock()
	f.closed = true
	for _, one := range f.byKey {
		one.cancel()
	}
	f.mu.Unlock()
	f.all.Wait()
}
