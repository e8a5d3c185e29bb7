// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// anyQueue is what controller-runtime's seam asks for.
type anyQueue = workqueue.TypedRateLimitingInterface[Key]

// TestContract holds the behaviours that controllers rely on against client-go's queue and against this one. Both must
// pass: this is what makes one a replacement for the other.
func TestContract(t *testing.T) {
	limiter := func() workqueue.TypedRateLimiter[Key] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[Key](time.Second, time.Minute)
	}
	queues := []struct {
		name string
		make func() anyQueue
	}{
		{"client-go", func() anyQueue {
			return workqueue.NewTypedRateLimitingQueue(limiter())
		}},
		{"fairq", func() anyQueue {
			return NewQueueFunc(Options[Key]{})("contract", limiter())
		}},
		{"fairq with a cap", func() anyQueue {
			return NewQueueFunc(Options[Key]{PerWorkspace: 2})("contract", limiter())
		}},
	}
	for _, impl := range queues {
		t.Run(impl.name, func(t *testing.T) {
			for _, c := range contract {
				t.Run(c.name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						q := impl.make()
						defer q.ShutDown()
						c.check(t, q)
					})
				})
			}
		})
	}
}

var (
	shop = key("a", "shop")
	blog = key("a", "blog")
)

var contract = []struct {
	name  string
	check func(*testing.T, anyQueue)
}{
	{"adding twice before it is handed out is adding once", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		q.Add(shop)
		wantLen(t, q, 1)
		q.Done(mustGet(t, q))
		mustBlock(t, get(q))
	}},
	{"first in, first out", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		q.Add(blog)
		q.Add(shop)
		mustReturn(t, get(q), shop)
		mustReturn(t, get(q), blog)
	}},
	{"added twice while running, runs once more, after Done", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustGet(t, q)
		q.Add(shop)
		q.Add(shop)
		wantLen(t, q, 0)
		next := get(q)
		mustBlock(t, next)
		q.Done(shop)
		mustReturn(t, next, shop)
		q.Done(shop)
		mustBlock(t, get(q))
	}},
	{"added while running goes to the end", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustGet(t, q)
		q.Add(shop)
		q.Add(blog)
		q.Done(shop)
		mustReturn(t, get(q), blog)
		mustReturn(t, get(q), shop)
	}},
	{"AddAfter waits for its time", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, time.Minute)
		next := get(q)
		advance(time.Minute - time.Nanosecond)
		mustBlock(t, next)
		wantLen(t, q, 0)
		advance(time.Nanosecond)
		mustReturn(t, next, shop)
	}},
	{"AddAfter without a delay is Add", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, 0)
		q.AddAfter(blog, -time.Second)
		mustReturn(t, get(q), shop)
		mustReturn(t, get(q), blog)
	}},
	{"of two delays the earlier counts, in either order", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, time.Minute)
		q.AddAfter(shop, time.Second)
		q.AddAfter(blog, time.Second)
		q.AddAfter(blog, time.Minute)
		synctest.Wait()
		advance(time.Second)
		q.Done(mustGet(t, q))
		q.Done(mustGet(t, q))
		next := get(q)
		advance(time.Hour)
		mustBlock(t, next)
	}},
	{"delays end in the order of their times", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, 2*time.Second)
		q.AddAfter(blog, time.Second)
		q.AddAfter(key("a", "wiki"), 3*time.Second)
		synctest.Wait()
		advance(time.Hour)
		for _, want := range []Key{blog, shop, key("a", "wiki")} {
			mustReturn(t, get(q), want)
			q.Done(want)
		}
	}},
	{"a delayed item that is added runs now, and once more at its time", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, time.Minute)
		q.Add(shop)
		q.Done(mustGet(t, q))
		next := get(q)
		mustBlock(t, next)
		advance(time.Minute)
		mustReturn(t, next, shop)
	}},
	{"a delay that ends while the item runs gives one more run", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustGet(t, q)
		q.AddAfter(shop, time.Second)
		synctest.Wait()
		advance(time.Minute)
		next := get(q)
		mustBlock(t, next)
		q.Done(shop)
		mustReturn(t, next, shop)
	}},
	{"a delay that ends while the item is ready gives no more runs", func(t *testing.T, q anyQueue) {
		q.AddAfter(shop, time.Second)
		q.Add(shop)
		synctest.Wait()
		advance(time.Minute)
		q.Done(mustGet(t, q))
		mustBlock(t, get(q))
	}},
	{"a delay asked for by the run itself counts from then", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustGet(t, q)
		q.AddAfter(shop, time.Second)
		q.Done(shop)
		next := get(q)
		mustBlock(t, next)
		advance(time.Second)
		mustReturn(t, next, shop)
	}},
	{"retries back off, item by item, until forgotten", func(t *testing.T, q anyQueue) {
		for i, delay := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			q.AddRateLimited(shop)
			if got := q.NumRequeues(shop); got != i+1 {
				t.Fatalf("NumRequeues = %d, want %d", got, i+1)
			}
			next := get(q)
			advance(delay - time.Nanosecond)
			mustBlock(t, next)
			advance(time.Nanosecond)
			mustReturn(t, next, shop)
			q.Done(shop)
		}
		if got := q.NumRequeues(blog); got != 0 {
			t.Fatalf("NumRequeues of another item = %d, want 0", got)
		}
		q.Forget(shop)
		q.AddRateLimited(shop)
		synctest.Wait()
		advance(time.Second)
		mustReturn(t, get(q), shop)
	}},
	{"after ShutDown nothing comes in, and what is ready goes out", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		q.AddAfter(key("a", "wiki"), time.Second)
		synctest.Wait()
		q.ShutDown()
		if !q.ShuttingDown() {
			t.Fatal("ShuttingDown is false after ShutDown")
		}
		q.Add(blog)
		q.AddAfter(blog, time.Second)
		q.AddRateLimited(blog)
		advance(time.Hour)
		mustReturn(t, get(q), shop)
		q.Add(shop)
		q.Done(shop)
		mustEnd(t, get(q))
	}},
	{"what was added while running, before ShutDown, goes out", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustGet(t, q)
		q.Add(shop)
		q.ShutDown()
		q.Done(shop)
		mustReturn(t, get(q), shop)
		q.Done(shop)
		mustEnd(t, get(q))
	}},
	{"ShutDown ends every waiting Get", func(t *testing.T, q anyQueue) {
		waiting := []<-chan result{get(q), get(q), get(q)}
		synctest.Wait()
		q.ShutDown()
		for _, w := range waiting {
			mustEnd(t, w)
		}
	}},
	{"ShutDownWithDrain waits for what is running", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		q.Add(blog)
		mustGet(t, q)
		mustGet(t, q)
		drained := drain(q)
		mustEnd(t, get(q))
		q.Done(shop)
		mustNotClose(t, drained)
		q.Done(blog)
		mustClose(t, drained)
	}},
	{"ShutDownWithDrain does not wait when nothing is running", func(t *testing.T, q anyQueue) {
		q.Add(shop)
		mustClose(t, drain(q))
		mustReturn(t, get(q), shop)
	}},
}

func wantLen(t *testing.T, q workqueue.TypedInterface[Key], want int) {
	t.Helper()
	if got := q.Len(); got != want {
		t.Fatalf("Len = %d, want %d", got, want)
	}
}

// drain calls ShutDownWithDrain; the channel is closed when that returns.
func drain(q workqueue.TypedInterface[Key]) <-chan struct{} {
	out := make(chan struct{})
	go func() {
		defer close(out)
		q.ShutDownWithDrain()
	}()
	return out
}

func mustClose(t *testing.T, c <-chan struct{}) {
	t.Helper()
	synctest.Wait()
	select {
	case <-c:
	default:
		t.Fatal("still waiting")
	}
}

func mustNotClose(t *testing.T, c <-chan struct{}) {
	t.Helper()
	synctest.Wait()
	select {
	case <-c:
		t.Fatal("does not wait")
	default:
	}
}
