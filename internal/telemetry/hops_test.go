// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// measured reads a registry: how many observations and seconds each hop and
// result has.
func measured(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "weir_hop_duration_seconds" {
			t.Errorf("unexpected metric %s", f.GetName())
		}
		for _, m := range f.GetMetric() {
			key := ""
			for _, l := range m.GetLabel() {
				key += " " + l.GetName() + "=" + l.GetValue()
			}
			out["count"+key] = float64(m.GetHistogram().GetSampleCount())
			out["sum"+key] = m.GetHistogram().GetSampleSum()
		}
	}
	return out
}

func TestHopsAreMeasured(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewPedanticRegistry()
		hops := NewHops(registry)
		failure := errors.New("no")
		takes := func(d time.Duration, err error) func() error {
			return func() error { <-time.After(d); return err }
		}
		for _, c := range []struct {
			hop  Hop
			run  func() error
			want error
		}{
			{HopIntake, takes(2*time.Second, nil), nil},
			{HopIntake, takes(time.Second, nil), nil},
			{HopIntake, takes(time.Second, failure), failure},
			{HopCommit, takes(0, nil), nil},
		} {
			if err := hops.Time(c.hop, c.run); !errors.Is(err, c.want) {
				t.Errorf("%s gave %v; want %v", c.hop, err, c.want)
			}
		}
		want := map[string]float64{
			"count hop=intake result=ok": 2, "sum hop=intake result=ok": 3,
			"count hop=intake result=error": 1, "sum hop=intake result=error": 1,
			"count hop=commit result=ok": 1, "sum hop=commit result=ok": 0,
		}
		if diff := cmp.Diff(want, measured(t, registry)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestNoHopsJustRun(t *testing.T) {
	t.Parallel()
	failure := errors.New("no")
	var none *Hops
	if err := none.Time(HopIntake, func() error { return failure }); !errors.Is(err, failure) {
		t.Errorf("got %v; want %v", err, failure)
	}
}
