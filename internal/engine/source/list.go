// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"path"
	"strings"
)

// maxPath is how long a path may be, with what ls-tree prints before it.
const maxPath = 4096

// list reads the names of a commit out of the clone.
func (c *Cache) list(ctx context.Context, t target, commit string) (*entries, error) {
	var output []byte
	err := c.with(ctx, t, commit, func(one *clone) (err error) {
		output, err = c.runner.Run(ctx, Command{
			// The commit's own tree first: rev-parse would be one process more.
			Args:      []string{"ls-tree", "-r", "-t", "-z", "--full-tree", commit},
			Env:       c.local(one.folder),
			MaxOutput: min(int64(c.limits.Files)*maxPath, 256<<20),
		})
		return err
	})
	if errors.Is(err, errOutput) {
		return nil, c.tooMany(t)
	}
	if err != nil {
		return nil, err
	}
	// Two commits with the same tree have the same listing, so its hash will do for
	// an id of the root.
	all := &entries{byPath: map[string]int{}, root: fingerprint(string(output))}
	for record := range bytes.SplitSeq(output, []byte{0}) {
		if len(record) == 0 {
			continue
		}
		if len(all.list) >= c.limits.Files {
			return nil, c.tooMany(t)
		}
		entry, ok := parseEntry(string(record))
		if !ok || !all.add(entry) {
			return nil, t.fail(ErrHostileTree, "rewrite the commit with git", "has a name in it that no git would write: %q", clipped(entry.Path))
		}
	}
	return all, nil
}

func (c *Cache) tooMany(t target) error {
	return t.fail(ErrTooManyFiles, "keep what is deployed in a repository of its own", "has more than %d files and folders", c.limits.Files)
}

// parseEntry reads "mode type id<TAB>path".
func parseEntry(record string) (Entry, bool) {
	info, name, ok := strings.Cut(record, "\t")
	fields := strings.Fields(info)
	if !ok || len(fields) != 3 || !isID(fields[2]) {
		return Entry{Path: name}, false
	}
	entry := Entry{Path: name, ID: fields[2]}
	switch mode, kind := fields[0], fields[1]; {
	case kind == "tree":
		entry.Kind = Folder
	case kind == "commit":
		entry.Kind = Submodule
	case mode == "120000":
		entry.Kind = Symlink
	case kind == "blob":
		entry.Kind = File
	default:
		return entry, false
	}
	return entry, len(name) <= maxPath
}

// add appends an entry if it is where it has to be: in a folder that is being
// listed, under a name that is one, and once. A tree that was not made by git can
// hold names with slashes in them, which would be in two places.
func (e *entries) add(entry Entry) bool {
	folder, name := path.Split(entry.Path)
	folder = strings.TrimSuffix(folder, "/")
	_, twice := e.byPath[entry.Path]
	if twice || name == "" || name == "." || name == ".." || strings.EqualFold(name, ".git") || !e.open(folder) {
		return false
	}
	e.byPath[entry.Path] = len(e.list)
	e.list = append(e.list, entry)
	return true
}

// open says whether the next entry may be in a folder: it is the last entry or an
// ancestor of the last entry.
func (e *entries) open(folder string) bool {
	if folder == "" {
		return true
	}
	i, ok := e.byPath[folder]
	if !ok || e.list[i].Kind != Folder {
		return false
	}
	last := e.list[len(e.list)-1].Path
	return last == folder || strings.HasPrefix(last, folder+"/")
}
