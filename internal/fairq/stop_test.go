// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestNoGoroutineAtRest(t *testing.T) {
	before := runtime.NumGoroutine()
	q := New(Options[Key]{PerWorkspace: 1})
	for i := range 100_000 {
		q.AddAfter(keyN(i%100, i), time.Hour)
		q.Add(keyN(i%100, i))
	}
	served(q, 100_000)
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines with 100,000 items at rest, %d before", now, before)
	}
	q.ShutDown()
	if q.timer.Stop() {
		t.Error("the timer still runs after ShutDown")
	}
	if len(q.items) != 0 {
		t.Errorf("%d items are kept after ShutDown", len(q.items))
	}
}

func TestShutDownTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{Metrics: NewMetrics()})
		q.AddAfter(shop, time.Second)
		q.ShutDown()
		q.ShutDown()
		q.ShutDownWithDrain()
		mustEnd(t, get(q))
	})
}

func TestShutDownEndsADrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		q.Add(shop)
		mustGet(t, q)
		first, second := drain(q), drain(q)
		mustNotClose(t, first)
		mustNotClose(t, second)
		q.ShutDown()
		mustClose(t, first)
		mustClose(t, second)
		q.Done(shop)
	})
}

// A drain and a worker wait at the same time: the drain must not take the signal that is meant for the worker.
func TestDrainTakesNoWorkersSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		q.Add(shop)
		q.Add(blog)
		mustGet(t, q)
		drained := drain(q)
		synctest.Wait()
		worker := get(q)
		mustBlock(t, worker)
		q.Done(shop)
		mustReturn(t, worker, blog)
		q.Done(blog)
		mustClose(t, drained)
		mustEnd(t, get(q))
	})
}

// TestStopAtAnyMoment starts and ends queues in the middle of everything: every worker comes to its end, and a drain
// leaves nothing running.
func TestStopAtAnyMoment(t *testing.T) {
	for round := range 300 {
		q := New(Options[Key]{PerWorkspace: 1 + round%3, Metrics: NewMetrics()})
		var workers, adders sync.WaitGroup
		for range 4 {
			workers.Go(func() {
				for {
					k, shutdown := q.Get()
					if shutdown {
						return
					}
					if rand.IntN(3) == 0 {
						q.AddRateLimited(k)
					}
					q.Done(k)
				}
			})
		}
		for range 4 {
			adders.Go(func() {
				for i := range 100 {
					q.Add(keyN(i%3, rand.IntN(10)))
					q.AddAfter(keyN(i%3, rand.IntN(10)), time.Duration(rand.IntN(1000)))
				}
			})
		}
		if round%2 == 0 {
			adders.Wait()
		}
		if round%3 == 0 {
			q.ShutDownWithDrain()
		} else {
			q.ShutDown()
		}
		workers.Wait()
		adders.Wait()
		if s := q.Stats(); s != (Stats{}) {
			t.Fatalf("round %d: left over: %+v", round, s)
		}
	}
}

// TestStress has many workers and many that add, in every way, at once. Each item carries a number that is raised before
// it is added; a worker that runs it must see that number or a later one, and in the end the last.
func TestStress(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		t.Run(fmt.Sprintf("cap %d", limit), func(t *testing.T) { stress(t, limit) })
	}
}

type stressItem struct {
	wanted, seen atomic.Int64
	runs         atomic.Int32
}

func stress(t *testing.T, limit int) {
	const workspaces, applications, adders, adds, workers = 20, 10, 8, 3000, 16
	items := map[Key]*stressItem{}
	running := map[string]*atomic.Int32{}
	for w := range workspaces {
		for a := range applications {
			items[keyN(w, a)] = &stressItem{}
		}
		running[keyN(w, 0).Workspace] = &atomic.Int32{}
	}
	q := New(Options[Key]{PerWorkspace: limit, Weight: func(ws string) int { return 1 + len(ws)%3 }})
	progress := make(chan struct{}, 1)

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for {
				k, shutdown := q.Get()
				if shutdown {
					return
				}
				it := items[k]
				if n := it.runs.Add(1); n != 1 {
					t.Errorf("%v runs %d times at once", k, n)
				}
				if n := running[k.Workspace].Add(1); limit > 0 && int(n) > limit {
					t.Errorf("%d items of %q run, the cap is %d", n, k.Workspace, limit)
				}
				it.seen.Store(it.wanted.Load())
				if rand.IntN(8) == 0 {
					runtime.Gosched()
				}
				running[k.Workspace].Add(-1)
				it.runs.Add(-1)
				q.Forget(k)
				q.Done(k)
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	var adding sync.WaitGroup
	for range adders {
		adding.Go(func() {
			for range adds {
				k := keyN(rand.IntN(workspaces), rand.IntN(applications))
				items[k].wanted.Add(1)
				switch rand.IntN(4) {
				case 0:
					q.AddAfter(k, time.Duration(rand.IntN(int(2*time.Millisecond))))
				case 1:
					q.AddRateLimited(k)
				default:
					q.Add(k)
				}
			}
		})
	}
	adding.Wait()
	awaitAllSeen(t, items, progress)
	q.ShutDown()
	wg.Wait()
}

func awaitAllSeen(t *testing.T, items map[Key]*stressItem, progress <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for k, it := range items {
		for it.seen.Load() != it.wanted.Load() {
			select {
			case <-progress:
			case <-ctx.Done():
				t.Errorf("%v was added %d times, and last seen at %d", k, it.wanted.Load(), it.seen.Load())
				return
			}
		}
	}
}
