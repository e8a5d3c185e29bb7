// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"maps"
	"path"
	"slices"
	"strings"
)

// FromFiles makes a Tree of files that are in memory, for what does not come from
// Git: a folder on a laptop, a test. Links are the paths of symbolic links. Paths
// must be clean; one that is not is left out.
func FromFiles(files map[string]string, links ...string) *Tree {
	all := &entries{byPath: map[string]int{}}
	kinds := map[string]Entry{}
	for name, content := range files {
		kinds[name] = Entry{Path: name, Kind: File, ID: fingerprint("file", content)}
	}
	for _, name := range links {
		kinds[name] = Entry{Path: name, Kind: Symlink, ID: fingerprint("link", name)}
	}
	for _, name := range slices.Collect(maps.Keys(kinds)) {
		for folder := path.Dir(name); folder != "." && folder != "/"; folder = path.Dir(folder) {
			kinds[folder] = Entry{Path: folder, Kind: Folder, ID: folderID(kinds, folder+"/")}
		}
	}
	all.root = folderID(kinds, "")
	// With the slash before all other characters, a folder's content follows it.
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b string) int {
		return strings.Compare(strings.ReplaceAll(a, "/", "\x00"), strings.ReplaceAll(b, "/", "\x00"))
	})
	for _, name := range names {
		all.add(kinds[name])
	}
	return &Tree{entries: all, read: func(_ context.Context, wanted []Entry) ([][]byte, error) {
		out := make([][]byte, len(wanted))
		for i, entry := range wanted {
			out[i] = []byte(files[entry.Path])
		}
		return out, nil
	}}
}

// folderID hashes the names and contents of all files below a folder.
func folderID(kinds map[string]Entry, prefix string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[name].Kind != Folder && strings.HasPrefix(name, prefix) {
			parts = append(parts, strings.TrimPrefix(name, prefix), kinds[name].ID)
		}
	}
	return fingerprint(parts...)
}
