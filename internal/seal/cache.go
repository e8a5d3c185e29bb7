// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"container/list"
	"sync"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// held is a tenant's data key in memory.
type held struct {
	tenant domain.TenantID
	key    dataKey
	// sealUntil is how long new values may be sealed with it; zero where it has only
	// been used to open. Opening needs no time: a key that opens a value is its key.
	sealUntil time.Time
}

// cache holds the data keys used last, one for each tenant. Forgetting one costs a
// read of the database.
type cache struct {
	mu    sync.Mutex
	size  int
	order *list.List // of *held, the one used last in front
	known map[domain.TenantID]*list.Element
}

func newCache(size int) *cache {
	return &cache{size: size, order: list.New(), known: make(map[domain.TenantID]*list.Element)}
}

func (c *cache) get(tenant domain.TenantID) (held, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.known[tenant]
	if !ok {
		return held{}, false
	}
	c.order.MoveToFront(e)
	return *e.Value.(*held), true
}

// put remembers a key. One that may seal is not replaced by one that may only
// open: an old value must not take the place of what new ones need.
func (c *cache) put(h held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.known[h.tenant]; ok {
		if was := e.Value.(*held); h.sealUntil.IsZero() && !was.sealUntil.IsZero() {
			return
		}
		e.Value = &h
		c.order.MoveToFront(e)
		return
	}
	c.known[h.tenant] = c.order.PushFront(&h)
	if c.order.Len() > c.size {
		oldest := c.order.Remove(c.order.Back()).(*held)
		delete(c.known, oldest.tenant)
	}
}

func (c *cache) forget(tenant domain.TenantID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.known[tenant]; ok {
		c.order.Remove(e)
		delete(c.known, tenant)
	}
}

func (c *cache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.order.Len()
}
