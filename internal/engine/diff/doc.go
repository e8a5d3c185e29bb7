// SPDX-License-Identifier: Apache-2.0

// Package diff says whether an object in the cluster is what Git says it should
// be. It answers as a server-side apply would, that is whether applying would
// change anything, but without asking the server: a dry run for every object at
// every look is what an engine at rest must not pay.
//
// # The rule
//
// Every field that the desired object sets has to have that value in the live
// one. A field that only the live object has is a difference only if our own
// field manager owns it in metadata.managedFields: then an earlier commit set it,
// and a later one took it away. Everything else that only the live object has was
// put there by defaults, by admission or by other controllers, and is theirs.
//
// # What counts as the same value
//
//   - Numbers by their value, however they were decoded; quantities ("1000m" and
//     "1") by theirs, where Kubernetes has quantities.
//   - Null is the same as absent. An empty map or list is too, unless being there
//     is what it says, as with emptyDir or the selectors of a NetworkPolicy.
//   - Lists whose elements have names are compared by those (see lists.go): for the
//     kinds of Kubernetes from a table, for others from what managedFields say of
//     them. All other lists are values as a whole: as many elements, each the same.
//   - A Secret's stringData is what it becomes in data.
//   - The status, metadata that the server sets, and kubectl's copy of the last
//     applied object do not count at all.
//
// # What this cannot see
//
// Within a list that is one value, an element's fields have no owner of their own.
// There, a field that Git no longer sets looks like one that was defaulted, and is
// not reported. Applying repairs it, so a sync after every commit does.
//
// # Secrets
//
// A Secret's values are never part of a result, only that and where they differ.
package diff
