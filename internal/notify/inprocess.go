// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// InProcess is the notifier for SQLite, where whoever commits is in this process.
//
// A commit leaves a mark; the mark is taken before the log is read. A change that
// commits before the mark is taken is therefore in that answer, and one that
// commits later leaves another mark. However many commit while one catch-up runs,
// they cost one more.
type InProcess struct {
	*feed
	committed chan struct{}
}

var _ Notifier = (*InProcess)(nil)

// NewInProcess makes a notifier that reads changes whenever something was
// committed. onCommit registers what is to be called after each commit.
func NewInProcess(changes store.Changes, onCommit func(func()), opts Options) *InProcess {
	p := &InProcess{feed: newFeed(changes, opts), committed: make(chan struct{}, 1)}
	onCommit(func() { signal(p.committed) })
	return p
}

// Run implements Notifier.
func (p *InProcess) Run(ctx context.Context) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.setTrouble(ErrNotDelivering)
	p.metrics.connected.Inc()
	defer p.metrics.connected.Dec()

	retry := p.opts.backoff()
	// The first time is at once: it is what makes the notifier ready.
	due := time.NewTimer(0)
	defer due.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-p.committed:
		case <-due.C:
		}
		err := p.step(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			wait := retry.next()
			p.setTrouble(err)
			p.log.WarnContext(ctx, "reading changes again soon", "error", err, "wait", wait)
			due.Reset(wait)
		default:
			retry.reset()
			due.Reset(p.opts.CatchUpEvery)
		}
	}
}

// step catches up. A cursor that is of no use any more is replaced at once, because
// there is no connection to make anew first.
func (p *InProcess) step(ctx context.Context) error {
	// There are no notifications that could lag behind a catch-up.
	p.guard.connected()
	err := p.startAndPlace(ctx)
	if errors.Is(err, store.ErrCursorTooOld) {
		err = p.startAndPlace(ctx)
	}
	return err
}

func (p *InProcess) startAndPlace(ctx context.Context) error {
	if err := p.start(ctx); err != nil {
		return err
	}
	return p.place(ctx)
}
