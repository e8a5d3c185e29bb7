// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/gitserve"
)

// objects lists the files of a cache in which content is.
func objects(t *testing.T, c *Cache) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(c.clones, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(path, "/objects/") {
			found = append(found, path)
		}
		return err
	})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	return found
}

func damage(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestADamagedCloneIsFetchedAnew(t *testing.T) {
	h := newHost(t)
	repo, first := h.repository("a.git", map[string]string{"a": "1"})
	r := Repo{Project: "p", URL: h.url("a.git")}
	options := h.options(t)
	want := func(c *Cache, commit, content string) {
		t.Helper()
		tree, err := c.Tree(t.Context(), r, commit)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(map[string]string{"a": content}, files(t, tree, ".")); diff != "" {
			t.Error(diff)
		}
	}
	c, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context(), r, first); err != nil {
		t.Fatal(err)
	}
	for _, path := range objects(t, c) {
		damage(t, path)
	}
	// The process that fetched it still believes in it.
	want(c, first, "1")
	for _, path := range objects(t, c) {
		damage(t, path)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// The next one finds it so, and has to build on it.
	second, err := repo.Commit(t.Context(), gitserve.Commit{Message: "x", Files: map[string]string{"a": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	again := h.cache(t, func(o *Options) { *o = options })
	want(again, second, "2")
	want(again, first, "1")
}

func TestLocksOfTheDeadAreRemoved(t *testing.T) {
	h := newHost(t)
	repo, first := h.repository("a.git", map[string]string{"a": "1"})
	r := Repo{Project: "p", URL: h.url("a.git")}
	c := h.cache(t)
	if err := c.Fetch(t.Context(), r, first); err != nil {
		t.Fatal(err)
	}
	target, err := c.target(r)
	if err != nil {
		t.Fatal(err)
	}
	folder := c.clone(target.id).folder
	left := []string{"shallow.lock", "packed-refs.lock", "refs/weir/2.lock", "objects/pack/tmp_pack_x"}
	for _, name := range left {
		if err := os.WriteFile(filepath.Join(folder, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	second, err := repo.Commit(t.Context(), gitserve.Commit{Message: "x", Files: map[string]string{"a": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context(), r, second); err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if _, err := os.Stat(filepath.Join(folder, name)); err == nil {
			t.Errorf("%s is still there", name)
		}
	}
}
