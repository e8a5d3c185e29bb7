// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-gitops/weir/internal/store"
)

// metrics count what a notifier does. Several notifiers of one process share
// them, so the gauge counts those that are connected.
type metrics struct {
	delivered  *prometheus.CounterVec
	dropped    prometheus.Counter
	recovered  prometheus.Counter
	reconnects prometheus.Counter
	catchUps   *prometheus.CounterVec
	resyncs    prometheus.Counter
	connected  prometheus.Gauge
}

func newMetrics(r prometheus.Registerer) *metrics {
	counter := func(name, help string) prometheus.Counter {
		return registered(r, prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "notify", Name: name, Help: help,
		}))
	}
	vector := func(name, help, label string) *prometheus.CounterVec {
		return registered(r, prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "weir", Subsystem: "notify", Name: name, Help: help,
		}, []string{label}))
	}
	return &metrics{
		delivered:  vector("delivered_total", "Events given to handlers.", "topic"),
		dropped:    counter("duplicates_dropped_total", "Events dropped because they, or a later one of their key, had been delivered."),
		recovered:  counter("recovered_total", "Events that a catch-up delivered because no notification had."),
		reconnects: counter("reconnects_total", "Times a listening connection was lost or could not be made."),
		catchUps:   vector("catch_ups_total", "Times the change log was read, by outcome.", "outcome"),
		resyncs:    counter("resyncs_total", "Times consumers were told to look at everything again."),
		connected: registered(r, prometheus.NewGauge(prometheus.GaugeOpts{
			Namespace: "weir", Subsystem: "notify", Name: "connected", Help: "Notifiers that are listening now.",
		})),
	}
}

// registered registers a collector, or gives the one that is there already.
func registered[C prometheus.Collector](r prometheus.Registerer, c C) C {
	if r == nil {
		return c
	}
	var already prometheus.AlreadyRegisteredError
	switch err := r.Register(c); {
	case err == nil:
		return c
	case errors.As(err, &already):
		if same, ok := already.ExistingCollector.(C); ok {
			return same
		}
		panic(err)
	default:
		panic(err)
	}
}

func (m *metrics) delivering(t store.Topic) { m.delivered.WithLabelValues(string(t)).Inc() }

func (m *metrics) caughtUp(err error) {
	outcome := "read"
	if err != nil {
		outcome = "failed"
	}
	m.catchUps.WithLabelValues(outcome).Inc()
}
