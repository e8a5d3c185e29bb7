// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// onlyControllers is as much of a manager as a controller that has no Kubernetes objects to watch needs.
type onlyControllers struct {
	manager.Manager
	added []manager.Runnable
}

func (m *onlyControllers) GetControllerOptions() config.Controller { return config.Controller{} }

func (m *onlyControllers) Add(r manager.Runnable) error {
	m.added = append(m.added, r)
	return nil
}

// startController runs a controller of controller-runtime on a fair queue, inside a bubble. Its keys come through a
// channel source, as events do. stop ends it and waits for that.
func startController(
	t *testing.T, workers int, opts Options[Key], do reconcile.TypedFunc[Key],
) (events chan<- event.TypedGenericEvent[Key], stop func()) {
	t.Helper()
	mgr := &onlyControllers{}
	sameName := true // for every test
	c, err := controller.NewTyped("fairq", mgr, controller.TypedOptions[Key]{
		NewQueue:                NewQueueFunc(opts),
		RateLimiter:             DefaultRateLimiter[Key](),
		MaxConcurrentReconciles: workers,
		Reconciler:              do,
		Logger:                  logr.Discard(),
		SkipNameValidation:      &sameName,
	})
	if err != nil {
		t.Fatal(err)
	}
	in := make(chan event.TypedGenericEvent[Key])
	err = c.Watch(source.TypedChannel(in, handler.TypedFuncs[Key, Key]{
		GenericFunc: func(_ context.Context, e event.TypedGenericEvent[Key], q anyQueue) {
			q.Add(e.Object)
		},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if len(mgr.added) != 1 {
		t.Fatalf("the manager got %d runnables, want 1", len(mgr.added))
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.added[0].Start(ctx) }()
	synctest.Wait()
	return in, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the controller ended with %v", err)
		}
	}
}

func TestControllerRetriesWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		begin := time.Now()
		events, stop := startController(t, 1, Options[Key]{}, func(_ context.Context, k Key) (reconcile.Result, error) {
			at = append(at, time.Since(begin))
			switch len(at) {
			case 1, 2:
				return reconcile.Result{}, errors.New("not yet")
			case 3:
				return reconcile.Result{RequeueAfter: time.Minute}, nil
			}
			return reconcile.Result{}, nil
		})
		defer stop()
		events <- event.TypedGenericEvent[Key]{Object: shop}
		advance(time.Hour)
		const ms = time.Millisecond
		want := []time.Duration{0, 5 * ms, 15 * ms, 15*ms + time.Minute}
		if diff := cmp.Diff(want, at); diff != "" {
			t.Error(diff)
		}
	})
}

// TestControllerSurvivesStuckTenant has one tenant with a cluster that hangs and more events than there are workers.
func TestControllerSurvivesStuckTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, m := make(chan struct{}), NewMetrics()
		var ran []Key // one at a time: the only worker that the stuck tenant leaves
		opts := Options[Key]{PerWorkspace: 2, Metrics: m}
		events, stop := startController(t, 3, opts, func(_ context.Context, k Key) (reconcile.Result, error) {
			if k.Workspace == "stuck" {
				<-hung
				return reconcile.Result{}, nil
			}
			ran = append(ran, k)
			return reconcile.Result{}, nil
		})
		defer stop()
		defer close(hung)
		for i := range 50 {
			events <- event.TypedGenericEvent[Key]{Object: Key{"stuck", string(rune('a' + i)), RunnerDeployment}}
		}
		advance(time.Second)
		events <- event.TypedGenericEvent[Key]{Object: key("lone", "shop")}
		synctest.Wait()
		if diff := cmp.Diff([]Key{key("lone", "shop")}, ran); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(Waits{Count: 1}, m.Waits("fairq", "lone")); diff != "" {
			t.Error("the lone tenant waited: " + diff)
		}
		if diff := cmp.Diff(Waits{Count: 2, Ready: 48, Running: 2, Oldest: time.Second}, m.Waits("fairq", "stuck")); diff != "" {
			t.Error("the stuck tenant: " + diff)
		}
	})
}

// An event that arrives during a reconcile leads to one more, and never to two at once.
func TestControllerRunsAgainAfterEventDuringRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		runs, now := 0, 0
		events, stop := startController(t, 4, Options[Key]{}, func(context.Context, Key) (reconcile.Result, error) {
			runs++
			now++
			if now != 1 {
				t.Errorf("%d runs of one key at once", now)
			}
			<-step
			now--
			return reconcile.Result{}, nil
		})
		defer stop()
		for range 3 {
			events <- event.TypedGenericEvent[Key]{Object: shop}
			synctest.Wait()
		}
		step <- struct{}{}
		step <- struct{}{}
		synctest.Wait()
		if runs != 2 {
			t.Errorf("%d runs, want 2", runs)
		}
	})
}
