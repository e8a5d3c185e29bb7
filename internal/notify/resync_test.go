// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/notify"
)

func TestTrimmedLogMeansResync(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.recorder.list = r.db.last
		r.db.setDown(true)
		r.db.each((*simListener).sever)
		r.db.change("a")
		r.db.trim()
		elapse(time.Minute)
		r.healthy(errSimDown)
		r.db.setDown(false)
		elapse(15 * time.Second)
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
		elapse(61 * time.Second)
		r.delivered(1)
		r.healthy(nil)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		elapse(10 * time.Minute)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
	})
}

func TestTransactionThatOutlivesTheLog(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		r.recorder.list = r.db.last
		open := r.db.begin()
		r.db.write(open, "slow")
		r.db.change("a")
		r.delivered(2)
		r.db.trimTooMuch()
		elapse(61 * time.Second)
		r.healthy(nil)
		r.db.change("a")
		r.delivered(2, 3)
		r.db.commit(open)
		r.delivered(2, 3, 1)
		if got := r.recorder.resyncCount(); got != 1 {
			r.Errorf("%d resyncs, want 1", got)
		}
		elapse(2 * time.Minute)
		if got := r.recorder.resyncCount(); got != 2 {
			r.Errorf("%d resyncs, want 2: one while the transaction was open, one to be sure afterwards", got)
		}
		elapse(10 * time.Minute)
		if got := r.recorder.resyncCount(); got != 2 {
			r.Errorf("%d resyncs, want no more", got)
		}
		if problems := r.recorder.check(r.db.last()); problems != nil {
			r.Error(problems)
		}
	})
}

func TestDatabasePutBackToAnOlderCopy(t *testing.T) {
	run(t, notify.Options{}, func(r *running) {
		for range 3 {
			r.db.change("a")
		}
		elapse(time.Minute)
		r.delivered(1, 2, 3)
		r.db.restore()
		r.db.each((*simListener).sever)
		elapse(time.Second)
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
		elapse(time.Second)
		if r.recorder.resyncCount() != 1 {
			r.Errorf("%d resyncs, want 1", r.recorder.resyncCount())
		}
		r.db.change("c")
		r.db.change("b")
		r.delivered(1, 2, 3, 6, 7)
	})
}
