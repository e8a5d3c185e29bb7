// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/client-go/util/workqueue"
)

var benchWorkspaces = []int{1, 100, 10_000}

// BenchmarkCycle is Add, Get and Done of one item. "backlog": every workspace has ready items all the time, so that the
// rotation is as long as it gets. "idle": nothing else is there, so that a workspace comes and goes with each item.
func BenchmarkCycle(b *testing.B) {
	for _, n := range benchWorkspaces {
		b.Run(fmt.Sprintf("backlog/workspaces=%d", n), func(b *testing.B) {
			q, keys := New(Options[Key]{PerWorkspace: 4}), benchKeys(n)
			fill(q, keys)
			b.ReportAllocs()
			b.ResetTimer()
			cycle(q, keys, 0, b.N)
		})
		b.Run(fmt.Sprintf("idle/workspaces=%d", n), func(b *testing.B) {
			q, keys := New(Options[Key]{PerWorkspace: 4}), benchKeys(n)
			cycle(q, keys, 0, len(keys))
			b.ReportAllocs()
			b.ResetTimer()
			cycle(q, keys, 0, b.N)
		})
	}
}

// BenchmarkCycleMeasured is the backlog with metrics, and weights that are asked for.
func BenchmarkCycleMeasured(b *testing.B) {
	q := New(Options[Key]{PerWorkspace: 4, Metrics: NewMetrics(), Weight: func(string) int { return 2 }})
	defer q.ShutDown()
	keys := benchKeys(10_000)
	fill(q, keys)
	b.ReportAllocs()
	b.ResetTimer()
	cycle(q, keys, 0, b.N)
}

// BenchmarkAgainstClientGo alternates between this queue and client-go's plain one over the same keys, a block of items
// at a time, and tells the median block of each and the ratio of the two. Medians, because on a machine that does other
// things as well the mean is about those.
func BenchmarkAgainstClientGo(b *testing.B) {
	const block = 200
	for _, n := range benchWorkspaces {
		b.Run(fmt.Sprintf("workspaces=%d", n), func(b *testing.B) {
			keys := benchKeys(n)
			fair, plain := New(Options[Key]{PerWorkspace: 4}), workqueue.NewTyped[Key]()
			fill(fair, keys)
			fill(plain, keys)
			var fairTimes, plainTimes []time.Duration
			for done := 0; done < b.N; done += block {
				fairTimes = append(fairTimes, timed(func() { cycle(fair, keys, done, done+block) }))
				plainTimes = append(plainTimes, timed(func() { cycle(plain, keys, done, done+block) }))
			}
			fairMedian, plainMedian := median(fairTimes), median(plainTimes)
			b.ReportMetric(float64(fairMedian)/block, "fairq-ns/item")
			b.ReportMetric(float64(plainMedian)/block, "client-go-ns/item")
			b.ReportMetric(float64(fairMedian)/float64(plainMedian), "ratio")
			b.ReportMetric(0, "ns/op") // of both together: means nothing
		})
	}
}

func timed(do func()) time.Duration {
	begin := time.Now()
	do()
	return time.Since(begin)
}

func median(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}

// BenchmarkRetry is AddAfter and what follows from it, beside 100,000 items that are delayed already.
func BenchmarkRetry(b *testing.B) {
	q := New(Options[Key]{})
	defer q.ShutDown()
	for i := range 100_000 {
		q.AddAfter(keyN(i%100, i), time.Hour)
	}
	b.ReportAllocs()
	for b.Loop() {
		q.AddAfter(shop, time.Nanosecond)
		k, _ := q.Get()
		q.Done(k)
	}
}

// benchKeys has 20,000 items of n workspaces, twice as many as fill puts in. The number of items is always the same, so
// that what changes with n is the cost of workspaces and not of memory.
func benchKeys(n int) []Key {
	keys := make([]Key, 20_000)
	for i := range keys {
		keys[i] = keyN(i%n, i/n)
	}
	return keys
}

func fill(q workqueue.TypedInterface[Key], keys []Key) {
	for _, k := range keys[:len(keys)/2] {
		q.Add(k)
	}
}

// cycle adds, gets and finishes items, going round the keys. With half of them filled it gets what went in longest ago
// and so adds what is not in.
func cycle(q workqueue.TypedInterface[Key], keys []Key, from, to int) {
	half := len(keys) / 2
	for i := from; i < to; i++ {
		q.Add(keys[(i+half)%len(keys)])
		k, _ := q.Get()
		q.Done(k)
	}
}
