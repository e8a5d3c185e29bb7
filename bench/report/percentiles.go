// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"time"
)

// Durations are the measurements of one thing, in any order.
type Durations []time.Duration

// Percentile gives the smallest measurement that at least p percent of all are
// not above: always one that was measured, never a mean of two. It is 0 where
// there are none.
func (d Durations) Percentile(p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	sorted := slices.Clone(d)
	slices.Sort(sorted)
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Median is the 50th percentile.
func (d Durations) Median() time.Duration { return d.Percentile(50) }

// Max is the largest measurement.
func (d Durations) Max() time.Duration { return d.Percentile(100) }

// Milliseconds gives a duration in milliseconds.
func Milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// Seconds gives a duration in seconds.
func Seconds(d time.Duration) float64 { return d.Seconds() }
