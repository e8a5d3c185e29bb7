// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// tokenAccount and tokenUID are on Secrets of type service-account-token. The
	// first is written by whoever asks for a token, the second by the controller
	// that grants it.
	tokenAccount = "kubernetes.io/service-account.name"
	tokenUID     = "kubernetes.io/service-account.uid"
	// sliceService is on EndpointSlices, whoever makes them.
	sliceService = "kubernetes.io/service-name"
)

// ownersOf gives the UIDs that an object says it belongs to, each once.
func (s *store) ownersOf(gk schema.GroupKind, self uid, m *metav1.PartialObjectMetadata) []uid {
	var owners []uid
	add := func(text string) {
		if u, _ := s.uidOf(text); text != "" && u != self && !slices.Contains(owners, u) {
			owners = append(owners, u)
		}
	}
	for i := range m.OwnerReferences {
		add(string(m.OwnerReferences[i].UID))
	}
	if gk == (schema.GroupKind{Kind: "Secret"}) && m.Annotations[tokenAccount] != "" {
		add(m.Annotations[tokenUID])
	}
	return owners
}

// setOwners makes the edges to a node those that are wanted.
func (s *store) setOwners(child nodeID, want []uid) {
	at := 0
	e := s.nodes.at(child).owners
	for ; e != 0 && at < len(want) && s.nodes.at(s.edges.at(e).owner).uid == want[at]; e = s.edges.at(e).nextOwner {
		at++
	}
	if e == 0 && at == len(want) {
		return
	}
	for e := s.nodes.at(child).owners; e != 0; {
		next, owner := s.edges.at(e).nextOwner, s.edges.at(e).owner
		s.leave(e)
		s.edges.release(e)
		s.releaseGhost(owner)
		e = next
	}
	s.nodes.at(child).owners = 0
	for _, u := range slices.Backward(want) {
		e := s.edges.take()
		*s.edges.at(e) = edge{owner: s.owner(u), child: child, nextOwner: s.nodes.at(child).owners}
		s.nodes.at(child).owners = e
		s.join(e)
	}
}

// owner gives the node with a UID, a new ghost if there is none.
func (s *store) owner(u uid) nodeID {
	id := s.byUID.find(s.hashUID(u), func(id nodeID) bool { return s.nodes.at(id).uid == u })
	if id == 0 {
		id = s.nodes.take()
		s.nodes.at(id).uid = u
		s.byUID.insert(id)
	}
	return id
}

// releaseGhost lets go of a node that nothing needs.
func (s *store) releaseGhost(id nodeID) {
	if n := s.nodes.at(id); n.scope == 0 && n.children == 0 {
		s.byUID.remove(id)
		s.nodes.release(id)
	}
}

// join puts an edge into the list of its owner.
func (s *store) join(id edgeID) {
	e := s.edges.at(id)
	owner := s.nodes.at(e.owner)
	e.nextChild, e.beforeChild = owner.children, 0
	if owner.children != 0 {
		s.edges.at(owner.children).beforeChild = id
	}
	owner.children = id
}

// leave takes an edge out of the list of its owner.
func (s *store) leave(id edgeID) {
	e := s.edges.at(id)
	if e.beforeChild == 0 {
		s.nodes.at(e.owner).children = e.nextChild
	} else {
		s.edges.at(e.beforeChild).nextChild = e.nextChild
	}
	if e.nextChild != 0 {
		s.edges.at(e.nextChild).beforeChild = e.beforeChild
	}
}

// noteSlice remembers an EndpointSlice that names a Service and has no owner. The
// controllers of Kubernetes set an owner, so there are few, and they can afford an
// entry in a map.
func (s *store) noteSlice(id nodeID, m *metav1.PartialObjectMetadata) {
	s.dropSlice(id)
	n := s.nodes.at(id)
	service := m.Labels[sliceService]
	if n.owners != 0 || service == "" || s.scopes[n.scope].kind.GroupKind != kindEndpointSlice() {
		return
	}
	key := serviceName{n.ns, strings.Clone(service)}
	s.slices[key] = append(s.slices[key], id)
	s.sliceOf[id] = key
}

func (s *store) dropSlice(id nodeID) {
	key, ok := s.sliceOf[id]
	if !ok {
		return
	}
	delete(s.sliceOf, id)
	ids := s.slices[key]
	if len(ids) == 1 {
		delete(s.slices, key)
		return
	}
	at := slices.Index(ids, id)
	s.slices[key] = slices.Delete(ids, at, at+1)
}

func kindService() schema.GroupKind   { return schema.GroupKind{Kind: "Service"} }
func kindEndpoints() schema.GroupKind { return schema.GroupKind{Kind: "Endpoints"} }
func kindEndpointSlice() schema.GroupKind {
	return schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}
}
