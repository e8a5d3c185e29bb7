// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/internal/seal"
)

func TestFileIsForItsOwnerOnly(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ring.json")
	f := seal.NewFile(path)
	if err := f.Create(t.Context(), newRing(t)); err != nil {
		t.Fatal(err)
	}
	mode := func() fs.FileMode {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	if mode() != 0o600 {
		t.Errorf("made with mode %v", mode())
	}
	if _, err := f.Update(t.Context(), (*seal.Ring).Rotated); err != nil {
		t.Fatal(err)
	}
	if mode() != 0o600 {
		t.Errorf("replaced with mode %v", mode())
	}
	for _, exposed := range []fs.FileMode{0o644, 0o640, 0o604, 0o660, 0o602} {
		if err := os.Chmod(path, exposed); err != nil {
			t.Fatal(err)
		}
		_, loading := f.Load(t.Context())
		_, updating := f.Update(t.Context(), (*seal.Ring).Rotated)
		for _, err := range []error{loading, updating} {
			wantError(t, exposed.String(), err, seal.ErrExposed)
			if err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
				t.Errorf("the message %q does not say what to do", err)
			}
		}
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	load(t, f)
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("files left in the folder: %v, %v", left, err)
	}
}

func TestFileIsNotReplacedByCreate(t *testing.T) {
	f := newRingFile(t)
	before := load(t, f).Primary()
	wantError(t, "a second Create", f.Create(t.Context(), newRing(t)), seal.ErrRingExists)
	same(t, "the ring", before, load(t, f).Primary())

	var (
		wg   sync.WaitGroup
		errs [8]error
	)
	racing := seal.NewFile(filepath.Join(t.TempDir(), "ring.json"))
	for i := range errs {
		ring := newRing(t)
		wg.Go(func() { errs[i] = racing.Create(t.Context(), ring) })
	}
	wg.Wait()
	made := 0
	for _, err := range errs {
		if err == nil {
			made++
		} else {
			wantError(t, "another at once", err, seal.ErrRingExists)
		}
	}
	if made != 1 {
		t.Errorf("%d of %d made the ring", made, len(errs))
	}
	err := seal.NewFile(filepath.Join(t.TempDir(), "no", "folder", "ring.json")).Create(t.Context(), newRing(t))
	wantError(t, "without a folder", err, fs.ErrNotExist)
}

// Changes take turns, also through a link, and whoever reads meanwhile reads a
// whole ring.
func TestFileUpdatesTakeTurns(t *testing.T) {
	f := newRingFile(t)
	path := strings.TrimPrefix(f.Where(), "file ")
	link := filepath.Join(t.TempDir(), "link.json")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	var (
		wg   sync.WaitGroup
		errs [8]error
	)
	for i := range errs {
		source := []*seal.File{f, seal.NewFile(link)}[i%2]
		wg.Go(func() {
			_, err := source.Update(t.Context(), (*seal.Ring).Rotated)
			_, reading := source.Load(t.Context())
			errs[i] = errors.Join(err, reading)
		})
	}
	wg.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if ids := load(t, f).KeyIDs(); len(ids) != 1+len(errs) {
		t.Errorf("%d keys, want %d: a change was lost", len(ids), 1+len(errs))
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
}

func TestFileUpdateThatChangesNothing(t *testing.T) {
	f := newRingFile(t)
	path := strings.TrimPrefix(f.Where(), "file ")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Update(t.Context(), func(r *seal.Ring) (*seal.Ring, error) { return r, nil }); err != nil {
		t.Fatal(err)
	}
	_, err = f.Update(t.Context(), func(*seal.Ring) (*seal.Ring, error) { return nil, errInjected })
	wantError(t, "a change that fails", err, errInjected)
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the file was replaced: %v", err)
	}
}

func TestBadFiles(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "ring.json")
	if err := os.WriteFile(path, []byte("{"+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := seal.NewFile(path).Load(t.Context())
	wantError(t, "a damaged file", err, seal.ErrDamagedRing)
	if err == nil || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), canary) {
		t.Errorf("the message %q does not name the file, or has its contents", err)
	}
	_, err = seal.NewFile(folder).Load(t.Context())
	wantError(t, "a folder", err, seal.ErrDamagedRing)
	_, err = seal.NewFile(filepath.Join(folder, "none")).Update(t.Context(), (*seal.Ring).Rotated)
	wantError(t, "updating nothing", err, seal.ErrNoRing)
}
