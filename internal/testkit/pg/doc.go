// SPDX-License-Identifier: Apache-2.0

// Package pg runs a private PostgreSQL for tests and benchmarks, from the
// machine's own binaries: a folder of its own, a free port on loopback, random
// passwords, and nothing left afterwards.
//
// A test package has one server, started by the first test that asks:
//
//	func TestMain(m *testing.M) { pg.Main(m) }
//
//	func TestSomething(t *testing.T) {
//		dsn := pg.Shared(t).NewDatabase(t) // migrated, and this test's alone
//	}
//
// # Nothing left
//
// Stop shuts the server down and removes its folder. A test process that
// panics, runs into its time limit or is killed never gets to that, so a small
// guard process holds the other end of a pipe from the test process. When the
// pipe closes without a word, the guard ends the server and removes the folder.
// On Linux the kernel also ends the server together with the test process.
package pg
