// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// current is a process's copy of the ring.
type current struct {
	source Source

	// loading has room for the one who reads the source, so that of many who need a
	// newer ring at once, one reads it for all. mu is held for a moment only.
	loading chan struct{}
	mu      sync.Mutex
	ring    *Ring
	asOf    time.Time // when the reading that gave ring began
}

func newCurrent(source Source) *current {
	return &current{source: source, loading: make(chan struct{}, 1)}
}

func (c *current) get() (*Ring, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ring, c.asOf
}

// since gives a ring whose reading from the source began after the given time. Where it
// fails, the copy stays for those who can do with an older one.
func (c *current) since(ctx context.Context, earliest time.Time) (*Ring, error) {
	if ring, asOf := c.get(); ring != nil && asOf.After(earliest) {
		return ring, nil
	}
	select {
	case c.loading <- struct{}{}:
		defer func() { <-c.loading }()
	case <-ctx.Done():
		return nil, fmt.Errorf("read the key ring: %w", ctx.Err())
	}
	// Somebody may have read it while this one waited.
	if ring, asOf := c.get(); ring != nil && asOf.After(earliest) {
		return ring, nil
	}
	begun := time.Now()
	ring, err := c.source.Load(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring, c.asOf = ring, begun
	return ring, nil
}
