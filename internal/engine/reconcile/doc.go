// SPDX-License-Identifier: Apache-2.0

// Package reconcile is the engine's reconciler: it keeps Applications of Argo CD's
// API deployed.
//
//	Application ─▶ project ─▶ source ─▶ render ─▶ live ─▶ diff, health ─▶ status
//	                                                 └─▶ plan ─▶ apply (beside the queue)
//
// # A comparison
//
// The target revision is resolved to a commit when somebody asks (the refresh
// annotation, an operation, another spec) and every few minutes; the folder at that
// commit is rendered, or found in the cache by the files that it was rendered from.
// Each object is compared with the live one. What was judged equal, in just this
// version of the live object, is not read again: a comparison of an application at
// rest asks Git and nobody else.
//
// Live objects of applications are watched, metadata only, one watch for each kind
// and namespace that is deployed to. A change of one has its application compared.
//
// # A sync
//
// is asked for by the operation field, or by a comparison that found an automated
// application out of sync. It runs beside the queue, as the service account that the
// project names, and writes its progress to the Application. One application has one
// sync at a time; the phase Terminating ends it.
//
// # What is an application's own
//
// carries its name as a label, to be watched by, and as a tracking annotation that
// also names the object itself, so that a copy of the object under another name is
// not taken for the application's.
package reconcile
