// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"k8s.io/client-go/util/workqueue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is application app of workspace ws.
func key(ws, app string) Key {
	return Key{Workspace: ws, Application: app, Runner: RunnerDeployment}
}

// keyN is one of many.
func keyN(ws, app int) Key {
	return key(fmt.Sprintf("tenant-%05d", ws), fmt.Sprintf("shop-frontend-%05d", app))
}

// advance lets fake time pass and everything happen that is due by then. Only inside a synctest bubble.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// mustGet is Get for when the queue has something to hand out.
func mustGet(t testing.TB, q workqueue.TypedInterface[Key]) Key {
	t.Helper()
	got := get(q)
	synctest.Wait()
	select {
	case r := <-got:
		if r.shutdown {
			t.Fatal("Get says shutdown, want an item")
		}
		return r.key
	default:
		t.Fatal("Get blocks, want an item")
		panic("not reached")
	}
}

type result struct {
	key      Key
	shutdown bool
}

// get calls Get on a goroutine of its own.
func get(q workqueue.TypedInterface[Key]) <-chan result {
	out := make(chan result, 1)
	go func() {
		k, shutdown := q.Get()
		out <- result{k, shutdown}
	}()
	return out
}

// mustBlock asserts that a get has not returned, after everything that could happen has happened.
func mustBlock(t testing.TB, got <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-got:
		t.Fatalf("Get returned %v (shutdown %v), want it to block", r.key, r.shutdown)
	default:
	}
}

// mustReturn asserts that a get has returned item k.
func mustReturn(t testing.TB, got <-chan result, k Key) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-got:
		if r.shutdown || r.key != k {
			t.Fatalf("Get returned %v (shutdown %v), want %v", r.key, r.shutdown, k)
		}
	default:
		t.Fatalf("Get blocks, want %v", k)
	}
}

// mustEnd asserts that a get has said shutdown.
func mustEnd(t testing.TB, got <-chan result) {
	t.Helper()
	synctest.Wait()
	select {
	case r := <-got:
		if !r.shutdown {
			t.Fatalf("Get returned %v, want shutdown", r.key)
		}
	default:
		t.Fatal("Get blocks, want shutdown")
	}
}
