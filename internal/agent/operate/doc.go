// SPDX-License-Identifier: Apache-2.0

// Package operate carries Operations out: hop 2 of truth flowing down.
//
// An operation prescribes nothing. For each there are the same three cases: the
// row is gone, so the engine's object goes; the object is missing, so it is
// created; both are there, so the object is made equal to the row. The row is
// read together with the operation's version, and finishing the operation names
// that version: if the row was changed in between, the waiting operation was
// reused for it, the version has moved, finishing fails, and the step looks
// again. So an operation that is finished has carried out the newest row.
//
// Steps are keyed by the resource, not by the operation: two operations on one
// resource never run side by side, and none can overwrite the work of the other
// with something older.
package operate
