// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"fmt"
	"slices"
	"strconv"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// list gives the ids that match.
func (s *store) list(options ListOptions) ([]ResourceID, error) {
	selector, err := s.selector(options.Selector)
	if err != nil {
		return nil, err
	}
	var namespaces []unique.Handle[string]
	for _, ns := range options.Namespaces {
		namespaces = append(namespaces, unique.Make(ns))
	}
	cluster := unique.Make("")

	s.mu.RLock()
	defer s.mu.RUnlock()
	var found []ResourceID
	for id := nodeID(1); id <= s.nodes.last; id++ {
		n := s.nodes.at(id)
		switch {
		case n.scope == 0,
			options.NamespacedOnly && n.ns == cluster,
			options.ClusterLevelOnly && n.ns != cluster,
			len(namespaces) > 0 && (n.ns == cluster || !slices.Contains(namespaces, n.ns)),
			options.TopLevelOnly && s.owned(id, n),
			!selector.Empty() && !selector.Matches(keptLabels{s.labels, n.kept}):
		default:
			found = append(found, s.id(n))
		}
	}
	return found, nil
}

// owned says whether an object has an owner, there or not.
func (s *store) owned(id nodeID, n *node) bool {
	if n.owners != 0 {
		return true
	}
	switch s.scopes[n.scope].kind.GroupKind {
	case kindEndpoints():
		k := s.kinds[kindService()]
		return k != nil && s.find(k, n.ns, n.name) != 0
	case kindEndpointSlice():
		k := s.kinds[kindService()]
		key, ok := s.sliceOf[id]
		return ok && k != nil && s.find(k, key.ns, key.name) != 0
	}
	return false
}

// selector refuses labels that are not kept: it could not tell an object without
// the label from one whose label was not kept.
func (s *store) selector(from metav1.LabelSelector) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&from)
	if err != nil {
		return nil, fmt.Errorf("livestate: selector: %w", err)
	}
	requirements, _ := selector.Requirements()
	for _, r := range requirements {
		if !slices.Contains(s.labels, r.Key()) {
			return nil, fmt.Errorf("%w: %q; name it in Settings.Labels", ErrLabelNotKept, r.Key())
		}
	}
	return selector, nil
}

// keptLabels are labels.Labels without a map.
type keptLabels struct {
	keys []string
	kept *kept
}

// Lookup finds a label.
func (l keptLabels) Lookup(label string) (string, bool) {
	for k := l.kept; k != nil && int(k.key) < len(l.keys); k = k.next {
		if l.keys[k.key] == label {
			return k.value.Value(), true
		}
	}
	return "", false
}

// Has says whether there is a label.
func (l keptLabels) Has(label string) bool { _, ok := l.Lookup(label); return ok }

// Get gives a label's value.
func (l keptLabels) Get(label string) string { v, _ := l.Lookup(label); return v }

// get gives what is known of an object.
func (s *store) get(id ResourceID) (Resource, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	at := s.lookup(id)
	if at == 0 {
		return Resource{}, false
	}
	n := s.nodes.at(at)
	r := Resource{ID: s.id(n), UID: n.uid.String(), ResourceVersion: strconv.FormatUint(n.version, 10)}
	if odd, ok := s.odd[at]; ok {
		r.UID, r.ResourceVersion = odd.uid, odd.version
	}
	for k := n.kept; k != nil; k = k.next {
		if at := int(k.key); at < len(s.labels) {
			put(&r.Labels, s.labels[at], k.value.Value())
		} else {
			put(&r.Annotations, s.annotations[at-len(s.labels)], k.value.Value())
		}
	}
	return r, true
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

func (s *store) len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.count
}
