// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		elapse(10*time.Minute + time.Second)
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
		elapse(50 * time.Millisecond)
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
			elapse(time.Millisecond)
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
			elapse(30 * time.Second)
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
		elapse(59 * time.Second)
		r.delivered()
		elapse(time.Second)
		r.delivered(1)
	})
}

func TestSilentConnectionIsReplaced(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.each(func(l *simListener) { l.stall(true) })
		r.db.change("a")
		elapse(time.Minute)
		r.delivered(1)
		elapse(4 * time.Second)
		if r.connections() != 1 {
			r.Error("the connection was not given time")
		}
		elapse(2 * time.Second)
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
		elapse(time.Minute)
		r.db.each(func(l *simListener) { l.stall(false) })
		elapse(time.Minute)
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
		elapse(time.Second)
		if r.recorder.resyncCount() != 1 {
			r.Error("trimming past the cursor went unnoticed")
		}
	})
}

func TestCatchUpThatFailsHoldsNobodyUp(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.db.setDown(true)
		elapse(time.Minute)
		r.healthy(errSimDown)
		r.db.change("a")
		r.delivered(1)
		r.db.route = func(*simListener, store.Event) {}
		r.db.change("a")
		r.db.setDown(false)
		elapse(100 * time.Millisecond)
		r.delivered(1, 2)
		r.healthy(nil)
		if r.connections() != 1 {
			r.Errorf("%d connections were made, want 1", r.connections())
		}
	})
}

func TestCatchUpThatTakesTooLongIsGivenMoreTime(t *testing.T) {
	run(t, notify.Options{CallTimeout: 10 * time.Second}, func(r *running) {
		r.db.setSlow(25 * time.Second)
		r.db.each((*simListener).sever)
		r.db.change("a")
		elapse(time.Minute)
		r.delivered(1)
		r.healthy(nil)
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
		elapse(time.Minute)
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
