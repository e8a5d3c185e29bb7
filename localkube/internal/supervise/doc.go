// SPDX-License-Identifier: Apache-2.0

// Package supervise runs programs as child processes that cannot outlive
// their parent, and ends them in an order.
//
// A Process is one child: its output goes straight to a log file, Done tells
// when it has gone and Err why. Stop asks it to end with SIGTERM and kills it
// when its grace is over; it returns only after the child has been waited
// for, so a stopped child leaves neither a process nor a zombie.
//
// # Why a child gets its own process group
//
// Ctrl-C in a terminal sends SIGINT to the whole foreground group. A control
// plane has to go down from the top (controllers, API server, etcd); children
// in the parent's group would all get the signal at once. In groups of their
// own they only hear from Stop.
//
// # Why a child holds a thread
//
// On Linux the child asks the kernel for SIGKILL when its parent dies, so that
// kill -9 of the parent leaves nothing behind. The kernel takes "parent" to
// be the thread that forked, and the Go runtime ends idle threads as it likes.
// Each child is therefore started and waited for by one goroutine that is
// locked to its thread: that thread lives exactly as long as the child.
// Other systems have no such signal; there a killed parent leaves its
// children to be stopped by hand.
//
// # Lock
//
// Lock is a file that one process can hold (flock). It goes with the process
// that holds it, however that process ends, so it is never stale; the process id inside is
// only for people and for the command that stops the holder.
package supervise
