// SPDX-License-Identifier: Apache-2.0

package render

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// Cache renders each Key once and keeps the results that were used last. What is
// wrong with the files is kept too: a bomb goes off once, and not with each
// reconcile. It may be used by many at once.
type Cache struct {
	next Renderer
	// entries is how many results are kept.
	entries int

	mu    sync.Mutex
	order *list.List
	byKey map[string]*list.Element
}

// cached is one result, or the wait for it.
type cached struct {
	key    string
	done   chan struct{}
	result *Result
	err    error
}

// NewCache keeps up to a number of results in front of a renderer.
func NewCache(next Renderer, entries int) *Cache {
	return &Cache{next: next, entries: max(entries, 1), order: list.New(), byKey: map[string]*list.Element{}}
}

// Render implements Renderer. The result is shared: it is to be read only.
func (c *Cache) Render(ctx context.Context, request *Request) (*Result, error) {
	for {
		one, first := c.claim(request.Key)
		if first {
			return c.fill(ctx, one, request)
		}
		select {
		case <-one.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		// Whoever rendered may have given up, which says nothing about the files: then
		// it is another's turn.
		if one.err == nil || lasting(one.err) {
			return one.result, one.err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !abandoned(one.err) {
			return nil, one.err
		}
	}
}

func (c *Cache) claim(key string) (one *cached, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[key]; ok {
		c.order.MoveToFront(element)
		return element.Value.(*cached), false
	}
	one = &cached{key: key, done: make(chan struct{})}
	c.byKey[key] = c.order.PushFront(one)
	for c.order.Len() > c.entries {
		oldest := c.order.Remove(c.order.Back()).(*cached)
		delete(c.byKey, oldest.key)
	}
	return one, true
}

func (c *Cache) fill(ctx context.Context, one *cached, request *Request) (*Result, error) {
	// Also where the renderer panics: others wait.
	one.err = ErrCrashed
	defer func() {
		if one.err != nil && !lasting(one.err) {
			c.forget(one)
		}
		close(one.done)
	}()
	one.result, one.err = c.next.Render(ctx, request)
	return one.result, one.err
}

func (c *Cache) forget(one *cached) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if element, ok := c.byKey[one.key]; ok && element.Value == one {
		c.order.Remove(element)
		delete(c.byKey, one.key)
	}
}

// lasting says whether an error is one of the files, and so will be the same the
// next time. How long something took also depends on who else was at work.
func lasting(err error) bool {
	var own *Error
	return errors.As(err, &own) && !errors.Is(err, ErrTime) && !errors.Is(err, ErrCrashed)
}

func abandoned(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
