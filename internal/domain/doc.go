// SPDX-License-Identifier: Apache-2.0

// Package domain holds the plain values that every layer of Weir speaks in:
// identities, what an application should be, how far an operation is, what an
// engine reported, and the outcomes a single step of work can have.
//
// Nothing here does I/O, reads a clock or knows Kubernetes clients or SQL. That
// is what lets decisions be pure functions, and lets one scheduler drive the
// whole service step by step in a simulation.
package domain
