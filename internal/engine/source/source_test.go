// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/gitserve"
)

func files(t *testing.T, tree *Tree, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for entry := range tree.Walk(folder) {
		if entry.Kind != File {
			continue
		}
		content, err := tree.ReadFile(t.Context(), entry.Path)
		if err != nil {
			t.Fatal(err)
		}
		out[entry.Path] = string(content)
	}
	return out
}

func TestResolveKnowsBranchesTagsAndCommits(t *testing.T) {
	h := newHost(t)
	repo, first := h.repository("a.git", map[string]string{"a": "1"})
	second, err := repo.Commit(t.Context(), gitserve.Commit{Message: "second", Files: map[string]string{"a": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	side, err := repo.Commit(t.Context(), gitserve.Commit{Branch: "team/side", Message: "side", Files: map[string]string{"b": "3"}})
	if err != nil {
		t.Fatal(err)
	}
	h.git("a.git", "", "tag", "light", first)
	h.git("a.git", "", "tag", "-a", "-m", "x", "v1.0", first)
	h.git("a.git", "", "tag", "both", first)
	h.git("a.git", "", "branch", "both", second)
	h.git("a.git", "", "update-ref", "refs/changes/1", first)
	h.git("a.git", "", "update-ref", "refs/x/refs/heads/hidden", first)
	c := h.cache(t)
	r := Repo{Project: "p", URL: h.url("a.git")}
	for revision, want := range map[string]string{
		"": second, "HEAD": second, "main": second, "team/side": side, "light": first, "v1.0": first, "both": second,
		"refs/tags/both": first, "refs/changes/1": first, first: first, first[:7]: first, second[:12]: second, "refs/tags/v1.0": first,
	} {
		if got, err := c.Resolve(t.Context(), r, revision); err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, %v; want %s", revision, got, err, want)
		}
	}
	for _, revision := range []string{"nowhere", "side", "hidden", "1234567", "abcdef0123"} {
		if got, err := c.Resolve(t.Context(), r, revision); !errors.Is(err, ErrRevisionNotFound) {
			t.Errorf("Resolve(%q) = %q, %v; want %v", revision, got, err, ErrRevisionNotFound)
		}
	}
	tree, err := c.Tree(t.Context(), r, first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, tree, ".")); diff != "" {
		t.Error(diff)
	}
	gone := strings.Repeat("1", 40)
	if _, err := c.Tree(t.Context(), r, gone); !errors.Is(err, ErrRevisionNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

func TestForcePushAndDeletedBranch(t *testing.T) {
	h := newHost(t)
	repo, first := h.repository("a.git", map[string]string{"a": "1"})
	c := h.cache(t)
	r := Repo{Project: "p", URL: h.url("a.git")}
	if _, err := c.Tree(t.Context(), r, first); err != nil {
		t.Fatal(err)
	}
	h.git("a.git", "", "update-ref", "-d", "refs/heads/main")
	if _, err := c.Resolve(t.Context(), r, "main"); !errors.Is(err, ErrRevisionNotFound) {
		t.Fatalf("deleted branch: %v", err)
	}
	// Without a common history.
	other, err := repo.Commit(t.Context(), gitserve.Commit{Message: "again", Files: map[string]string{"b": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Resolve(t.Context(), r, "main")
	if err != nil || got != other {
		t.Fatalf("%q, %v; want %s", got, err, other)
	}
	tree, err := c.Tree(t.Context(), r, got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"b": "2"}, files(t, tree, ".")); diff != "" {
		t.Error(diff)
	}
}

func TestPrivateRepository(t *testing.T) {
	h := newHost(t)
	const canary = "s3cret-canary"
	h.password = canary
	_, commit := h.repository("a.git", map[string]string{"a": "1"})
	c := h.cache(t)
	right := Repo{Project: "p", URL: h.url("a.git"), Credential: gitremote.Credential{Username: "u", Password: canary}}
	wrong := right
	wrong.Credential.Password = canary + "-wrong"
	none := right
	none.Credential = gitremote.Credential{}
	for name, repo := range map[string]Repo{"wrong": wrong, "none": none} {
		_, err := c.Resolve(t.Context(), repo, "main")
		if !errors.Is(err, gitremote.ErrInvalidCredentials) {
			t.Errorf("%s password: Resolve: %v", name, err)
		}
		if err := c.Fetch(t.Context(), repo, commit); !errors.Is(err, gitremote.ErrInvalidCredentials) {
			t.Errorf("%s password: Fetch: %v", name, err)
		}
		if text := fmt.Sprintf("%v %+v %#v", err, repo, repo); strings.Contains(text, canary) {
			t.Errorf("the password is in %s", text)
		}
	}
	if _, err := c.Resolve(t.Context(), right, "main"); err != nil {
		t.Fatal(err)
	}
	if err := c.Fetch(t.Context(), right, commit); err != nil {
		t.Fatal(err)
	}
	// Another project has no part in it, nor does the clone keep the password.
	other := none
	other.Project = "q"
	if err := c.Fetch(t.Context(), other, commit); !errors.Is(err, gitremote.ErrInvalidCredentials) {
		t.Errorf("another project without a password: %v", err)
	}
	err := filepath.WalkDir(c.options.Folder, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), canary) || strings.Contains(string(data), "Basic ") {
			t.Errorf("%s holds the password", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestManyCallersFetchOnce(t *testing.T) {
	const callers = 50
	h := newHost(t)
	_, commit := h.repository("a.git", map[string]string{"dir/a": "1"})
	c := h.cache(t)
	r := Repo{Project: "p", URL: h.url("a.git")}

	together := func(key string, call func() error) {
		t.Helper()
		hold := make(chan struct{})
		h.mu.Lock()
		h.hold = hold
		h.mu.Unlock()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				if err := call(); err != nil {
					t.Error(err)
				}
			})
		}
		eventually(t, "all wait for one flight", func() bool {
			c.flights.mu.Lock()
			defer c.flights.mu.Unlock()
			for name, one := range c.flights.byKey {
				if strings.HasPrefix(name, key) && one.waiting == callers {
					return true
				}
			}
			return false
		})
		close(hold)
		all.Wait()
	}
	together("resolve/", func() error {
		got, err := c.Resolve(t.Context(), r, "main")
		if err == nil && got != commit {
			err = fmt.Errorf("got %s", got)
		}
		return err
	})
	// Protocol 2: the greeting, then the references.
	if lists, posts := h.listings.Swap(0), h.packs.Swap(0); lists != 1 || posts != 1 {
		t.Errorf("%d callers resolved with %d + %d requests, want 1 + 1", callers, lists, posts)
	}
	together("list/", func() error { _, err := c.TreeHash(t.Context(), r, commit, "dir"); return err })
	if lists, posts := h.listings.Swap(0), h.packs.Swap(0); lists != 1 || posts > 2 {
		t.Errorf("%d callers fetched with %d + %d requests, want 1 + 1 or 2", callers, lists, posts)
	}
	if _, err := c.TreeHash(t.Context(), r, commit, "dir"); err != nil {
		t.Fatal(err)
	}
	if lists := h.listings.Load(); lists != 0 {
		t.Errorf("a commit that is there was asked for %d times", lists)
	}
}

func TestProjectsShareNothing(t *testing.T) {
	h := newHost(t)
	_, commit := h.repository("a.git", map[string]string{"a": "1"})
	c := h.cache(t)
	for i, project := range []string{"p", "q"} {
		if err := c.Fetch(t.Context(), Repo{Project: project, URL: h.url("a.git")}, commit); err != nil {
			t.Fatal(err)
		}
		if got := int(h.listings.Load()); got != i+1 {
			t.Errorf("after %d projects: %d fetches", i+1, got)
		}
	}
	folders, err := os.ReadDir(c.clones)
	if err != nil || len(folders) != 2 {
		t.Errorf("%d clones, want 2 (%v)", len(folders), err)
	}
}

func TestACommitElsewhereChangesNothing(t *testing.T) {
	h := newHost(t)
	content := map[string]string{}
	for i := range 400 {
		// Does not compress, so that bytes on the wire tell what was sent.
		content[fmt.Sprintf("apps/%03d/a.yaml", i)] = strings.Repeat(fingerprint(fmt.Sprint(i)), 1) + fingerprint("x", fmt.Sprint(i))
	}
	repo, first := h.repository("a.git", content)
	c := h.cache(t)
	r := Repo{Project: "p", URL: h.url("a.git")}
	before, err := c.TreeHash(t.Context(), r, first, "apps/001/")
	if err != nil {
		t.Fatal(err)
	}
	whole := h.bytes.Swap(0)
	second, err := repo.Commit(t.Context(), gitserve.Commit{Message: "x", Files: map[string]string{"apps/002/a.yaml": "new"}})
	if err != nil {
		t.Fatal(err)
	}
	after, err := c.TreeHash(t.Context(), r, second, "apps/001")
	if err != nil {
		t.Fatal(err)
	}
	if before != after {
		t.Errorf("the id of a folder changed with a commit elsewhere: %s, %s", before, after)
	}
	if changed := h.bytes.Load(); changed*3 > whole {
		t.Errorf("a commit of one file brought %d bytes, the whole %d: the clone does not say what it has", changed, whole)
	}
	for path, want := range map[string]error{"apps/nowhere": ErrPathNotFound, "../x": ErrInvalidPath, "/apps": ErrInvalidPath, "apps/001/a.yaml": ErrPathNotFound} {
		if _, err := c.TreeHash(t.Context(), r, second, path); !errors.Is(err, want) {
			t.Errorf("TreeHash(%q): %v, want %v", path, err, want)
		}
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	h := newHost(t)
	h.repository("a.git", map[string]string{"a": "1"})
	c := h.cache(t)
	_, err := c.Resolve(t.Context(), Repo{Project: "p", URL: h.url("moved/a.git")}, "main")
	if err == nil {
		t.Fatal("followed a redirect, whose address nobody judged")
	}
	if !strings.Contains(err.Error(), "redirect") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestCancelEndsTheProcesses(t *testing.T) {
	h := newHost(t)
	_, commit := h.repository("a.git", map[string]string{"a": "1"})
	h.hold = make(chan struct{})
	defer close(h.hold)
	c := h.cache(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Fetch(ctx, Repo{Project: "p", URL: h.url("a.git")}, commit) }()
	marker := "GIT_DIR=" + c.clones
	eventually(t, "git waits for the server", func() bool {
		return len(h.requests()) > 0 && len(processesWith(marker)) > 0
	})
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	eventually(t, "no process is left", func() bool { return len(processesWith(marker)) == 0 })
	eventually(t, "nothing private is left", func() bool {
		left, err := filepath.Glob(filepath.Join(c.private, "visit-*"))
		return err == nil && len(left) == 0
	})
}

// processesWith finds processes by their environment.
func processesWith(marker string) []string {
	all, _ := filepath.Glob("/proc/[0-9]*/environ")
	return slices.DeleteFunc(all, func(path string) bool {
		env, err := os.ReadFile(path)
		return err != nil || !strings.Contains(string(env), marker)
	})
}
