// SPDX-License-Identifier: Apache-2.0

// Package recent remembers the last few of many things, in bounded memory. It is
// for what is only cheaper to know: forgetting one must be harmless.
package recent

import "sync"

// Set holds the keys added last. Its zero value is ready and holds Size keys.
type Set[K comparable] struct {
	mu    sync.Mutex
	known map[K]int // key → place in the ring
	ring  []K
	next  int
}

// Size is how many keys a Set holds.
const Size = 8192

// Has says whether a key was added lately.
func (s *Set[K]) Has(key K) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[key]
	return ok
}

// Add remembers a key, in the place of the oldest one where there is no more
// room. A key that is remembered keeps its place, so that it is in the ring once.
func (s *Set[K]) Add(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[K]int)
	}
	if _, ok := s.known[key]; ok {
		return
	}
	if len(s.ring) < Size {
		s.known[key] = len(s.ring)
		s.ring = append(s.ring, key)
		return
	}
	// Only if the place is still the key's: it may have been forgotten and
	// added again elsewhere.
	if old := s.ring[s.next]; s.known[old] == s.next {
		delete(s.known, old)
	}
	s.ring[s.next], s.known[key] = key, s.next
	s.next = (s.next + 1) % Size
}

// Forget takes a key out.
func (s *Set[K]) Forget(key K) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, key)
}
