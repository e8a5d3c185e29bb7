// SPDX-License-Identifier: Apache-2.0

package source

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

func (one *clone) remembers(commit string) bool {
	one.state.Lock()
	defer one.state.Unlock()
	return slices.Contains(one.tips[:], commit)
}

// isEmpty says whether no commit is known to be there.
func (one *clone) isEmpty() bool {
	one.state.Lock()
	defer one.state.Unlock()
	return one.tips == [tips]string{}
}

// remember notes that a commit is there. The slot's reference may then be to
// another commit, which costs a later fetch a few bytes and nothing else.
func (one *clone) remember(commit string) { one.keep(one.slot(), commit) }

// slot gives the reference that the next commit goes to: the one that was
// written longest ago.
func (one *clone) slot() int {
	one.state.Lock()
	defer one.state.Unlock()
	one.next = (one.next + 1) % tips
	return one.next
}

func (one *clone) keep(slot int, commit string) {
	one.state.Lock()
	defer one.state.Unlock()
	one.tips[slot] = commit
}

// touch notes a use, on disk too, for the next process.
func (one *clone) touch(now time.Time) {
	one.state.Lock()
	defer one.state.Unlock()
	const often = time.Minute
	if now.Sub(one.used) > often {
		_ = os.Chtimes(one.folder, now, now)
	}
	one.used = now
}

// weigh measures the clone. Files that vanish meanwhile weigh nothing.
func (one *clone) weigh() int64 {
	var total int64
	_ = filepath.WalkDir(one.folder, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	one.state.Lock()
	defer one.state.Unlock()
	one.bytes = total
	return total
}

// tidy removes what a process that was killed left in the clone: locks, which
// would stop all that come after it, and half of a pack. The caller holds
// fetching, and the folder is this process's alone, so they are nobody's.
func (one *clone) tidy() error {
	for _, pattern := range []string{"*.lock", "refs/weir/*.lock", "refs/weir/*/*.lock", "objects/pack/tmp_*", "objects/tmp_*", "objects/*/tmp_*"} {
		left, err := filepath.Glob(filepath.Join(one.folder, pattern))
		if err != nil {
			return err
		}
		for _, path := range left {
			if err := os.RemoveAll(path); err != nil {
				return fmt.Errorf("source: %w", err)
			}
		}
	}
	return nil
}

// overgrown says whether so many fetches have been added up that to begin again
// is cheaper than to go on.
func (one *clone) overgrown() bool {
	packs, err := filepath.Glob(filepath.Join(one.folder, "objects", "pack", "*.pack"))
	return err == nil && len(packs) > maxPacks
}

// discard removes the clone's files, once nobody uses them.
func (one *clone) discard() error {
	one.mu.Lock()
	defer one.mu.Unlock()
	return one.remove()
}

// remove is discard for who holds mu.
func (one *clone) remove() error {
	one.state.Lock()
	defer one.state.Unlock()
	one.tips, one.bytes = [tips]string{}, 0
	if err := os.RemoveAll(one.folder); err != nil {
		return fmt.Errorf("source: remove a clone: %w", err)
	}
	return nil
}

// adopt takes the clones that an earlier process left.
func (c *Cache) adopt() error {
	folders, err := os.ReadDir(c.clones)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	for _, folder := range folders {
		info, err := folder.Info()
		if err != nil {
			return fmt.Errorf("source: %w", err)
		}
		one := c.clone(folder.Name())
		one.weigh()
		one.used = info.ModTime()
	}
	return c.prune(nil)
}

// prune removes the clones that were not used for longest until the rest has
// room. The one that was just fetched stays, and so do those that are in use
// at this moment: TryLock waits for nobody, so a reader is never in the way of
// another project's fetch.
func (c *Cache) prune(keep *clone) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	type candidate struct {
		*clone
		bytes int64
		used  time.Time
	}
	var all []candidate
	var total int64
	for _, one := range c.byID {
		one.state.Lock()
		all = append(all, candidate{one, one.bytes, one.used})
		total += one.bytes
		one.state.Unlock()
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.id, b.id)) })
	for _, one := range all {
		if total <= c.limits.CacheBytes {
			return nil
		}
		if one.clone == keep || one.bytes == 0 || !one.mu.TryLock() {
			continue
		}
		err := one.remove()
		one.mu.Unlock()
		if err != nil {
			return err
		}
		total -= one.bytes
	}
	return nil
}
