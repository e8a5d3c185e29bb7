// SPDX-License-Identifier: Apache-2.0

// Package intake takes tenants' CRs in: hop 1 of truth flowing down.
//
// There is one file for each tenant kind, and each works in the same way:
//
//	gather    read the CR, its namespace and the rows of its chain
//	decide    a pure function: what should the rows be, and what is the tenant told
//	act       write the decision in one transaction, then announce its operations
//	project   hand the outcome to package project, the only writer of status
//
// A step holds no lock and remembers nothing that it could not read again. It
// can be run twice, late, or by two processes at once: constraints, versions and
// the UIDs in the rows decide who wins, and the loser reads again.
//
// # What may delete
//
// The one irreversible thing a step can do is to remove a chain. A cache may lag
// behind, so a CR's absence, or another UID under its name, is confirmed by a
// read from the API server itself before rows are removed.
package intake
