// SPDX-License-Identifier: Apache-2.0

// Package postgres is the store on PostgreSQL: for several processes on several
// machines.
//
// Statements go through database/sql on pgx, which prepares each once for each
// connection and then sends it in one round trip. Listening for changes has a
// native connection of its own.
//
// # The cursor
//
// Numbers from a sequence are taken in one order and committed in another: a
// transaction may take 1, another take and commit 2, and a reader who then
// remembers "2" would never see 1. So a cursor is not a number of the log but a
// transaction id. Each event carries the id x of the transaction that wrote it.
// A reader takes, in the same snapshot as the events, xmin: the oldest
// transaction id still in progress. Every transaction below xmin has ended, and
// its events, if it committed, are in this snapshot; so the next reading may
// start at xmin. An event that commits later has x >= xmin, because either its
// transaction was in progress at that time, or it had no id yet and got a larger one. Events
// of transactions at or above xmin that are already visible are given now and
// again next time; that is the price, and events are idempotent.
//
//	         xid 7 ──── takes seq 1 ─────────────────────────── commits
//	         xid 8 ──── takes seq 2 ── commits
//	reading                              ↑ gives seq 2, next = 7          ↑ since 7: gives seq 1, 2, next = 9
package postgres
