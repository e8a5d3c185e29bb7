// SPDX-License-Identifier: Apache-2.0

// Package report turns measurements into figures, and figures into a table and
// a file.
//
// A Figure is one number with its unit. It may have a floor, which is what a
// bare client needs for the unavoidable part of the same work in the same run, and
// a target, which is a limit on the number itself or on its ratio to the floor.
// The ratio is what can be compared between machines; the number is what a tenant
// feels.
package report
