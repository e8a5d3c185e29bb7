// SPDX-License-Identifier: Apache-2.0

// Package notify tells consumers that a row changed, within milliseconds of the
// commit, without anybody polling, and without ever losing the last change of a
// key, whatever happens to connections.
//
//	commit ──▶ change_log ──────────── ChangesSince(cursor) ───────┐ catch-up: on connecting,
//	  │                                                            │ on suspicion, once a minute
//	  └─────▶ NOTIFY / OnCommit ──▶ reader ──▶ bounded queue ──┐   │
//	                                                           ▼   ▼
//	                                                          guard ──▶ handlers, one goroutine
//
// # Two ways for an event, one of them certain
//
// The log is certain: a trigger writes it in the transaction of the change, and
// ChangesSince never skips an event, however transactions overlap. It costs a
// statement. The notification is quick and costs none, because it carries the
// event itself; but it is gone when the connection is. So notifications are
// delivered as they come, and the log is read only where one may have been lost:
// after connecting, after a notification that could not be read or queued, and
// once in a while (Options.CatchUpEvery) on principle. That last read is all the
// SQL there is at rest.
//
// # Nothing is lost
//
// The cursor moves only by what the log answered, never by a notification. So
// whatever was not delivered is after the cursor, and the next catch-up reads it.
// Listening begins before the catch-up that follows it: a change that commits
// before that read is in its answer, one that commits after it was notified to
// a connection that listened already; most of those in between come twice.
//
// The first time there is no cursor: take Now(), listen, catch up, close Ready. A
// consumer lists after Ready, so it sees everything that committed before Now();
// what commits later is not covered by that cursor, so it is caught up or notified.
// Now() could come after listening just as well, as far as loss goes. But then a
// notification between the two would be of an event that the cursor covers, and it
// is useful to know that whatever is heard is after the cursor.
//
// # When the past is gone
//
// Where the log does not reach back to the cursor any more, what happened meanwhile
// cannot be told. Then delivery begins as at the first time, and afterwards the
// handlers of OnResync are called, who list again, by the same argument.
//
// The same is done where the database has lost commits: it was put back to an older
// copy, or a replica took over that lagged behind. It shows in that the log's end is
// before the cursor, or that the event which was heard last, and which the cursor
// does not cover, is not in the log. Then the guard forgets everything too, because
// sequences are being given out a second time.
//
// # Nothing goes back
//
// The same event can come twice, and by one way later than its successor came by
// the other. The guard remembers for each key the largest sequence delivered and
// drops what is not larger. The sequence grows with the commit order of one key,
// because the row's lock is held while it is drawn. Handlers run in one goroutine.
//
// What the guard may forget, so that it stays small, is argued in guard.go; in
// short, a stale event can come only from the overlap between a catch-up and the
// notifications around it, so a key that the last catch-up did not touch, and that
// nobody changed since, cannot come back.
//
// # Connections that pretend to live
//
// A connection can be dead without an error: a firewall forgot it, a node
// vanished. A catch-up that finds an event which was never notified therefore
// starts a clock: if that event's notification (or that of a later one) has not
// come within Options.NotifyWithin, the connection is replaced. Such an outage costs
// at most CatchUpEvery of delay, once.
package notify
