// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// store holds nodes and edges. One lock guards all of it: every critical section
// is a few lookups, except for scans, which touch 72 bytes a node.
//
// Invariants, under the lock:
//   - a node with a scope is in byKey and byUID; a ghost is in byUID only, and has
//     children (a ghost without children is released);
//   - an edge is in the list of its owner and in the list of its child;
//   - only the watcher of a scope adds and removes nodes of that scope.
type store struct {
	labels, annotations []string
	seed, seed2         maphash.Seed

	mu           sync.RWMutex
	nodes        slab[node, nodeID]
	edges        slab[edge, edgeID]
	byUID, byKey index
	scopes       []*scope // by number; 0 is no scope
	kinds        map[schema.GroupKind]*kind
	odd          map[nodeID]oddText
	// slices are EndpointSlices without owners, under the Service they name.
	slices  map[serviceName][]nodeID
	sliceOf map[nodeID]serviceName
	count   int
}

// kind is shared by the scopes of a kind in several namespaces.
type kind struct {
	schema.GroupKind
	hash   uint64
	scopes int
}

// scope is what one watcher sees.
type scope struct {
	number uint32
	kind   *kind
	list   uint32
}

type serviceName struct {
	ns   unique.Handle[string]
	name string
}

func newStore(labels, annotations []string) *store {
	s := &store{
		labels: labels, annotations: annotations,
		seed: maphash.MakeSeed(), seed2: maphash.MakeSeed(),
		scopes: []*scope{nil},
		kinds:  map[schema.GroupKind]*kind{},
		odd:    map[nodeID]oddText{},
		slices: map[serviceName][]nodeID{}, sliceOf: map[nodeID]serviceName{},
	}
	s.nodes.chunks = append(s.nodes.chunks, new([chunkSize]node))
	s.edges.chunks = append(s.edges.chunks, new([chunkSize]edge))
	s.byUID.hash = func(id nodeID) uint64 { return s.hashUID(s.nodes.at(id).uid) }
	s.byKey.hash = func(id nodeID) uint64 {
		n := s.nodes.at(id)
		return s.hashKey(s.scopes[n.scope].kind, n.ns, n.name)
	}
	return s
}

// hashUID is seeded as the other one is: UUIDs are random, but not every API
// server makes UUIDs.
func (s *store) hashUID(u uid) uint64 { return maphash.Bytes(s.seed, u[:]) }

func (s *store) hashKey(k *kind, ns unique.Handle[string], name string) uint64 {
	return maphash.String(s.seed, name) ^ k.hash ^ maphash.Comparable(s.seed2, ns)
}

// open gives a new scope.
func (s *store) open(gk schema.GroupKind) *scope {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kinds[gk]
	if k == nil {
		k = &kind{GroupKind: gk, hash: maphash.Comparable(s.seed, gk)}
		s.kinds[gk] = k
	}
	k.scopes++
	sc := &scope{kind: k}
	for number := 1; number < len(s.scopes); number++ {
		if s.scopes[number] == nil {
			sc.number = uint32(number)
			s.scopes[number] = sc
			return sc
		}
	}
	sc.number = uint32(len(s.scopes))
	s.scopes = append(s.scopes, sc)
	return sc
}

// close removes a scope and its objects, and gives their ids.
func (s *store) close(sc *scope) []ResourceID {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := s.sweep(sc, func(*node) bool { return true })
	s.scopes[sc.number] = nil
	if sc.kind.scopes--; sc.kind.scopes == 0 {
		delete(s.kinds, sc.kind.GroupKind)
	}
	return gone
}

// begin starts a list.
func (s *store) begin(sc *scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sc.list++
}

// complete ends a list: what it did not name is gone.
func (s *store) complete(sc *scope) []ResourceID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sweep(sc, func(n *node) bool { return n.list != sc.list })
}

func (s *store) sweep(sc *scope, gone func(*node) bool) []ResourceID {
	var ids []ResourceID
	for id := nodeID(1); id <= s.nodes.last; id++ {
		if n := s.nodes.at(id); n.scope == sc.number && gone(n) {
			ids = append(ids, s.id(n))
			s.remove(id)
		}
	}
	return ids
}

// change is what an upsert did.
type change struct {
	// replaced: the object that had the id before was another one.
	replaced         bool
	created, updated bool
}

// upsert takes an object as its scope reports it.
func (s *store) upsert(sc *scope, m *metav1.PartialObjectMetadata) change {
	u, plainUID := s.uidOf(string(m.UID))
	version, plainVersion := s.versionOf(m.ResourceVersion)
	ns := unique.Make(m.Namespace)

	s.mu.Lock()
	defer s.mu.Unlock()
	var did change
	id := s.find(sc.kind, ns, m.Name)
	if id != 0 && s.nodes.at(id).uid != u {
		s.remove(id)
		id, did.replaced = 0, true
	}
	if id == 0 {
		did.created = true
		id = s.insert(sc, u, ns, m.Name)
	}
	n := s.nodes.at(id)
	n.list = sc.list
	if !did.created && n.version == version {
		return did
	}
	did.updated = !did.created
	n.version = version
	if plainUID && plainVersion {
		delete(s.odd, id)
	} else {
		s.odd[id] = oddText{uid: string(m.UID), version: strings.Clone(m.ResourceVersion)}
	}
	n.kept = s.keep(n.kept, m)
	s.setOwners(id, s.ownersOf(sc.kind.GroupKind, u, m))
	s.noteSlice(id, m)
	return did
}

// insert gives a node for a new object: the ghost that waited for it, or another.
func (s *store) insert(sc *scope, u uid, ns unique.Handle[string], name string) nodeID {
	id := s.byUID.find(s.hashUID(u), func(id nodeID) bool {
		n := s.nodes.at(id)
		return n.scope == 0 && n.uid == u
	})
	if id == 0 {
		id = s.nodes.take()
		s.nodes.at(id).uid = u
		s.byUID.insert(id)
	}
	n := s.nodes.at(id)
	n.scope, n.ns, n.name = sc.number, ns, strings.Clone(name)
	s.byKey.insert(id)
	s.count++
	return id
}

// forget removes an object that its scope reports as deleted.
func (s *store) forget(sc *scope, m *metav1.PartialObjectMetadata) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.find(sc.kind, unique.Make(m.Namespace), m.Name)
	if id == 0 {
		return false
	}
	s.remove(id)
	return true
}

func (s *store) remove(id nodeID) {
	n := s.nodes.at(id)
	s.setOwners(id, nil)
	s.dropSlice(id)
	s.byKey.remove(id)
	delete(s.odd, id)
	s.count--
	n.scope, n.name, n.kept, n.version, n.list = 0, "", nil, 0, 0
	n.ns = unique.Handle[string]{}
	if n.children != 0 {
		s.handOver(id)
	}
	s.releaseGhost(id)
}

// handOver gives the children of a new ghost to another node with the UID, if
// there is one: an object that is served under two kinds has one UID.
func (s *store) handOver(id nodeID) {
	u := s.nodes.at(id).uid
	twin := s.byUID.find(s.hashUID(u), func(other nodeID) bool { return other != id && s.nodes.at(other).uid == u })
	if twin == 0 {
		return
	}
	for e := s.nodes.at(id).children; e != 0; e = s.nodes.at(id).children {
		s.leave(e)
		s.edges.at(e).owner = twin
		s.join(e)
	}
}

// find gives the node with an id, or 0.
func (s *store) find(k *kind, ns unique.Handle[string], name string) nodeID {
	return s.byKey.find(s.hashKey(k, ns, name), func(id nodeID) bool {
		n := s.nodes.at(id)
		return n.name == name && n.ns == ns && s.scopes[n.scope].kind == k
	})
}

// lookup finds what a caller names, under whichever of its kinds is watched.
func (s *store) lookup(id ResourceID) nodeID {
	gk := schema.GroupKind{Group: id.Group, Kind: id.Kind}
	k := s.kinds[gk]
	if k == nil {
		same, ok := sameObjects(gk)
		if k = s.kinds[same]; !ok || k == nil {
			return 0
		}
	}
	return s.find(k, unique.Make(id.Namespace), id.Name)
}

func (s *store) id(n *node) ResourceID {
	k := s.scopes[n.scope].kind
	return ResourceID{Namespace: n.ns.Value(), Name: n.name, Group: k.Group, Kind: k.Kind}
}

// keep gives what the settings name, and before if that is the same.
func (s *store) keep(before *kept, m *metav1.PartialObjectMetadata) *kept {
	now := s.pick(nil, len(s.labels), s.annotations, m.Annotations)
	now = s.pick(now, 0, s.labels, m.Labels)
	a, b := before, now
	for a != nil && b != nil && a.key == b.key && a.value == b.value {
		a, b = a.next, b.next
	}
	if a == nil && b == nil {
		return before
	}
	return now
}

// pick puts values before rest.
func (s *store) pick(rest *kept, offset int, keys []string, from map[string]string) *kept {
	if len(from) == 0 {
		return rest
	}
	for i, key := range slices.Backward(keys) {
		if value, ok := from[key]; ok {
			rest = &kept{value: unique.Make(value), next: rest, key: uint16(offset + i)}
		}
	}
	return rest
}
