// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"crypto/sha256"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Hash identifies a desired object and the options of a comparison.
type Hash [sha256.Size]byte

// Cache remembers pairs of objects that were found equal, so that they need not
// be compared, nor even fetched, again. It keeps one pair for each live object:
// the last one judged. An object that was found different is never remembered,
// because something is about to be done about it.
//
// A resource version stands for one content of one object; so a remembered pair
// stays true for ever, and may be forgotten at any time.
//
// It is bounded in a simple way: there are two generations, entries go into the
// young one, and when that is half the limit, it becomes the old one and the old
// one is dropped. What is asked for moves to the young one, so what is in use
// stays. No list has to be kept in order for that.
type Cache struct {
	half int

	mu         sync.Mutex
	young, old map[types.UID]judged
}

type judged struct {
	desired Hash
	version string
}

// NewCache makes a cache for at most limit live objects, and at least two.
func NewCache(limit int) *Cache {
	return &Cache{half: max(limit/2, 1), young: map[types.UID]judged{}}
}

// Equal says whether the pair is known to be equal.
func (c *Cache) Equal(desired Hash, uid types.UID, resourceVersion string) bool {
	if uid == "" || resourceVersion == "" {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	entry, found := c.young[uid]
	if !found {
		if entry, found = c.old[uid]; found {
			c.put(uid, entry)
		}
	}
	return found && entry == judged{desired, resourceVersion}
}

// Add remembers that the pair is equal.
func (c *Cache) Add(desired Hash, uid types.UID, resourceVersion string) {
	if uid == "" || resourceVersion == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(uid, judged{desired, resourceVersion})
}

// Forget drops what is known of a live object, when it is gone.
func (c *Cache) Forget(uid types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.young, uid)
	delete(c.old, uid)
}

// Len is how many live objects are remembered.
func (c *Cache) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.young) + len(c.old)
}

// put needs the lock. An entry is in one generation only.
func (c *Cache) put(uid types.UID, entry judged) {
	delete(c.old, uid)
	if _, found := c.young[uid]; !found && len(c.young) >= c.half {
		c.old, c.young = c.young, map[types.UID]judged{}
	}
	c.young[uid] = entry
}
