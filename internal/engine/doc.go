// SPDX-License-Identifier: Apache-2.0

// Package engine is the root of the built-in engine: an engine that deploys
// argoproj.io Applications as Argo CD does, and that can be used as a Go library
// without the service around it.
//
// The packages below it are parts that can be used alone. Three of them decide
// and do nothing else; they are functions from plain values to plain values, so
// that a decision can be shown, tested and repeated:
//
//	health   how well does an object run?
//	diff     is an object in the cluster what Git says it should be?
//	plan     what has to be done, and in which order?
//
// The others reach out, to Git, to child processes and to clusters.
//
// Nothing in this tree knows tenants or a database. It imports, of this module,
// only itself, the types of Argo CD's API in api/argoproj, and the two packages
// that judge addresses of strangers (internal/gitremote and internal/tenantnet),
// of which there must not be a second opinion; never the roles
// (internal/backend, internal/agent), the store, the domain or anything else of
// the service. That API is the whole contract: whatever speaks to this engine
// could as well speak to Argo CD. The linter's configuration holds the rule.
package engine
