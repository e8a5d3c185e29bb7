// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

// running is a notifier on a simulated database, in fake time.
type running struct {
	*testing.T
	db       *simDB
	notifier *notify.Listening
	recorder *recorder
}

// run starts a notifier, runs the test's body, and stops the notifier.
func run(t *testing.T, opts notify.Options, body func(*running)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := newSimDB()
		n := notify.NewListening(notify.From(db.Listen), db, opts)
		r := &running{t, db, n, record(n)}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		defer func() {
			cancel()
			r.recorder.setHold(false)
			if err := <-ended; err != nil {
				t.Errorf("Run returned %v", err)
			}
			db.each(func(l *simListener) {
				if l.closed != 1 {
					t.Errorf("a connection was closed %d times", l.closed)
				}
			})
		}()
		<-n.Ready()
		synctest.Wait()
		body(r)
	})
}

// delivered waits for goroutines, not for time, and compares what came so far.
func (r *running) delivered(want ...int64) {
	r.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, r.recorder.sequences()); diff != "" {
		r.Errorf("delivered (-want +got):\n%s", diff)
	}
}

func (r *running) healthy(want error) {
	r.Helper()
	synctest.Wait()
	if got := r.notifier.Healthy(); !errors.Is(got, want) || (want == nil) != (got == nil) {
		r.Errorf("Healthy is %v, want %v", got, want)
	}
}

func (r *running) connections() int {
	r.db.mu.Lock()
	defer r.db.mu.Unlock()
	return len(r.db.listeners)
}

func TestNotificationsCostNoStatement(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		before := r.db.readCount()
		for range 5 {
			r.db.change("a")
		}
		r.delivered(1, 2, 3, 4, 5)
		if got := r.db.readCount() - before; got != 0 {
			r.Errorf("the log was read %d times", got)
		}
	})
}

func TestRestCostsOneStatementAMinute(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		before := r.db.readCount()
		time.Sleep(10*time.Minute + time.Second)
		if got := r.db.readCount() - before; got != 10 {
			r.Errorf("the log was read %d times in ten minutes", got)
		}
	})
}

func TestCutConnection(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.change("a")
		r.delivered(1)
		r.db.each((*simListener).sever)
		r.healthy(notify.ErrNotDelivering)
		r.db.change("a")
		r.db.change("b")
		r.delivered(1)
		time.Sleep(50 * time.Millisecond)
		r.delivered(1, 2, 3)
		r.healthy(nil)
		if r.connections() != 2 {
			r.Errorf("%d connections were made, want 2", r.connections())
		}
	})
}

func TestConnectionThatBreaksAtOnceIsNotMadeTooOften(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		for end := time.Now().Add(time.Minute); time.Now().Before(end); {
			r.db.each((*simListener).sever)
			time.Sleep(time.Millisecond)
		}
		if got := r.connections(); got > 30 {
			r.Errorf("%d connections in a minute", got)
		}
	})
}

func TestLostNotificationIsCaughtUpAtOnceWhereKnown(t *testing.T) {
	t.Run("not understood", func(t *testing.T) {
		run(t, notify.Options{}, func(r *running) {
			r.db.route = func(l *simListener, _ store.Event) { l.sendNonsense() }
			r.db.change("a")
			r.delivered(1)
		})
	})
	t.Run("no room", func(t *testing.T) {
		run(t, notify.Options{Queue: 2}, func(r *running) {
			r.recorder.setHold(true)
			for range 20 {
				r.db.change("a")
				synctest.Wait()
			}
			r.recorder.setHold(false)
			synctest.Wait()
			if problems := r.recorder.check(r.db.last()); problems != nil {
				r.Error(problems)
			}
			time.Sleep(30 * time.Second)
			if r.connections() != 1 {
				r.Error("the connection was replaced although it was sound")
			}
		})
	})
}

func TestLostNotificationIsCaughtUpLaterWhereNot(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.route = func(*simListener, store.Event) {}
		r.db.change("a")
		time.Sleep(59 * time.Second)
		r.delivered()
		time.Sleep(time.Second)
		r.delivered(1)
	})
}

func TestSilentConnectionIsReplaced(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.each(func(l *simListener) { l.stall(true) })
		r.db.change("a")
		time.Sleep(time.Minute)
		r.delivered(1)
		time.Sleep(4 * time.Second)
		if r.connections() != 1 {
			r.Error("the connection was not given time")
		}
		time.Sleep(2 * time.Second)
		r.healthy(nil)
		if r.connections() != 2 {
			r.Errorf("%d connections were made, want 2", r.connections())
		}
		r.db.change("a")
		r.delivered(1, 2)
	})
}

func TestSlowConnectionIsKept(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.each(func(l *simListener) { l.stall(true) })
		r.db.change("a")
		time.Sleep(time.Minute)
		r.db.each(func(l *simListener) { l.stall(false) })
		time.Sleep(time.Minute)
		r.delivered(1)
		if r.connections() != 1 {
			r.Errorf("%d connections were made, want 1", r.connections())
		}
	})
}

func TestManyNotificationsMoveTheCursorAheadOfTime(t *testing.T) {
	run(t, notify.Options{Keys: 10}, func(r *running) {
		before := r.db.readCount()
		for range 35 {
			r.db.change("a")
			synctest.Wait()
		}
		if got := r.db.readCount() - before; got != 3 {
			r.Errorf("the log was read %d times, want 3", got)
		}
		r.db.trim()
		r.db.each((*simListener).sever)
		time.Sleep(time.Second)
		if r.recorder.resyncCount() != 1 {
			r.Error("trimming past the cursor went unnoticed")
		}
	})
}

func TestTrimmedLogMeansResync(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.recorder.list = r.db.last
		r.db.setDown(true)
		r.db.each((*simListener).sever)
		r.db.change("a")
		r.db.trim()
		time.Sleep(time.Minute)
		r.healthy(errSimDown)
		r.db.setDown(false)
		time.Sleep(15 * time.Second)
		r.healthy(nil)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		r.db.change("a")
		r.delivered(2)
		if problems := r.recorder.check(r.db.last()); problems != nil {
			r.Error(problems)
		}
	})
}

func TestTrimmedLogIsNoticedByAConnectionThatLives(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.change("a")
		r.db.trim()
		time.Sleep(61 * time.Second)
		r.delivered(1)
		r.healthy(nil)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		time.Sleep(10 * time.Minute)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
	})
}

func TestDatabasePutBackToAnOlderCopy(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		for range 3 {
			r.db.change("a")
		}
		time.Sleep(time.Minute)
		r.delivered(1, 2, 3)
		r.db.restore()
		r.db.each((*simListener).sever)
		time.Sleep(time.Second)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		r.db.change("a")
		r.delivered(1, 2, 3, 1)
	})
}

func TestReplicaTakesOverThatLaggedBehind(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		for _, key := range []string{"a", "b", "c"} {
			r.db.change(key)
		}
		r.delivered(1, 2, 3)
		r.db.failOver(1)
		for range 3 {
			r.db.change("b")
		}
		time.Sleep(time.Second)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		r.db.change("c")
		r.db.change("b")
		r.delivered(1, 2, 3, 6, 7)
	})
}

func TestCatchUpThatFailsHoldsNobodyUp(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.setDown(true)
		time.Sleep(time.Minute)
		r.healthy(errSimDown)
		r.db.change("a")
		r.delivered(1)
		r.db.route = func(*simListener, store.Event) {}
		r.db.change("a")
		r.db.setDown(false)
		time.Sleep(100 * time.Millisecond)
		r.delivered(1, 2)
		r.healthy(nil)
		if r.connections() != 1 {
			r.Errorf("%d connections were made, want 1", r.connections())
		}
	})
}

func TestDatabaseAwayAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newSimDB()
		db.setDown(true)
		n := notify.NewListening(notify.From(db.Listen), db, notify.Options{})
		rec := record(n)
		if !errors.Is(n.Healthy(), notify.ErrNotDelivering) {
			t.Errorf("before Run, Healthy is %v", n.Healthy())
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		time.Sleep(time.Minute)
		select {
		case <-n.Ready():
			t.Error("ready without a database")
		default:
		}
		if !errors.Is(n.Healthy(), errSimDown) {
			t.Errorf("Healthy is %v", n.Healthy())
		}
		db.change("before")
		db.setDown(false)
		<-n.Ready()
		db.change("after")
		synctest.Wait()
		if diff := cmp.Diff([]int64{2}, rec.sequences()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run returned %v", err)
		}
		if !errors.Is(n.Healthy(), notify.ErrNotDelivering) {
			t.Errorf("after Run, Healthy is %v", n.Healthy())
		}
		if err := n.Run(t.Context()); !errors.Is(err, notify.ErrAlreadyRun) {
			t.Errorf("a second Run returned %v", err)
		}
	})
}

func TestSubscribingWhileRunning(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.change("a")
		r.delivered(1)
		var late, nested []int64
		r.notifier.Subscribe(store.TopicOperation, func(e store.Event) {
			late = append(late, e.Sequence)
			if len(late) == 1 {
				r.notifier.Subscribe(store.TopicOperation, func(e store.Event) { nested = append(nested, e.Sequence) })
			}
		})
		r.notifier.Subscribe(store.TopicApplicationState, func(e store.Event) { r.Errorf("%v is of another topic", e) })
		r.db.change("a")
		r.db.change("a")
		r.delivered(1, 2, 3)
		if diff := cmp.Diff([][]int64{{2, 3}, {3}}, [][]int64{late, nested}); diff != "" {
			r.Errorf("delivered (-want +got):\n%s", diff)
		}
	})
}

func TestPanicOfAHandlerIsNotSwallowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newSimDB()
		n := notify.NewListening(notify.From(db.Listen), db, notify.Options{})
		n.Subscribe(store.TopicOperation, func(store.Event) { panic("a bug") })
		got := make(chan any)
		go func() {
			defer func() { got <- recover() }()
			_ = n.Run(t.Context())
		}()
		<-n.Ready()
		db.change("a")
		if p := <-got; p != "a bug" {
			t.Errorf("recovered %v", p)
		}
	})
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	run(t, notify.Options{Metrics: registry}, func(r *running) {
		// Another notifier of the same process shares the metrics.
		notify.NewListening(notify.From(r.db.Listen), r.db, notify.Options{Metrics: registry})
		r.db.change("a")
		r.db.change("b")
		r.delivered(1, 2)
		r.db.each((*simListener).sever)
		time.Sleep(time.Second)
		r.db.route = func(*simListener, store.Event) {}
		r.db.change("a")
		time.Sleep(time.Minute)
		r.delivered(1, 2, 3)
		for name, want := range map[string]float64{
			"weir_notify_delivered_total":          3,
			"weir_notify_duplicates_dropped_total": 2,
			"weir_notify_recovered_total":          1,
			"weir_notify_reconnects_total":         1,
			"weir_notify_catch_ups_total":          3,
			"weir_notify_resyncs_total":            0,
			"weir_notify_connected":                1,
		} {
			if got := metric(t, registry, name); got != want {
				r.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
	if got := metric(t, registry, "weir_notify_connected"); got != 0 {
		t.Errorf("weir_notify_connected is %v at the end", got)
	}
	if problems, err := testutil.GatherAndLint(registry); err != nil || len(problems) > 0 {
		t.Errorf("lint: %v, %v", problems, err)
	}
}

// metric adds up all series of a name.
func metric(t *testing.T, from prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}
