// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// The latency benchmarks print, beside the time of a whole write and its delivery,
// how long after the commit's answer the handler was called. That can be before the
// answer itself arrives, which counts as zero.

func BenchmarkPostgresLatency(b *testing.B) {
	s := opened(b, pg.New(b, pg.Options{Durable: true}).NewDatabase(b))
	benchmarkLatency(b, s, notify.NewListening(notify.From(s.Listen), s, notify.Options{}))
}

func BenchmarkSQLiteLatency(b *testing.B) {
	s := openedFile(b)
	benchmarkLatency(b, s, notify.NewInProcess(s, s.OnCommit, notify.Options{}))
}

func benchmarkLatency(b *testing.B, s store.Store, n notify.Notifier) {
	work := newWorkload(b, s, 1)
	delivered := make(chan time.Time, 1)
	n.Subscribe(store.TopicOperation, func(store.Event) { delivered <- time.Now() })
	started(b, n)
	var whole, after []time.Duration
	for b.Loop() {
		began := time.Now()
		if err := work.touch(b.Context()); err != nil {
			b.Fatal(err)
		}
		committed := time.Now()
		called := <-delivered
		whole = append(whole, max(called.Sub(began), committed.Sub(began)))
		after = append(after, max(0, called.Sub(committed)))
	}
	report(b, "write+delivery", whole)
	report(b, "after-commit", after)
}

func BenchmarkPostgresThroughput(b *testing.B) {
	s := opened(b, pg.Shared(b).NewDatabase(b))
	benchmarkThroughput(b, s, notify.NewListening(notify.From(s.Listen), s, notify.Options{}))
}

func BenchmarkSQLiteThroughput(b *testing.B) {
	s := openedFile(b)
	benchmarkThroughput(b, s, notify.NewInProcess(s, s.OnCommit, notify.Options{}))
}

// benchmarkThroughput has eight writers and waits until the handler has seen all.
func benchmarkThroughput(b *testing.B, s store.Store, n notify.Notifier) {
	work := newWorkload(b, s, 1)
	var seen atomic.Int64
	all := make(chan struct{})
	n.Subscribe(store.TopicOperation, func(store.Event) {
		if seen.Add(1) == int64(b.N) {
			close(all)
		}
	})
	started(b, n)
	b.ResetTimer()
	var next atomic.Int64
	var writing sync.WaitGroup
	for range 8 {
		writing.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if err := work.touch(b.Context()); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	writing.Wait()
	if !b.Failed() {
		<-all
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// touch changes the workload's first operation, which is one statement.
func (w *workload) touch(ctx context.Context) error {
	o := w.operations[0]
	return w.store.Finish(ctx, o.ID, o.Version, domain.OperationInProgress, fmt.Sprint(w.changes.Add(1)))
}

func report(b *testing.B, what string, times []time.Duration) {
	b.Helper()
	slices.Sort(times)
	for name, share := range map[string]float64{"p50": 0.5, "p99": 0.99} {
		at := times[int(share*float64(len(times)-1))]
		b.ReportMetric(float64(at.Microseconds()), what+"-"+name+"-µs")
	}
}
