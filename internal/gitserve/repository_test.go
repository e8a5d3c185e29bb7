// SPDX-License-Identifier: Apache-2.0

package gitserve_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/internal/gitserve"
)

func TestCreateLeavesNothingHalfMade(t *testing.T) {
	root := t.TempDir()
	folder := filepath.Join(root, "a.git")

	_, err := gitserve.Create(t.Context(), folder, gitserve.Commit{Message: "x", Files: map[string]string{"../up": ""}})
	if !errors.Is(err, gitserve.ErrBadPath) {
		t.Errorf("got %v, want %v", err, gitserve.ErrBadPath)
	}
	if left, err := os.ReadDir(root); err != nil || len(left) != 0 {
		t.Errorf("left %v (%v)", left, err)
	}

	for i := range 2 {
		_, err := gitserve.Create(t.Context(), folder, gitserve.Commit{Message: "x", Files: map[string]string{"a": ""}})
		if (i == 0) != (err == nil) || err != nil && !errors.Is(err, fs.ErrExist) {
			t.Errorf("time %d: %v", i+1, err)
		}
	}
}

func TestCommitRefusesPathsGitCannotTake(t *testing.T) {
	repo, err := gitserve.Create(t.Context(), filepath.Join(t.TempDir(), "a.git"), gitserve.Commit{Message: "x", Files: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "/a", "a/", "a/../b", `"a`, "a\nb"} {
		if _, err := repo.Commit(t.Context(), gitserve.Commit{Message: "x", Files: map[string]string{name: ""}}); !errors.Is(err, gitserve.ErrBadPath) {
			t.Errorf("writing %q: %v, want %v", name, err, gitserve.ErrBadPath)
		}
		if _, err := repo.Commit(t.Context(), gitserve.Commit{Message: "x", Removed: []string{name}}); !errors.Is(err, gitserve.ErrBadPath) {
			t.Errorf("removing %q: %v, want %v", name, err, gitserve.ErrBadPath)
		}
	}
}

func TestCommitOnAnotherBranch(t *testing.T) {
	repo, err := gitserve.Create(t.Context(), filepath.Join(t.TempDir(), "a.git"), gitserve.Commit{Message: "x", Files: map[string]string{"a": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Head(t.Context(), "next"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a branch that is not there: %v, want %v", err, fs.ErrNotExist)
	}
	hash, err := repo.Commit(t.Context(), gitserve.Commit{Branch: "next", Message: "y", Files: map[string]string{"päth/with space": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	if head, err := repo.Head(t.Context(), "next"); err != nil || head != hash || len(hash) != 40 {
		t.Errorf("the branch is at %q (%v), the commit was %q", head, err, hash)
	}
}
