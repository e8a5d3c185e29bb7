// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Cache keeps bare clones in a folder. It may be used by many at once; Close ends
// what it has running.
type Cache struct {
	options Options
	limits  Limits
	runner  Runner
	roots   *x509.CertPool
	flights *flights
	lock    *os.File
	// clones has one folder for each clone; private what processes need while they
	// run; home is empty, and empty.git a repository without anything.
	clones, private, home, empty string
	// listings by clone and commit, blobs by clone and id: small files that were
	// read, of which most stay the same from commit to commit.
	listings *lru[*entries]
	blobs    *lru[[]byte]

	mu   sync.Mutex
	byID map[string]*clone
}

// New opens the cache in a folder, with the clones that are there. It fails where
// the folder is another process's.
func New(ctx context.Context, o Options) (*Cache, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	roots, err := o.roots()
	if err != nil {
		return nil, err
	}
	limits := o.Limits.withDefaults()
	c := &Cache{
		options: o, limits: limits, runner: o.Runner, roots: roots,
		flights:  &flights{timeout: limits.Timeout, byKey: map[string]*flight{}},
		clones:   filepath.Join(o.Folder, "clones"),
		private:  filepath.Join(o.Folder, "private"),
		listings: newLRU[*entries](2 * limits.Files),
		blobs:    newLRU[[]byte](blobBytes),
		byID:     map[string]*clone{},
	}
	c.home, c.empty = filepath.Join(c.private, "home"), filepath.Join(c.private, "empty.git")
	if c.runner == nil {
		if c.runner, err = findProgram(limits.ProcessBytes); err != nil {
			return nil, err
		}
	}
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cache) open(ctx context.Context) error {
	if err := os.MkdirAll(c.clones, 0o700); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := c.take(); err != nil {
		return err
	}
	// What an earlier process left behind may hold a key.
	if err := os.RemoveAll(c.private); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := os.MkdirAll(c.home, 0o700); err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := c.initialise(ctx, c.empty); err != nil {
		return err
	}
	return c.adopt()
}

// take makes the folder ours: two processes would remove each other's clones.
func (c *Cache) take() error {
	lock, err := os.OpenFile(filepath.Join(c.options.Folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("source: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return fmt.Errorf("source: %s: %w", c.options.Folder, ErrInUse)
	}
	c.lock = lock
	return nil
}

// Close ends what is running and gives the folder back. The clones stay.
func (c *Cache) Close() error {
	c.flights.close()
	if c.lock == nil {
		return nil
	}
	err := errors.Join(os.RemoveAll(c.private), c.lock.Close())
	c.lock = nil
	return err
}

// initialise makes an empty bare repository, which appears complete or not at
// all. Without a template it has no hooks.
func (c *Cache) initialise(ctx context.Context, folder string) error {
	draft, err := os.MkdirTemp(c.private, "draft-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(draft) }()
	command := Command{Args: []string{"init", "--quiet", "--bare", "--template="}, Env: c.local(draft), MaxOutput: 1 << 10}
	if _, err := c.runner.Run(ctx, command); err != nil {
		return err
	}
	return os.Rename(draft, folder)
}

// Fetch brings a commit into the cache, if it is not there.
func (c *Cache) Fetch(ctx context.Context, repo Repo, commit string) error {
	t, err := c.target(repo)
	if err != nil {
		return err
	}
	return c.with(ctx, t, commit, func(*clone) error { return nil })
}

// Tree gives what a commit holds, and fetches it if need be.
func (c *Cache) Tree(ctx context.Context, repo Repo, commit string) (*Tree, error) {
	t, err := c.target(repo)
	if err != nil {
		return nil, err
	}
	if err := t.checkCommit(commit); err != nil {
		return nil, err
	}
	key := t.id + "/" + commit
	all, ok := c.listings.get(key)
	if !ok {
		all, err = share(ctx, c.flights, "list/"+t.access+"/"+commit, func(ctx context.Context) (*entries, error) {
			return c.list(ctx, t, commit)
		})
		if err != nil {
			return nil, err
		}
		c.listings.put(key, all, len(all.list)+1)
	}
	return &Tree{entries: all, read: func(ctx context.Context, wanted []Entry) ([][]byte, error) {
		return c.read(ctx, t, commit, wanted)
	}}, nil
}

// TreeHash gives the id of a folder at a commit. It is the same for two commits
// exactly where all that the folder holds is the same.
func (c *Cache) TreeHash(ctx context.Context, repo Repo, commit, path string) (string, error) {
	tree, err := c.Tree(ctx, repo, commit)
	if err != nil {
		return "", err
	}
	return tree.Hash(path)
}

func (t target) checkCommit(commit string) error {
	if isID(commit) {
		return nil
	}
	return t.fail(ErrInvalidRevision, "resolve it first", "cannot be read at %q, which is not the id of a commit", clipped(commit))
}
