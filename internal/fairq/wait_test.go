// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWaitsAreEachWorkspacesOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()
		q.Add(key("a", "1"))
		q.Add(key("b", "1"))
		advance(3 * time.Second)
		q.Add(key("a", "2"))
		advance(time.Second)

		wantWaits(t, q, "a", Waits{Ready: 2, Oldest: 4 * time.Second})
		mustReturn(t, get(q), key("a", "1"))
		mustReturn(t, get(q), key("b", "1"))
		mustReturn(t, get(q), key("a", "2"))
		wantWaits(t, q, "a", Waits{Count: 2, Sum: 5 * time.Second, Max: 4 * time.Second, Last: time.Second, Running: 2})
		wantWaits(t, q, "b", Waits{Count: 1, Sum: 4 * time.Second, Max: 4 * time.Second, Last: 4 * time.Second, Running: 1})
		wantWaits(t, q, "nobody", Waits{})
	})
}

func TestWaitBeginsWhenReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()

		q.AddAfter(shop, time.Minute)
		advance(time.Minute + time.Second)
		mustGet(t, q)
		wantWaits(t, q, "a", Waits{Count: 1, Sum: time.Second, Max: time.Second, Last: time.Second, Running: 1})

		q.Add(shop) // runs: it is ready when that run is done
		advance(time.Minute)
		q.Done(shop)
		mustGet(t, q)
		wantWaits(t, q, "a", Waits{Count: 2, Sum: time.Second, Max: time.Second, Running: 1})
	})
}

func TestObserver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		type handedOut struct {
			Workspace string
			Wait      time.Duration
			Depth     int
		}
		var got []handedOut
		var q *Queue[Key]
		q = New(Options[Key]{Observe: func(workspace string, wait time.Duration, depth int) {
			q.Len() // may be called: the lock is not held
			got = append(got, handedOut{workspace, wait, depth})
		}})
		defer q.ShutDown()
		q.Add(key("a", "1"))
		q.Add(key("b", "1"))
		advance(time.Second)
		mustGet(t, q)
		mustGet(t, q)
		if diff := cmp.Diff([]handedOut{{"a", time.Second, 1}, {"b", time.Second, 0}}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{PerWorkspace: 1})
		defer q.ShutDown()
		q.Add(key("a", "1"))
		mustGet(t, q)
		q.Add(key("a", "2"))
		advance(time.Second)
		q.Add(key("b", "1"))
		q.Add(key("b", "2"))
		q.AddAfter(key("c", "1"), time.Minute)
		advance(time.Second)
		want := Stats{Ready: 3, Running: 1, Delayed: 1, Waiting: 2, Capped: 1, Oldest: 2 * time.Second}
		if diff := cmp.Diff(want, q.Stats()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestIdleWorkspacesAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Options[Key]{})
		defer q.ShutDown()
		const n = 100
		for i := range n {
			q.Add(keyN(i, 0))
		}
		served(q, n)
		q.AddAfter(keyN(0, 0), keepWaits) // a delay is no reason to remember
		advance(keepWaits - time.Second)
		if got := q.Waits(keyN(1, 0).Workspace).Count; got != 1 {
			t.Errorf("just before its time is up a workspace has %d waits, want 1", got)
		}
		advance(time.Second)
		wantWaits(t, q, keyN(1, 0).Workspace, Waits{})

		// Each turn of one workspace that keeps coming makes room of others that do not.
		served(q, 1)
		for range n {
			q.Add(key("regular", "shop"))
			served(q, 1)
		}
		if len(q.workspaces) != 2 || q.idlers.len != 2 {
			t.Errorf("%d workspaces are known, %d as idle, want 2", len(q.workspaces), q.idlers.len)
		}
		if got := q.Waits("regular").Count; got != n {
			t.Errorf("the regular has %d waits, want %d", got, n)
		}
	})
}

func TestIdleWorkspacesAreBounded(t *testing.T) {
	q := New(Options[Key]{})
	for i := range maxIdle + 1000 {
		q.Add(keyN(i, 0))
		served(q, 1)
	}
	if len(q.workspaces) != maxIdle || q.idlers.len != maxIdle {
		t.Errorf("%d workspaces are known, %d as idle, want %d", len(q.workspaces), q.idlers.len, maxIdle)
	}
	wantWaits(t, q, keyN(0, 0).Workspace, Waits{})
	if got := q.Waits(keyN(maxIdle+999, 0).Workspace).Count; got != 1 {
		t.Errorf("the last one has %d waits, want 1", got)
	}
}

func wantWaits(t *testing.T, q *Queue[Key], workspace string, want Waits) {
	t.Helper()
	if diff := cmp.Diff(want, q.Waits(workspace)); diff != "" {
		t.Errorf("waits of %q: %s", workspace, diff)
	}
}
