// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/notify"
)

// runInProcess is run for the notifier of a database in this process.
func runInProcess(t *testing.T, body func(*testing.T, *simDB, *notify.InProcess, *recorder)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		db := newSimDB()
		n := notify.NewInProcess(db, db.onCommit, notify.Options{})
		rec := record(n)
		rec.list = db.last
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- n.Run(ctx) }()
		defer func() {
			cancel()
			rec.setHold(false)
			if err := <-ended; err != nil {
				t.Errorf("Run returned %v", err)
			}
		}()
		<-n.Ready()
		synctest.Wait()
		body(t, db, n, rec)
	})
}

func TestInProcessDeliversEachCommit(t *testing.T) {
	runInProcess(t, func(t *testing.T, db *simDB, n *notify.InProcess, rec *recorder) {
		for range 3 {
			db.change("a")
			synctest.Wait()
		}
		if diff := cmp.Diff([]int64{1, 2, 3}, rec.sequences()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if err := n.Healthy(); err != nil {
			t.Errorf("Healthy is %v", err)
		}
		if err := n.Run(t.Context()); !errors.Is(err, notify.ErrAlreadyRun) {
			t.Errorf("a second Run returned %v", err)
		}
	})
}

func TestInProcessReadsOnceForManyCommits(t *testing.T) {
	runInProcess(t, func(t *testing.T, db *simDB, _ *notify.InProcess, rec *recorder) {
		rec.setHold(true)
		db.change("first")
		synctest.Wait()
		before := db.readCount()
		for range 100 {
			db.change("a")
		}
		rec.setHold(false)
		synctest.Wait()
		if got := db.readCount() - before; got != 1 {
			t.Errorf("the log was read %d times, want 1", got)
		}
		if rec.count() != 101 {
			t.Errorf("%d events were delivered, want 101", rec.count())
		}
	})
}

func TestInProcessRestCostsOneStatementAMinute(t *testing.T) {
	runInProcess(t, func(t *testing.T, db *simDB, _ *notify.InProcess, _ *recorder) {
		before := db.readCount()
		elapse(10*time.Minute + time.Second)
		if got := db.readCount() - before; got != 10 {
			t.Errorf("the log was read %d times in ten minutes", got)
		}
	})
}

func TestInProcessComesBack(t *testing.T) {
	runInProcess(t, func(t *testing.T, db *simDB, n *notify.InProcess, rec *recorder) {
		db.setDown(true)
		db.change("a")
		synctest.Wait()
		if !errors.Is(n.Healthy(), errSimDown) {
			t.Errorf("Healthy is %v", n.Healthy())
		}
		db.setDown(false)
		elapse(50 * time.Millisecond)
		synctest.Wait()
		if diff := cmp.Diff([]int64{1}, rec.sequences()); diff != "" {
			t.Errorf("delivered (-want +got):\n%s", diff)
		}
		if n.Healthy() != nil {
			t.Errorf("Healthy is %v", n.Healthy())
		}
	})
}

func TestInProcessTrimmedLogMeansResync(t *testing.T) {
	runInProcess(t, func(t *testing.T, db *simDB, _ *notify.InProcess, rec *recorder) {
		db.setDown(true)
		db.change("a")
		synctest.Wait()
		db.trim()
		db.setDown(false)
		elapse(50 * time.Millisecond)
		synctest.Wait()
		if rec.resyncCount() != 1 {
			t.Errorf("%d resyncs, want 1", rec.resyncCount())
		}
		if problems := rec.check(db.last()); problems != nil {
			t.Error(problems)
		}
	})
}

func TestInProcessNothingIsLostOrGoesBack(t *testing.T) {
	key := rapid.Map(rapid.IntRange(0, 5), func(i int) string { return fmt.Sprintf("k%d", i) })
	rapid.Check(t, func(rt *rapid.T) {
		var ended any
		runInProcess(t, func(t *testing.T, db *simDB, _ *notify.InProcess, rec *recorder) {
			defer func() { ended = recover() }()
			rt.Repeat(map[string]func(*rapid.T){
				"change":   func(rt *rapid.T) { db.change(key.Draw(rt, "key")) },
				"deliver":  func(*rapid.T) { synctest.Wait() },
				"hold":     func(*rapid.T) { rec.setHold(true) },
				"release":  func(*rapid.T) { rec.setHold(false) },
				"fail":     func(*rapid.T) { db.setDown(true) },
				"heal":     func(*rapid.T) { db.setDown(false) },
				"trim":     func(*rapid.T) { db.trim() },
				"a moment": func(*rapid.T) { elapse(time.Second) },
			})
			rec.setHold(false)
			db.setDown(false)
			elapse(30 * time.Second)
			synctest.Wait()
			for _, problem := range rec.check(db.last()) {
				rt.Errorf("%s", problem)
			}
		})
		if ended != nil {
			panic(ended)
		}
	})
}
