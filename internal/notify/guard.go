// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"container/list"

	"github.com/weir-gitops/weir/internal/store"
)

// guard drops events that were delivered already, or whose successor was. It
// remembers the largest sequence of each key, and forgets keys again, but only
// those that cannot come back, so that forgetting never lets a stale event pass.
//
// Catch-ups are numbered; a key carries the number of the catch-up that was the
// last one when it was last seen ("touched"), by that catch-up's answer or by a
// notification after it. A stale event can come in two ways.
//
// From a catch-up. Catch-up n+1 reads what the cursor of n did not cover. An event
// of that kind that was delivered before either committed before n read the log, and
// then n returned it as well, because cursors only grow; or it committed later, and
// then it was notified after n. Both ways its key was touched at n. So once n is
// over, keys touched before n are safe to forget.
//
// From a notification. A connection's notifications come in commit order, but may
// lag behind the answer of a catch-up, by any time. The key of such an event was
// touched at the catch-up that returned it, say m. Keys touched at m are therefore
// kept until m is settled: until a notification is admitted after it. That one's
// event was not in m's answer, so it committed after m read the log; and because the
// order is that of the commits, nothing that is in m's answer comes behind it. A new
// connection settles all catch-ups before it, because it is notified only of
// commits after it began to listen.
//
// Beyond what is needed, keys are kept up to max, least recently touched going first.
// That protects against what the argument excludes, such as a database that breaks
// the order of notifications.
//
// So the guard holds at most max keys, or else those that the last catch-up returned
// or that were notified since; and the latter are bounded too, because the notifier
// asks for a catch-up when crowded.
type guard struct {
	max int
	// catchUp is the number of the last catch-up, settled that of the last settled one.
	catchUp, settled int64
	// notified counts admitted notifications since the last catch-up or the last time
	// one was asked for.
	notified int
	keys     map[guardKey]*list.Element
	// recent holds *guardEntry, most recently touched first, so the catch-up numbers
	// never grow from front to back.
	recent *list.List
}

type guardKey struct {
	topic store.Topic
	key   string
}

type guardEntry struct {
	guardKey
	sequence int64
	catchUp  int64
}

func newGuard(limit int) *guard {
	g := &guard{max: limit}
	g.forgetAll()
	return g
}

// caughtUp says whether an event from a catch-up's answer is to be delivered.
func (g *guard) caughtUp(e store.Event) bool { return g.admit(e) }

// notification says whether a notified event is to be delivered.
func (g *guard) notification(e store.Event) bool {
	if !g.admit(e) {
		return false
	}
	g.settled = g.catchUp
	g.notified++
	return true
}

// admit remembers the event and says whether it is news. A dropped event touches
// its key too: it shows that the key is still within reach of catch-ups.
func (g *guard) admit(e store.Event) bool {
	k := guardKey{e.Topic, e.Key}
	element, known := g.keys[k]
	if !known {
		g.keys[k] = g.recent.PushFront(&guardEntry{k, e.Sequence, g.catchUp})
		return true
	}
	entry := element.Value.(*guardEntry)
	entry.catchUp = g.catchUp
	g.recent.MoveToFront(element)
	if e.Sequence <= entry.sequence {
		return false
	}
	entry.sequence = e.Sequence
	return true
}

// beginCatchUp numbers a catch-up; its answer is passed to caughtUp next.
func (g *guard) beginCatchUp() {
	g.catchUp++
	g.notified = 0
}

// endCatchUp forgets what is neither needed nor within the limit. The catch-up that
// ends here is never settled yet, so both rules above are one comparison.
func (g *guard) endCatchUp() {
	for g.recent.Len() > g.max {
		oldest := g.recent.Back()
		entry := oldest.Value.(*guardEntry)
		if entry.catchUp > g.settled {
			return
		}
		delete(g.keys, entry.guardKey)
		g.recent.Remove(oldest)
	}
}

// connected says that another connection listens now, and that the one before
// will not be heard any more.
func (g *guard) connected() { g.settled = g.catchUp }

// crowded says, once for each max notifications, that enough of them came since
// the last catch-up to make another one worth its statement.
func (g *guard) crowded() bool {
	if g.notified < g.max {
		return false
	}
	g.notified = 0
	return true
}

// forgetAll begins anew: another history's sequences are smaller and yet news.
func (g *guard) forgetAll() {
	g.keys = make(map[guardKey]*list.Element)
	g.recent = list.New()
	g.notified = 0
}
