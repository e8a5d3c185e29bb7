// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
)

// world is one run of a property test: a simulated database with faults, a
// notifier on it, and a consumer.
type world struct {
	db       *simDB
	recorder *recorder
	trims    int
}

const simCatchUp = time.Minute

// inWorlds checks a property in many worlds, each with a time of its own.
func inWorlds(t *testing.T, options func(*rapid.T) notify.Options, body func(*rapid.T, *world)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		// rapid ends a run by panicking, which has to happen in its own goroutine.
		var ended any
		synctest.Test(t, func(t *testing.T) {
			defer func() { ended = recover() }()
			inWorld(t.Context(), rt, options(rt), body)
		})
		if ended != nil {
			panic(ended)
		}
	})
}

func inWorld(ctx context.Context, rt *rapid.T, opts notify.Options, body func(*rapid.T, *world)) {
	opts.CatchUpEvery = simCatchUp
	db := newSimDB()
	n := notify.NewListening(notify.From(db.Listen), db, opts)
	w := &world{db: db, recorder: record(n)}
	w.recorder.list = db.last

	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	defer func() {
		cancel()
		w.recorder.setHold(false)
		if err := <-ended; err != nil {
			rt.Errorf("Run: %v", err)
		}
	}()
	<-n.Ready()
	body(rt, w)
}

// actions are what happens in a world whose notifications keep to PostgreSQL's
// promise: in commit order, each at most once.
func (w *world) actions() map[string]func(*rapid.T) {
	key := rapid.Map(rapid.IntRange(0, 5), func(i int) string { return fmt.Sprintf("k%d", i) })
	pick := func(rt *rapid.T) int64 {
		open := w.db.openXids()
		if len(open) == 0 {
			rt.Skip("no open transaction")
		}
		return rapid.SampledFrom(open).Draw(rt, "transaction")
	}
	return map[string]func(*rapid.T){
		"begin":  func(*rapid.T) { w.db.begin() },
		"write":  func(rt *rapid.T) { w.db.write(pick(rt), key.Draw(rt, "key")) },
		"commit": func(rt *rapid.T) { w.db.commit(pick(rt)) },
		"change": func(rt *rapid.T) {
			xid := w.db.begin()
			w.db.write(xid, key.Draw(rt, "key"))
			w.db.commit(xid)
		},
		"deliver":  func(*rapid.T) { synctest.Wait() },
		"cut":      func(*rapid.T) { w.db.each((*simListener).sever) },
		"stall":    func(*rapid.T) { w.db.each(func(l *simListener) { l.stall(true) }) },
		"unstall":  func(*rapid.T) { w.db.each(func(l *simListener) { l.stall(false) }) },
		"nonsense": func(*rapid.T) { w.db.each((*simListener).sendNonsense) },
		"hold":     func(*rapid.T) { w.recorder.setHold(true) },
		"release":  func(*rapid.T) { w.recorder.setHold(false) },
		"fail":     func(*rapid.T) { w.db.setDown(true) },
		"heal":     func(*rapid.T) { w.db.setDown(false) },
		"trim": func(*rapid.T) {
			w.db.trim()
			w.trims++
		},
		"a moment": func(*rapid.T) { elapse(time.Second) },
		"a minute": func(*rapid.T) { elapse(simCatchUp) },
	}
}

// settle ends all faults and transactions and lets time pass. A connection that
// is stalled stays so: finding that out is part of the property.
func (w *world) settle() {
	w.recorder.setHold(false)
	w.db.setDown(false)
	for _, xid := range w.db.openXids() {
		w.db.commit(xid)
	}
	elapse(3 * simCatchUp)
	synctest.Wait()
}

func (w *world) verify(rt *rapid.T) {
	for _, problem := range w.recorder.check(w.db.last()) {
		rt.Errorf("%s", problem)
	}
	if w.recorder.resyncCount() > w.trims {
		rt.Errorf("%d resyncs, but the log was trimmed %d times", w.recorder.resyncCount(), w.trims)
	}
}

// Whatever happens to connections, handlers and the database, the last change of
// every key arrives and none goes back, even where the guard may keep almost nothing.
func TestNothingIsLostOrGoesBack(t *testing.T) {
	options := func(rt *rapid.T) notify.Options {
		return notify.Options{
			Keys:  rapid.IntRange(1, 4).Draw(rt, "keys"),
			Queue: rapid.IntRange(1, 8).Draw(rt, "queue"),
		}
	}
	inWorlds(t, options, func(rt *rapid.T, w *world) {
		rt.Repeat(w.actions())
		w.settle()
		w.verify(rt)
	})
}

// Notifications that are lost, doubled, late and out of order are not what
// PostgreSQL sends; the guard's spare room takes even those.
func TestUnruly(t *testing.T) {
	type fate int
	const (
		sent fate = iota
		lost
		doubled
		late
	)
	options := func(*rapid.T) notify.Options { return notify.Options{} }
	inWorlds(t, options, func(rt *rapid.T, w *world) {
		fates := rapid.SliceOfN(rapid.SampledFrom([]fate{sent, lost, lost, doubled, late}), 1, 64).Draw(rt, "fates")
		var turn int
		var waiting []store.Event
		w.db.route = func(l *simListener, e store.Event) {
			turn++
			switch fates[turn%len(fates)] {
			case sent:
				l.send(e)
			case doubled:
				l.send(e)
				l.send(e)
			case late:
				waiting = append(waiting, e)
			}
		}
		actions := w.actions()
		// A late one from before a jump over trimmed events is in no log, and rightly
		// taken for a sign that the database lost something.
		delete(actions, "trim")
		actions["late ones arrive"] = func(*rapid.T) {
			w.db.each(func(l *simListener) {
				for _, e := range waiting {
					l.send(e)
				}
			})
			waiting = nil
		}
		rt.Repeat(actions)
		w.settle()
		w.verify(rt)
	})
}
