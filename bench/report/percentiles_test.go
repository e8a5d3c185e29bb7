// SPDX-License-Identifier: Apache-2.0

package report

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPercentile(t *testing.T) {
	hundred := make(Durations, 100)
	for i := range hundred {
		hundred[i] = time.Duration(100 - i)
	}
	for _, c := range []struct {
		name string
		of   Durations
		p    float64
		want time.Duration
	}{
		{"nothing measured", nil, 50, 0},
		{"one measurement is every percentile", Durations{7}, 99, 7},
		{"the lower of two is the median", Durations{9, 3}, 50, 3},
		{"the middle of three", Durations{9, 1, 3}, 50, 3},
		{"p50 of 1..100", hundred, 50, 50},
		{"p95 of 1..100", hundred, 95, 95},
		{"p99 of 1..100", hundred, 99, 99},
		{"p99 of 200 leaves two above", append(slices.Clone(hundred), hundred...), 99, 99},
		{"p100 is the largest", hundred, 100, 100},
		{"p0 is the smallest", hundred, 0, 1},
		{"p99 of twenty is the largest", hundred[:20], 99, 100},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.of.Percentile(c.p); got != c.want {
				t.Errorf("Percentile(%v) = %d, want %d", c.p, got, c.want)
			}
		})
	}
}

func TestPercentileIsAMeasurementThatEnoughAreNotAbove(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var d Durations
		for _, v := range rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 60).Draw(t, "measured") {
			d = append(d, time.Duration(v))
		}
		before := slices.Clone(d)
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		got := d.Percentile(p)
		if !slices.Equal(before, d) {
			t.Fatal("the measurements were put in another order")
		}
		if !slices.Contains(d, got) {
			t.Fatalf("%d was not measured", got)
		}
		notAbove := 0
		for _, v := range d {
			if v <= got {
				notAbove++
			}
		}
		// The rank is rounded in floating point, hence the margin.
		if share := 100 * float64(notAbove) / float64(len(d)); share < p-1e-9 {
			t.Fatalf("only %v %% are not above %d", share, got)
		}
	})
}
