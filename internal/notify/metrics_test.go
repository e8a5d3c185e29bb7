// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	run(t, notify.Options{Metrics: registry}, func(r *running) {
		// Another notifier of the same process shares the metrics.
		notify.NewListening(notify.From(r.db.Listen), r.db, notify.Options{Metrics: registry})
		r.db.change("a")
		r.db.change("b")
		r.delivered(1, 2)
		r.db.each((*simListener).sever)
		elapse(time.Second)
		r.db.route = func(*simListener, store.Event) {}
		r.db.change("a")
		elapse(time.Minute)
		r.delivered(1, 2, 3)
		for name, want := range map[string]float64{
			"weir_notify_delivered_total":          3,
			"weir_notify_duplicates_dropped_total": 2,
			"weir_notify_recovered_total":          1,
			"weir_notify_reconnects_total":         1,
			"weir_notify_catch_ups_total":          3,
			"weir_notify_resyncs_total":            0,
			"weir_notify_connected":                1,
		} {
			if got := metric(t, registry, name); got != want {
				r.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
	if got := metric(t, registry, "weir_notify_connected"); got != 0 {
		t.Errorf("weir_notify_connected is %v at the end", got)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// metric adds up all series of a name.
func metric(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
