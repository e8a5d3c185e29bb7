// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"slices"
	"unique"
)

// tree gives the roots and everything below them, owners first.
//
// The order is that of a depth-first search, from the last node it leaves to the
// first: a node is left after everything below it, so it comes before that. In a
// circle the search meets a node that it has entered and not left; it passes that
// edge over, as it does with nodes it has left. The search has a stack of its own:
// how deep owner references go is for others to decide.
func (s *store) tree(roots []ResourceID) []ResourceID {
	s.mu.RLock()
	defer s.mu.RUnlock()
	w := walk{store: s, entered: make([]uint64, s.nodes.last/64+1), cluster: unique.Make("")}
	for _, root := range slices.Backward(roots) {
		if id := s.lookup(root); id != 0 {
			w.from(id)
		}
	}
	ids := make([]ResourceID, 0, len(w.left))
	for _, id := range slices.Backward(w.left) {
		ids = append(ids, s.id(s.nodes.at(id)))
	}
	return ids
}

// walk is one search.
type walk struct {
	store   *store
	entered []uint64 // a bit for each node
	cluster unique.Handle[string]
	left    []nodeID
	path    []step
	// ahead has the children of all nodes on the path, one after the other.
	ahead []nodeID
}

// step is a node on the path, and where its children begin in ahead. Those after
// it are gone when it is on top.
type step struct {
	id    nodeID
	begin int
}

func (w *walk) from(root nodeID) {
	w.enter(root)
	for len(w.path) > 0 {
		top := w.path[len(w.path)-1]
		if last := len(w.ahead) - 1; last >= top.begin {
			next := w.ahead[last]
			w.ahead = w.ahead[:last]
			w.enter(next)
			continue
		}
		w.left = append(w.left, top.id)
		w.path = w.path[:len(w.path)-1]
	}
}

func (w *walk) enter(id nodeID) {
	bit := uint64(1) << (id % 64)
	if w.entered[id/64]&bit != 0 {
		return
	}
	w.entered[id/64] |= bit
	w.path = append(w.path, step{id, len(w.ahead)})
	w.addChildren(id)
}

// addChildren puts what a node owns into ahead.
func (w *walk) addChildren(id nodeID) {
	s := w.store
	n := s.nodes.at(id)
	for e := n.children; e != 0; e = s.edges.at(e).nextChild {
		child := s.edges.at(e).child
		// An owner elsewhere is no owner; see the package documentation.
		if n.ns == w.cluster || s.nodes.at(child).ns == n.ns {
			w.ahead = append(w.ahead, child)
		}
	}
	if s.scopes[n.scope].kind.GroupKind != kindService() {
		return
	}
	if k := s.kinds[kindEndpoints()]; k != nil {
		if endpoints := s.find(k, n.ns, n.name); endpoints != 0 && s.nodes.at(endpoints).owners == 0 {
			w.ahead = append(w.ahead, endpoints)
		}
	}
	if len(s.slices) > 0 {
		w.ahead = append(w.ahead, s.slices[serviceName{n.ns, n.name}]...)
	}
}
