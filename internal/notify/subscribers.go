// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"slices"
	"sync"

	"github.com/weir-gitops/weir/internal/store"
)

// subscribers holds the handlers. Lists are replaced, never changed, so that a
// handler may subscribe another one while it is being called.
type subscribers struct {
	mu       sync.RWMutex
	handlers map[store.Topic][]func(store.Event)
	resync   []func()
}

// Subscribe implements Notifier.
func (s *subscribers) Subscribe(topic store.Topic, handler func(store.Event)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers == nil {
		s.handlers = make(map[store.Topic][]func(store.Event))
	}
	s.handlers[topic] = append(slices.Clone(s.handlers[topic]), handler)
}

// OnResync implements Notifier.
func (s *subscribers) OnResync(handler func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resync = append(slices.Clone(s.resync), handler)
}

func (s *subscribers) call(e store.Event) {
	s.mu.RLock()
	handlers := s.handlers[e.Topic]
	s.mu.RUnlock()
	for _, h := range handlers {
		h(e)
	}
}

func (s *subscribers) callResync() {
	s.mu.RLock()
	handlers := s.resync
	s.mu.RUnlock()
	for _, h := range handlers {
		h()
	}
}
