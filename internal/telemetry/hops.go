// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Hop is a part of the way down or up.
type Hop string

// The hops, in the order of the flow.
const (
	HopIntake   Hop = "intake"   // CR and rows read, decided, written
	HopCommit   Hop = "commit"   // the transaction within intake
	HopAnnounce Hop = "announce" // Operation CR created
	HopOperate  Hop = "operate"  // Operation seen, engine made equal, operation finished
	HopObserve  Hop = "observe"  // engine status stored
	HopProject  Hop = "project"  // CR status written
)

// Hops measures how long each hop takes and how it ends.
type Hops struct {
	seconds *prometheus.HistogramVec
}

// NewHops registers the measurements.
func NewHops(r prometheus.Registerer) *Hops {
	h := &Hops{seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "weir_hop_duration_seconds",
		Help:    "How long one hop of truth flowing down or status flowing up took.",
		Buckets: prometheus.ExponentialBuckets(0.0005, 2, 16),
	}, []string{"hop", "result"})}
	r.MustRegister(h.seconds)
	return h
}

// Time runs a hop and measures it. A nil Hops just runs it.
func (h *Hops) Time(hop Hop, f func() error) error {
	if h == nil {
		return f()
	}
	start := time.Now()
	err := f()
	result := "ok"
	if err != nil {
		result = "error"
	}
	h.seconds.WithLabelValues(string(hop), result).Observe(time.Since(start).Seconds())
	return err
}
