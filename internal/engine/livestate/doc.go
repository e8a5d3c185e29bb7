// SPDX-License-Identifier: Apache-2.0

// Package livestate keeps a small picture of a whole cluster in memory: which
// objects there are, and which of them belong to which. It holds identifiers and
// relations, not manifests; who needs a manifest asks the API server for it, or
// collects it through the event handlers.
//
// # From a cluster to nodes
//
//	discovery ──► kinds (one version each) ──► one watcher for each (kind, namespace)
//	    ▲                                                  │ metadata only
//	    │ a definition or an APIService changed            ▼
//	    └───────────────────────────────────────── store: nodes and edges ──► List,
//	                                                       │                  IterateChildTree
//	                                                       ▼
//	                                                event handlers
//
// Discovery takes the preferred version of each kind. Groups that do not answer
// are left as they are and asked again; a group that is gone takes its watchers
// and its objects with it. Kinds that show the objects of another kind a second
// time (extensions, events.k8s.io, the OpenShift groups) are not watched where
// the first one is; an id that names the second one finds the object.
//
// A watcher is one goroutine. It lists, then follows:
//
//	list ──► complete ──► follow ──► closed by the server: follow on from there
//	 ▲                      │
//	 └──────────────────────┴─ 410, the resync period: list again
//
// The list is a stream (sendInitialEvents) where the server can do that, and
// pages where not; neither is ever held in memory as a whole. Each object that a
// list names gets the number of that list; when the list is complete, objects of
// the watcher with an older number are gone. So a list after a gap gives exactly
// the events that the gap hid: an object with the same UID and resource version
// is not news, one with another UID was deleted and created, one that is not
// named was deleted. A list that breaks off gives no deletions.
//
// # Trees
//
// An edge goes from an owner to what it owns, by UID, so that a ReplicaSet whose
// owner reference says extensions finds its Deployment in apps. An owner that is
// not there (not yet, not any more, or not watched) is a ghost: a node with a UID
// only, which becomes the object when that comes. An owner counts as Kubernetes'
// garbage collector counts it: it has no namespace, or the namespace of its child.
// A reference into another namespace is no edge, whoever wrote it.
//
// Three relations are not in owner references: Endpoints belong to the Service of
// their name; an EndpointSlice without owner to the Service that its label names;
// a token Secret to the ServiceAccount whose UID the token controller wrote on it.
//
// IterateChildTree visits every object below the roots once, after all its owners
// that are below the roots too. Owner references can form a circle (nothing checks
// them); then one of its edges is ignored.
//
// # What a node costs
//
// A node is 72 bytes in a slab without slack, 4 to 8 bytes in each of the two
// indexes (by UID and by id), 20 bytes for each owner, and its name. Namespaces
// and the values of kept labels and annotations are shared; kinds are numbers.
// With names of 24 bytes and an owner for nine in ten that is about 135 bytes of
// heap for each object. Labels and annotations are kept only for the keys that the
// settings name: 24 bytes each, and the value once. BenchmarkHeap measures it.
//
// # Handlers
//
// Handlers run on the goroutine of the watcher (for a kind that is gone, on that of
// Run, after its watcher has ended), outside all locks: for one object they are
// called in order and never twice at a time, for objects of different kinds at the
// same time. The watcher waits for them, so they must not block; they may call the
// cache, which then already shows the change.
//
// # Limits of trust
//
// What is in the store was written by whoever may write metadata in the cluster.
// An object can call itself a child of any object that is cluster-scoped or in its
// own namespace. The tree is for showing and for finding, not for granting.
package livestate
