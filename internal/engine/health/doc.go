// SPDX-License-Identifier: Apache-2.0

// Package health says how well an object runs, from the object alone.
//
// An Assessor looks at one object. The one that New makes asks, in this order:
//
//  1. Is the object on its way out? Then it is Progressing, whatever it is.
//  2. Is there an override for its kind? Then that one answers.
//  3. Is there a built-in check for its kind? Then that one answers.
//  4. Otherwise there is no opinion: nil. Most kinds have nothing to be unwell
//     with, and a guess would hold up every sync that has one.
//
// Checks follow one thought: an object is not judged by a status that its
// controller wrote for an earlier spec. Where a controller reports the
// generation it has seen, an older one is Progressing, whatever else the status
// says.
//
// A status is a claim by whoever may write it, and it can have any shape. A field
// of the wrong type is an error that names the field, never a panic and never
// Healthy; Assess turns such an error into Unknown.
//
// The health of an application is the worst of its objects (Aggregate), in Argo
// CD's order: Healthy, Suspended, Progressing, Missing, Degraded, Unknown.
package health
