// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"fmt"
	"iter"
	"strings"
)

// Kind of an entry.
type Kind string

// Kinds of entries.
const (
	File   Kind = "file"
	Folder Kind = "folder"
	// Symlink is a symbolic link. Nothing follows it.
	Symlink Kind = "symbolic link"
	// Submodule names a commit of another repository. Nothing fetches it.
	Submodule Kind = "submodule"
)

// Entry is one name in a commit.
type Entry struct {
	// Path from the repository's root, with slashes.
	Path string
	Kind Kind
	// ID changes with the content: that of a folder with all that is in it.
	ID string
}

// Tree is what one commit holds: a list of names, and a way to read files. It may
// be used by many at once.
type Tree struct {
	entries *entries
	read    func(context.Context, []Entry) ([][]byte, error)
}

// entries is a listing. Each folder is followed by all that is in it, and only
// then by others: what is in a folder is one stretch of the list.
type entries struct {
	list   []Entry
	byPath map[string]int
	root   string
}

// Lookup gives the entry at a path; false where there is none.
func (t *Tree) Lookup(path string) (Entry, bool) {
	if path == "." {
		return Entry{Path: ".", Kind: Folder, ID: t.entries.root}, true
	}
	i, ok := t.entries.byPath[path]
	if !ok {
		return Entry{}, false
	}
	return t.entries.list[i], true
}

// Hash gives the id of the folder at a path.
func (t *Tree) Hash(path string) (string, error) {
	cleaned, err := CleanPath(path)
	if err != nil {
		return "", err
	}
	entry, ok := t.Lookup(cleaned)
	if !ok {
		return "", notFound(path)
	}
	if entry.Kind != Folder {
		return "", &Error{Kind: ErrPathNotFound, Problem: fmt.Sprintf("has a %s at %q where a folder is needed", entry.Kind, clipped(path)), Remedy: "name the folder"}
	}
	return entry.ID, nil
}

// Walk gives everything below a folder, folders before what is in them. A path
// that is no folder has nothing below it.
func (t *Tree) Walk(folder string) iter.Seq[Entry] {
	first, prefix := 0, ""
	if folder != "." {
		i, ok := t.entries.byPath[folder]
		if !ok {
			return func(func(Entry) bool) {}
		}
		first, prefix = i+1, folder+"/"
	}
	return func(yield func(Entry) bool) {
		for _, entry := range t.entries.list[first:] {
			if !strings.HasPrefix(entry.Path, prefix) || !yield(entry) {
				return
			}
		}
	}
}

// ReadFile reads one file.
func (t *Tree) ReadFile(ctx context.Context, path string) ([]byte, error) {
	entry, ok := t.Lookup(path)
	if !ok {
		return nil, notFound(path)
	}
	contents, err := t.Read(ctx, entry)
	if err != nil {
		return nil, err
	}
	return contents[0], nil
}

// Read reads several files in one go, which is far cheaper than one after the
// other. The slices may be parts of one array: they are to be read only.
func (t *Tree) Read(ctx context.Context, files ...Entry) ([][]byte, error) {
	for _, file := range files {
		if file.Kind != File {
			return nil, &Error{
				Kind: ErrNotAFile, Problem: fmt.Sprintf("has a %s at %q where a file is needed", file.Kind, clipped(file.Path)),
				Remedy: "put the file itself there: links and submodules are not followed",
			}
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	return t.read(ctx, files)
}

func notFound(path string) error {
	return &Error{Kind: ErrPathNotFound, Problem: fmt.Sprintf("has nothing at the path %q", clipped(path)), Remedy: "check the path and the revision"}
}
