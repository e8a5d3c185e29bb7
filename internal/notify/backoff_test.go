// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"testing"
	"time"
)

func TestBackoffDoublesWithinBounds(t *testing.T) {
	b := Options{}.withDefaults().backoff()
	ceilings := []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000}
	for range 100 {
		b.reset()
		for i, ceiling := range ceilings {
			ceiling *= time.Millisecond
			if got := b.next(); got < ceiling/2 || got > ceiling {
				t.Fatalf("wait %d is %v, want within %v and %v", i, got, ceiling/2, ceiling)
			}
		}
	}
}
