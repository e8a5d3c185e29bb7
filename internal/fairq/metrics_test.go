// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMetrics()
		reg := prometheus.NewPedanticRegistry()
		reg.MustRegister(m)

		q := New(Options[Key]{Name: "deployments", PerWorkspace: 1, Metrics: m})
		other := New(Options[Key]{Name: "runs", Metrics: m})
		defer other.ShutDown()
		q.Add(key("a", "1"))
		q.Add(key("a", "2"))
		q.Add(key("b", "1"))
		q.AddAfter(key("c", "1"), time.Minute)
		advance(2 * time.Second)
		mustGet(t, q)

		want := map[string]float64{
			"weir_queue_wait_seconds count": 1, "weir_queue_wait_seconds sum": 2,
			"weir_queue_depth": 2, "weir_queue_running_items": 1, "weir_queue_delayed_items": 1,
			"weir_queue_waiting_workspaces": 2, "weir_queue_capped_workspaces": 1, "weir_queue_oldest_wait_seconds": 2,
		}
		if diff := cmp.Diff(want, gather(t, reg, "deployments")); diff != "" {
			t.Error(diff)
		}
		if got := gather(t, reg, "runs")["weir_queue_depth"]; got != 0 {
			t.Errorf("the other queue's depth is %v, want 0", got)
		}

		if diff := cmp.Diff(q.Waits("a"), m.Waits("deployments", "a")); diff != "" {
			t.Error(diff)
		}
		if got := m.Waits("nowhere", "a"); got != (Waits{}) {
			t.Errorf("waits in a queue that is not there: %+v", got)
		}

		q.ShutDown()
		want = map[string]float64{"weir_queue_wait_seconds count": 1, "weir_queue_wait_seconds sum": 2}
		if diff := cmp.Diff(want, gather(t, reg, "deployments")); diff != "" {
			t.Errorf("after ShutDown: %s", diff)
		}
	})
}

// A controller that is started anew makes its queue before the old one is shut down, or after.
func TestMetricsOfASuccessor(t *testing.T) {
	m := NewMetrics()
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(m)
	first := New(Options[Key]{Name: "q", Metrics: m})
	second := New(Options[Key]{Name: "q", Metrics: m})
	defer second.ShutDown()
	first.ShutDown()
	second.Add(shop)
	if got := gather(t, reg, "q")["weir_queue_depth"]; got != 1 {
		t.Errorf("depth is %v, want 1: the first queue's end must not hide the second", got)
	}
}

// gather tells what a scrape has for one queue.
func gather(t *testing.T, reg prometheus.Gatherer, queue string) map[string]float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, series := range f.GetMetric() {
			if len(series.GetLabel()) != 1 || series.GetLabel()[0].GetName() != "queue" {
				t.Fatalf("%s has labels %v, want only queue", f.GetName(), series.GetLabel())
			}
			if series.GetLabel()[0].GetValue() != queue {
				continue
			}
			if h := series.GetHistogram(); h != nil {
				out[f.GetName()+" count"] = float64(h.GetSampleCount())
				out[f.GetName()+" sum"] = h.GetSampleSum()
			} else {
				out[f.GetName()] = series.GetGauge().GetValue()
			}
		}
	}
	return out
}
