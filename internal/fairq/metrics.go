// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"maps"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// queueLabel is the only label there is. A label for each workspace would give every tenant the power to make series;
// one tenant's waits are asked for with Metrics.Waits or Queue.Waits.
const queueLabel = "queue"

// Metrics are the Prometheus metrics of any number of queues, each under its name. It is a prometheus.Collector that
// asks the queues when it is scraped, so that gauges cost nothing in between. Of queues with the same name the one made
// last counts.
type Metrics struct {
	wait   *prometheus.HistogramVec
	gauges []gauge

	// mu guards queues. No queue is called with it held, and no queue calls here with its own lock held, so the two
	// locks are never held together.
	mu     sync.Mutex
	queues map[string]measured
}

// measured is a *Queue of some kind of item.
type measured interface {
	Stats() Stats
	Waits(workspace string) Waits
}

// gauge is one number out of Stats.
type gauge struct {
	desc  *prometheus.Desc
	value func(Stats) float64
}

var _ prometheus.Collector = (*Metrics)(nil)

// NewMetrics makes metrics for Options.Metrics. The caller registers them.
func NewMetrics() *Metrics {
	return &Metrics{
		wait: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_queue_wait_seconds",
			Help:    "Time from when an item became ready until it was handed to a worker.",
			Buckets: []float64{.0001, .001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{queueLabel}),
		gauges: []gauge{
			newGauge("weir_queue_depth", "Items that are ready and wait for a worker.",
				func(s Stats) float64 { return float64(s.Ready) }),
			newGauge("weir_queue_running_items", "Items that workers have in hand.",
				func(s Stats) float64 { return float64(s.Running) }),
			newGauge("weir_queue_delayed_items", "Items that wait for their time, such as retries.",
				func(s Stats) float64 { return float64(s.Delayed) }),
			newGauge("weir_queue_waiting_workspaces", "Workspaces that have ready items.",
				func(s Stats) float64 { return float64(s.Waiting) }),
			newGauge("weir_queue_capped_workspaces", "Workspaces that have ready items and as many running as they may.",
				func(s Stats) float64 { return float64(s.Capped) }),
			newGauge("weir_queue_oldest_wait_seconds", "How long the oldest ready item has been ready.",
				func(s Stats) float64 { return s.Oldest.Seconds() }),
		},
		queues: map[string]measured{},
	}
}

func newGauge(name, help string, value func(Stats) float64) gauge {
	return gauge{desc: prometheus.NewDesc(name, help, []string{queueLabel}, nil), value: value}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.wait.Describe(out)
	for _, g := range m.gauges {
		out <- g.desc
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.wait.Collect(out)
	m.mu.Lock()
	queues := maps.Clone(m.queues)
	m.mu.Unlock()
	for name, q := range queues {
		stats := q.Stats()
		for _, g := range m.gauges {
			out <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value(stats), name)
		}
	}
}

// Waits tells how long a workspace's items had to wait in the queue of that name. This is the way to them where the
// queue itself is out of reach, in a controller. A queue that is not there, or shut down, has none.
func (m *Metrics) Waits(queue, workspace string) Waits {
	m.mu.Lock()
	q := m.queues[queue]
	m.mu.Unlock()
	if q == nil {
		return Waits{}
	}
	return q.Waits(workspace)
}

// open makes q appear under name, and gives it the histogram for its waits.
func (m *Metrics) open(name string, q measured) prometheus.Observer {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queues[name] = q
	return m.wait.WithLabelValues(name)
}

// close makes q disappear. The histogram stays: counters that vanish and begin anew look like a restart.
func (m *Metrics) close(name string, q measured) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.queues[name] == q {
		delete(m.queues, name)
	}
}
