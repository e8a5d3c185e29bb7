// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	// tips is how many commits a clone remembers as references, for the server to
	// know what need not be sent again.
	tips = 8
	// maxPacks is how many packs a clone may have before it is fetched anew. Each
	// fetch may add one, and git looks through all of them.
	maxPacks = 64
	// measure is how often a growing clone is weighed. It decides by how much the
	// limit can be overrun, as nothing else tells that a pack grows.
	measure = 50 * time.Millisecond
)

// clone is one bare repository on disk.
//
// Locks: whoever uses the files holds mu for reading, whoever removes them for
// writing. fetching is held by the one that adds to them, since git can shorten
// history for one process at a time; it is taken before mu. state guards the
// fields below it and is held for moments.
type clone struct {
	id, folder string
	mu         sync.RWMutex
	fetching   chan struct{}

	state sync.Mutex
	tips  [tips]string
	next  int
	bytes int64
	used  time.Time
}

func (c *Cache) clone(id string) *clone {
	c.mu.Lock()
	defer c.mu.Unlock()
	one, ok := c.byID[id]
	if !ok {
		one = &clone{id: id, folder: filepath.Join(c.clones, id), fetching: make(chan struct{}, 1)}
		c.byID[id] = one
	}
	return one
}

// with calls back while the clone has a commit, which is fetched where it does
// not. A clone can be removed between the two, for room; then it is tried again.
func (c *Cache) with(ctx context.Context, t target, commit string, use func(*clone) error) error {
	if err := t.checkCommit(commit); err != nil {
		return err
	}
	one := c.clone(t.id)
	const tries = 3
	for try := range tries {
		found, err := c.ifPresent(ctx, one, commit, use)
		var process *ProcessError
		if errors.As(err, &process) && ctx.Err() == nil && try < tries-1 {
			// git cannot read its own clone: it was damaged, say by a full disk. It is
			// only a copy.
			if err := one.discard(); err != nil {
				return err
			}
		} else if found || err != nil {
			return err
		}
		_, err = share(ctx, c.flights, "fetch/"+t.access+"/"+commit, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, c.fetch(ctx, t, one, commit)
		})
		if err != nil {
			return err
		}
	}
	return t.fail(ErrUnreadable, "ask the operator of this service for a larger cache", "does not stay in the cache long enough to be read")
}

func (c *Cache) ifPresent(ctx context.Context, one *clone, commit string, use func(*clone) error) (found bool, err error) {
	one.mu.RLock()
	defer one.mu.RUnlock()
	if found, err = c.has(ctx, one, commit); !found || err != nil {
		return found, err
	}
	one.touch(time.Now())
	return true, use(one)
}

// has says whether a clone has a commit. The caller holds mu.
func (c *Cache) has(ctx context.Context, one *clone, commit string) (bool, error) {
	if one.remembers(commit) {
		return true, nil
	}
	if _, err := os.Stat(one.folder); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	// Says nothing and fails where there is no such commit.
	_, err := c.runner.Run(ctx, Command{Args: []string{"cat-file", "-e", commit + "^{commit}"}, Env: c.local(one.folder), MaxOutput: 1 << 10})
	var process *ProcessError
	if errors.As(err, &process) {
		return false, nil
	}
	if err == nil {
		one.remember(commit)
	}
	return err == nil, err
}

// fetch brings one commit from the server.
func (c *Cache) fetch(ctx context.Context, t target, one *clone, commit string) error {
	select {
	case one.fetching <- struct{}{}:
		defer func() { <-one.fetching }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if one.overgrown() {
		if err := one.discard(); err != nil {
			return err
		}
	}
	err := c.fetchHeld(ctx, t, one, commit)
	if err != nil && ctx.Err() == nil && c.isDamaged(ctx, one) {
		if err = one.discard(); err == nil {
			err = c.fetchHeld(ctx, t, one, commit)
		}
	}
	if errors.Is(err, ErrRepositoryTooLarge) || err != nil && one.isEmpty() {
		// What came of it would stay: half a pack, or a folder for each address
		// that somebody thought of.
		err = errors.Join(err, one.discard())
	}
	return errors.Join(err, c.prune(one))
}

func (c *Cache) fetchHeld(ctx context.Context, t target, one *clone, commit string) error {
	one.mu.RLock()
	defer one.mu.RUnlock()
	if one.remembers(commit) {
		// Another flight has brought it while this one waited.
		return nil
	}
	if err := c.ensure(ctx, one); err != nil {
		return err
	}
	slot := one.slot()
	args := append(fetchArgs(), "--depth=1", "--filter="+c.filter(), "--", origin, "+"+commit+":refs/weir/"+strconv.Itoa(slot))
	err := c.visit(ctx, t, one, args)
	one.weigh()
	if err != nil {
		return c.fetchError(ctx, t, commit, err)
	}
	one.keep(slot, commit)
	one.touch(time.Now())
	return nil
}

// isDamaged says whether git cannot follow its own references in a clone.
func (c *Cache) isDamaged(ctx context.Context, one *clone) bool {
	one.mu.RLock()
	defer one.mu.RUnlock()
	if _, err := os.Stat(one.folder); err != nil {
		return false
	}
	_, err := c.runner.Run(ctx, Command{Args: []string{"rev-list", "--all", "--quiet"}, Env: c.local(one.folder), MaxOutput: 1 << 10})
	var process *ProcessError
	return errors.As(err, &process)
}

// ensure makes the clone's folder. The caller holds fetching and mu.
func (c *Cache) ensure(ctx context.Context, one *clone) error {
	_, err := os.Stat(one.folder)
	if errors.Is(err, fs.ErrNotExist) {
		return c.initialise(ctx, one.folder)
	}
	return err
}

func fetchArgs() []string {
	return []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance"}
}

// filter leaves out files that are too large to be read. A server that cannot
// do that sends them, and they count for the size of the repository.
func (c *Cache) filter() string { return "blob:limit=" + strconv.FormatInt(c.limits.FileBytes+1, 10) }

// visit runs git against a server, and ends it when the clone grows too large.
func (c *Cache) visit(ctx context.Context, t target, one *clone, args []string) error {
	env, remove, err := c.remote(ctx, t, one.folder)
	if err != nil {
		return err
	}
	defer remove()
	if err := one.tidy(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if one.exceeds(ctx, c.limits.RepositoryBytes) {
			cancel(c.tooLarge(t))
		}
	}()
	_, err = c.runner.Run(ctx, Command{Args: args, Env: env, MaxOutput: 1 << 20})
	cancel(nil)
	<-watched
	if err == nil && one.weigh() > c.limits.RepositoryBytes {
		return c.tooLarge(t)
	}
	return err
}

func (c *Cache) tooLarge(t target) error {
	return t.fail(ErrRepositoryTooLarge, "make it smaller, or keep what is deployed in a repository of its own",
		"has more than %s", size(c.limits.RepositoryBytes))
}

// exceeds watches a clone until it is too large or the context ends.
func (one *clone) exceeds(ctx context.Context, limit int64) bool {
	ticker := time.NewTicker(measure)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if one.weigh() > limit {
				return true
			}
		}
	}
}

// fetchError finds the words for a fetch that failed.
func (c *Cache) fetchError(ctx context.Context, t target, commit string, err error) error {
	var process *ProcessError
	if ctx.Err() != nil || !errors.As(err, &process) {
		return err
	}
	if why := c.explain(ctx, t); why != nil {
		return why
	}
	return &Error{
		Kind: ErrRevisionNotFound, Remote: t.remote.String(), cause: err,
		Problem: fmt.Sprintf("does not give out the commit %s", commit), Remedy: "check that it is on a branch, and that the URL is not one that redirects",
	}
}

// size puts a number of bytes into words.
func size(bytes int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	n := 0
	for ; bytes >= 1024 && bytes%1024 == 0 && n < len(units)-1; n++ {
		bytes /= 1024
	}
	return fmt.Sprintf("%d %s", bytes, units[n])
}
