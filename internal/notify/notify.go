// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/internal/store"
)

// Notifier delivers store events to subscribers.
type Notifier interface {
	// Subscribe registers a handler for a topic. Handlers are called one at a
	// time, in order, from the goroutine of Run, so they have to be quick: put the
	// key in a queue and return. A handler's panic is not caught. Subscribing while
	// Run delivers is safe; such a handler gets what is delivered from then on, so
	// its consumer lists after both Subscribe and Ready.
	Subscribe(topic store.Topic, handler func(store.Event))
	// OnResync registers what to do when events have been missed for good: look at
	// everything again. It is called from the goroutine of Run, and has to be as quick.
	OnResync(handler func())
	// Run delivers until ctx ends, returns nil then, and leaves nothing running.
	// Whatever goes wrong before that is retried, logged and shown by Healthy.
	// A notifier runs once: a second Run returns ErrAlreadyRun.
	Run(ctx context.Context) error
	// Ready is closed when delivery has begun: what commits afterwards is
	// delivered. Consumers list what is there after it, not before.
	Ready() <-chan struct{}
	// Healthy says nil, or why notifications are not flowing now.
	Healthy() error
}

// ErrAlreadyRun is what a second Run of the same notifier returns.
var ErrAlreadyRun = errors.New("notifier has run already")

// ErrNotDelivering is what Healthy reports before delivery began and after it ended.
var ErrNotDelivering = errors.New("notifications are not being delivered")

// Options tune a notifier. The zero value is good for production.
type Options struct {
	// CatchUpEvery is how often the log is read where nothing asks for it. It bounds
	// how late an event can be whose notification was lost. Default 60 s.
	CatchUpEvery time.Duration
	// NotifyWithin is how long the notification of an event that a catch-up found
	// may still be on its way before its connection is taken for dead. Default 5 s.
	NotifyWithin time.Duration
	// CallTimeout bounds each call to the database; reading the log is given more
	// after it took too long. Default 10 s.
	CallTimeout time.Duration
	// BackoffMin and BackoffMax bound the wait between tries. Defaults 50 ms, 10 s.
	BackoffMin, BackoffMax time.Duration
	// Queue is how many notifications may wait for the handlers before they are
	// dropped and read from the log instead. Default 4096.
	Queue int
	// Keys is how many keys the guard remembers at rest, and how many notifications
	// are taken before the log is read ahead of time, so that neither the
	// guard nor the next catch-up grows without bound. Default 32768.
	Keys int
	// Log is where the notifier reports; nil for nowhere.
	Log *slog.Logger
	// Metrics is where its metrics are registered; nil for nowhere.
	Metrics prometheus.Registerer
}

func (o Options) withDefaults() Options {
	orDefault(&o.CatchUpEvery, time.Minute)
	orDefault(&o.NotifyWithin, 5*time.Second)
	orDefault(&o.CallTimeout, 10*time.Second)
	orDefault(&o.BackoffMin, 50*time.Millisecond)
	orDefault(&o.BackoffMax, 10*time.Second)
	orDefault(&o.Queue, 4096)
	orDefault(&o.Keys, 32768)
	o.BackoffMax = max(o.BackoffMax, o.BackoffMin)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func orDefault[T int | time.Duration](value *T, fallback T) {
	if *value <= 0 {
		*value = fallback
	}
}
