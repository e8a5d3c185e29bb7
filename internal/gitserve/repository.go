// SPDX-License-Identifier: Apache-2.0

package gitserve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"
)

// DefaultBranch is the branch of new repositories.
const DefaultBranch = "main"

// ErrBadPath says that a name cannot be a file in a repository.
var ErrBadPath = errors.New("not a path inside a repository")

// Repository is a bare repository on this machine.
type Repository struct{ folder string }

// Commit is one change of a repository.
type Commit struct {
	// Branch is DefaultBranch where empty.
	Branch  string
	Message string
	// Files are written, Removed (files or folders) are taken away; the rest stays.
	Files   map[string]string
	Removed []string
}

// Create makes a bare repository with a first commit. It appears at its place
// complete or not at all, so that one that is found there can be trusted.
func Create(ctx context.Context, folder string, first Commit) (*Repository, error) {
	if _, err := os.Lstat(folder); err == nil {
		return nil, fmt.Errorf("create repository %s: %w", folder, fs.ErrExist)
	}
	parent, name := filepath.Split(filepath.Clean(folder))
	if err := os.MkdirAll(filepath.Clean(parent), 0o700); err != nil {
		return nil, fmt.Errorf("create repository: %w", err)
	}
	draft, err := os.MkdirTemp(parent, "."+name+"-")
	if err != nil {
		return nil, fmt.Errorf("create repository: %w", err)
	}
	defer func() { _ = os.RemoveAll(draft) }()
	if _, err := run(ctx, draft, nil, "init", "--quiet", "--bare", "--initial-branch="+DefaultBranch); err != nil {
		return nil, err
	}
	if _, err := Open(draft).Commit(ctx, first); err != nil {
		return nil, err
	}
	if err := os.Rename(draft, folder); err != nil {
		return nil, fmt.Errorf("create repository: %w", err)
	}
	return Open(folder), nil
}

// Open takes a bare repository that exists.
func Open(folder string) *Repository { return &Repository{folder: folder} }

// Folder is where the repository is.
func (r *Repository) Folder() string { return r.folder }

// Commit adds a commit to a branch, or begins the branch with it, and returns
// its hash. There is no working tree: git's import format says in one stream
// what the new commit holds.
func (r *Repository) Commit(ctx context.Context, c Commit) (string, error) {
	if c.Branch == "" {
		c.Branch = DefaultBranch
	}
	ref := "refs/heads/" + c.Branch
	// A branch without a commit has no hash; that is no error here.
	parent, err := r.hash(ctx, ref)
	if err != nil {
		return "", err
	}
	stream, err := importStream(c, ref, parent, time.Now())
	if err != nil {
		return "", err
	}
	if _, err := run(ctx, r.folder, bytes.NewReader(stream), "fast-import", "--quiet", "--done"); err != nil {
		return "", err
	}
	return r.hash(ctx, ref)
}

// Head gives the commit that a branch points to.
func (r *Repository) Head(ctx context.Context, branch string) (string, error) {
	hash, err := r.hash(ctx, "refs/heads/"+branch)
	if err == nil && hash == "" {
		err = fmt.Errorf("branch %s of %s: %w", branch, r.folder, fs.ErrNotExist)
	}
	return hash, err
}

func (r *Repository) hash(ctx context.Context, ref string) (string, error) {
	return run(ctx, r.folder, nil, "for-each-ref", "--format=%(objectname)", ref)
}

func importStream(c Commit, ref, parent string, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	fmt.Fprintf(&b, "commit %s\ncommitter Weir <weir@localhost> %d +0000\n", ref, at.Unix())
	fmt.Fprintf(&b, "data %d\n%s\n", len(c.Message), c.Message)
	if parent != "" {
		fmt.Fprintf(&b, "from %s\n", parent)
	}
	for _, name := range c.Removed {
		if !isPath(name) {
			return nil, fmt.Errorf("%q: %w", name, ErrBadPath)
		}
		fmt.Fprintf(&b, "D %s\n", name)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Files)) {
		if !isPath(name) {
			return nil, fmt.Errorf("%q: %w", name, ErrBadPath)
		}
		fmt.Fprintf(&b, "M 100644 inline %s\ndata %d\n%s\n", name, len(c.Files[name]), c.Files[name])
	}
	b.WriteString("done\n")
	return b.Bytes(), nil
}

// isPath accepts what needs no quoting in the stream. git itself refuses ".git"
// and the like.
func isPath(name string) bool {
	return fs.ValidPath(name) && name != "." && !strings.HasPrefix(name, `"`) && !strings.ContainsFunc(name, unicode.IsControl)
}
