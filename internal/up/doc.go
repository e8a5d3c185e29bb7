// SPDX-License-Identifier: Apache-2.0

// Package up is what `weir up`, `weir down` and `weir status` are made of: the
// whole service on one machine, in one folder, for one person to try.
//
//	weir up ─┬─ localkube (child process)   only where no kubeconfig is given
//	         ├─ Git server                  serves the sample repository on loopback
//	         └─ backend, agent              the roles, on SQLite
//
// The package starts and ends everything but the roles; those are put together
// by the command, which is the one place where all wiring is visible.
//
// # One folder, one process
//
// Everything lies in a Folder. A process that runs there holds the folder's
// Lock, a kernel lock that goes with the process however it ends. The process
// id in the State file is believed only while that lock is held, so an id left
// behind by a crash, even one that the system has since given to a stranger, is
// never taken for Weir and never signalled.
//
// The state file outlives the process: it remembers the ports, so that the
// kubeconfig and the sample repository's URL stay the same from one start to
// the next, and the cluster's identity, because a database that was filled from
// one cluster must not be let loose on another.
//
// # In the background
//
// Detach starts the same command again in a session of its own. Parent and child share
// one pipe: the child writes its progress into it and closes it when it is
// ready; the system closes it when the child dies. So the parent copies until
// the end and then knows that one of the two has happened, without asking again
// and again. Which of the two, the state file tells.
//
// # Nothing half left
//
// What was started is ended in the opposite order, on every way out: roles, Git
// server, database, control plane. On Linux the kernel also tells localkube when
// this process is killed, and elsewhere the next `weir down` or `weir up` ends
// one that was left behind.
package up
