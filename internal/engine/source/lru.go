// SPDX-License-Identifier: Apache-2.0

package source

import (
	"container/list"
	"sync"
)

// lru keeps the values that were used last, up to a weight. Keys begin with the
// id of a clone, so that a project finds only what is its own.
type lru[V any] struct {
	mu    sync.Mutex
	left  int
	order *list.List
	byKey map[string]*list.Element
}

type kept[V any] struct {
	key    string
	value  V
	weight int
}

func newLRU[V any](weight int) *lru[V] {
	return &lru[V]{left: weight, order: list.New(), byKey: map[string]*list.Element{}}
}

func (l *lru[V]) get(key string) (value V, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	element, ok := l.byKey[key]
	if !ok {
		return value, false
	}
	l.order.MoveToFront(element)
	return element.Value.(kept[V]).value, true
}

func (l *lru[V]) put(key string, value V, weight int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.byKey[key]; ok {
		return
	}
	l.byKey[key] = l.order.PushFront(kept[V]{key, value, weight})
	l.left -= weight
	for l.left < 0 && l.order.Len() > 1 {
		oldest := l.order.Remove(l.order.Back()).(kept[V])
		delete(l.byKey, oldest.key)
		l.left += oldest.weight
	}
}
