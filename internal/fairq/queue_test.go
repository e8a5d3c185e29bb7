// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestRunnersOfAnApplicationAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()
		deployment := Key{"a", "shop", RunnerDeployment}
		syncRun := Key{"a", "shop", RunnerSyncRun}
		q.Add(deployment)
		q.Add(syncRun)
		mustReturn(t, get(q), deployment)
		mustReturn(t, get(q), syncRun)
		q.Add(syncRun)
		q.Done(deployment)
		mustBlock(t, get(q)) // the end of one runner does not free the other
	})
}

// TestTurns writes down who is served, one letter for each item, when every workspace has items enough.
func TestTurns(t *testing.T) {
	tests := []struct {
		name       string
		workspaces string
		weights    map[string]int
		want       string
	}{
		{"alone", "a", nil, "aaaaaa"},
		{"in turn", "abc", nil, "abcabcabc"},
		{"weight is items in a row", "abc", map[string]int{"b": 3}, "abbbcabbbcabbbc"},
		{"a weight below one counts as one", "ab", map[string]int{"a": 0, "b": -7}, "ababab"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options[Key]{}
			if tt.weights != nil {
				opts.Weight = func(ws string) int {
					if w, ok := tt.weights[ws]; ok {
						return w
					}
					return 1
				}
			}
			q := New(opts)
			for _, ws := range strings.Split(tt.workspaces, "") {
				for i := range 100 {
					q.Add(Key{Workspace: ws, Application: string(rune(i))})
				}
			}
			if diff := cmp.Diff(tt.want, served(q, len(tt.want))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNewcomerWaitsOneRound(t *testing.T) {
	q := New(Options[Key]{})
	for i := range 10_000 {
		q.Add(keyN(1, i))
	}
	served(q, 100)
	q.Add(key("newcomer", "shop"))
	if got, _ := q.Get(); got.Workspace == "newcomer" {
		t.Fatal("the newcomer went before one whose turn it was")
	}
	if got, _ := q.Get(); got.Workspace != "newcomer" {
		t.Fatalf("got %v, want the newcomer, ahead of thousands", got)
	}
}

func TestTurnsLeftOverAreLost(t *testing.T) {
	q := New(Options[Key]{Weight: func(ws string) int { return map[string]int{"a": 3, "b": 1}[ws] }})
	q.Add(key("a", "1"))
	q.Add(key("b", "1"))
	q.Add(key("b", "2"))
	got := served(q, 1) // a has one of its three, and then nothing
	q.Add(key("a", "2"))
	q.Add(key("a", "3"))
	if got += served(q, 4); got != "abaab" {
		t.Fatalf("served %q, want abaab", got)
	}
}

// served gets and finishes n items and tells the workspaces' names.
func served(q *Queue[Key], n int) string {
	var out strings.Builder
	for range n {
		k, _ := q.Get()
		q.Done(k)
		out.WriteString(k.Workspace)
	}
	return out.String()
}

func TestCapHoldsBackOnlyItsOwnWorkspace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 2})
		defer q.ShutDown()
		for _, app := range []string{"1", "2", "3", "4"} {
			q.Add(key("a", app))
		}
		q.Add(key("b", "1"))
		mustReturn(t, get(q), key("a", "1"))
		mustReturn(t, get(q), key("b", "1"))
		mustReturn(t, get(q), key("a", "2"))
		wantLen(t, q, 2)

		// Two workers wait. Each slot that comes free wakes one of them, in the order of the line.
		first, second := get(q), get(q)
		mustBlock(t, first)
		mustBlock(t, second)
		q.Done(key("b", "1"))
		mustBlock(t, first)
		mustBlock(t, second)
		q.Done(key("a", "2"))
		mustReturnOneOf(t, key("a", "3"), first, second)
		q.Done(key("a", "1"))
		mustReturnOneOf(t, key("a", "4"), first, second)
	})
}

// mustReturnOneOf asserts that k was returned to one of several workers: which of them is woken is not promised.
func mustReturnOneOf(t *testing.T, k Key, gets ...<-chan result) {
	t.Helper()
	synctest.Wait()
	for _, got := range gets {
		select {
		case r := <-got:
			if r.key != k || r.shutdown {
				t.Fatalf("Get returned %v (shutdown %v), want %v", r.key, r.shutdown, k)
			}
			return
		default:
		}
	}
	t.Fatalf("every Get blocks, want %v", k)
}

func TestCapAndAddWhileRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		defer q.ShutDown()
		q.Add(shop)
		mustGet(t, q)
		q.Add(shop)
		q.Add(blog)
		next := get(q)
		mustBlock(t, next)
		q.Done(shop) // frees the slot and lines shop up again, behind blog
		mustReturn(t, next, blog)
		next = get(q)
		mustBlock(t, next)
		q.Done(blog)
		mustReturn(t, next, shop)
	})
}

func TestCapDuringShutDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		q.Add(shop)
		q.Add(blog)
		mustGet(t, q)
		first, second := get(q), get(q)
		q.ShutDown()
		mustBlock(t, first) // blog is still to come
		mustBlock(t, second)
		q.Done(shop)
		synctest.Wait()
		// One has blog, the other has been told that there is no more.
		a, b := <-first, <-second
		if a.shutdown {
			a, b = b, a
		}
		if a.shutdown || a.key != blog || !b.shutdown {
			t.Fatalf("got %v and %v, want blog and shutdown", a, b)
		}
	})
}

func TestDelayedHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		defer q.ShutDown()
		q.AddAfter(shop, time.Hour)
		q.Add(blog)
		mustReturn(t, get(q), blog)
		q.AddRateLimited(blog)
		q.Done(blog)
		q.Add(key("a", "wiki"))
		mustReturn(t, get(q), key("a", "wiki"))
	})
}

func TestDoneOfWhatDoesNotRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		defer q.ShutDown()
		q.Done(shop) // unknown
		q.Add(shop)
		q.Done(shop) // ready
		wantLen(t, q, 1)
		q.AddAfter(blog, time.Minute)
		q.Done(blog) // delayed
		mustReturn(t, get(q), shop)
		q.Done(shop)
		q.Done(shop) // done already
		if diff := cmp.Diff(Stats{Delayed: 1}, q.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDelayWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()
		advance(time.Hour)
		q.AddAfter(shop, math.MaxInt64) // must not wrap round into the past
		next := get(q)
		advance(1000 * time.Hour)
		mustBlock(t, next)
	})
}

func TestOneTimerForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()
		const n = 1000
		for i := range n {
			q.AddAfter(keyN(i%10, i), time.Duration(n-i)*time.Second)
		}
		timer := q.timer
		for i := n - 1; i >= 0; i-- {
			advance(time.Second)
			mustReturn(t, get(q), keyN(i%10, i))
			wantLen(t, q, 0)
		}
		if q.timer != timer {
			t.Error("another timer was made")
		}
	})
}

func TestNothingIsKeptOfWhatIsDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		defer q.ShutDown()
		for i := range 1000 {
			q.Add(keyN(i%7, i))
			q.AddAfter(keyN(i%7, i), time.Second)
		}
		served(q, 1000)
		advance(time.Second)
		served(q, 1000)
		if len(q.items) != 0 || q.rotation.front != nil || q.ages.oldest != nil || len(q.delayed) != 0 {
			t.Errorf("kept %d items, front %v, oldest %v, %d delays", len(q.items), q.rotation.front, q.ages.oldest, len(q.delayed))
		}
		if len(q.spares.items) > maxSpares {
			t.Errorf("kept %d spares, want at most %d", len(q.spares.items), maxSpares)
		}
		for _, it := range q.spares.items {
			if diff := cmp.Diff(item[Key]{}, *it, cmp.AllowUnexported(item[Key]{})); diff != "" {
				t.Fatal("a spare remembers: " + diff)
			}
		}
	})
}

func TestDefaultRateLimiter(t *testing.T) {
	limiter := DefaultRateLimiter[Key]()
	if got := limiter.When(shop); got != 5*time.Millisecond {
		t.Errorf("first retry after %v, want 5ms", got)
	}
	for range 100 {
		limiter.When(shop)
	}
	if got := limiter.When(shop); got != 5*time.Minute {
		t.Errorf("hundredth retry after %v, want 5m", got)
	}
	if got := limiter.When(blog); got != 5*time.Millisecond {
		t.Errorf("first retry of another item after %v, want 5ms", got)
	}
}
