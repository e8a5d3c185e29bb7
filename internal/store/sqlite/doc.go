// SPDX-License-Identifier: Apache-2.0

// Package sqlite is the store in one file, for one process.
//
// There is one connection that writes, which takes the write lock when its
// transaction begins (so it never has to give up in the middle), and a few that
// read, which the write-ahead log lets see the last committed state without
// waiting. The database is the outbox of the service, so a commit is on disk
// before it returns (synchronous=FULL).
//
// One process: a lock on a file beside the database keeps a second one out with
// a clear message, where SQLite itself would let it in and make both wait
// for each other. Changes are announced inside the process, through OnCommit.
package sqlite
