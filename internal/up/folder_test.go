// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWipeTakesOnlyItsOwn(t *testing.T) {
	for _, tt := range []struct {
		name    string
		foreign string
	}{
		{"nothing else there", ""},
		{"a file of the user's", "notes.txt"},
		{"a repository of the user's", "git/mine.git/HEAD"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFolder(t)
			for _, ours := range []string{"state.json", "kubeconfig", "weir.db", "weir.db-wal", "weir.log", "kube/etcd/member/wal", "git/sample.git/HEAD"} {
				put(t, filepath.Join(f.Path(), ours), "{}")
			}
			if tt.foreign != "" {
				put(t, filepath.Join(f.Path(), tt.foreign), "mine")
			}
			left, err := f.Wipe()
			if err != nil {
				t.Fatal(err)
			}
			var files []string
			_ = filepath.WalkDir(f.Path(), func(path string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					rel, _ := filepath.Rel(f.Path(), path)
					files = append(files, rel)
				}
				return err
			})
			if want := strings.Fields(tt.foreign); !cmp.Equal(want, files) && len(want)+len(files) > 0 {
				t.Errorf("left %v, want %v", files, want)
			}
			if (len(left) > 0) != (tt.foreign != "") {
				t.Errorf("told of %v", left)
			}
			if _, err := os.Stat(f.Path()); errors.Is(err, fs.ErrNotExist) == (tt.foreign != "") {
				t.Errorf("the folder: %v", err)
			}
		})
	}
}

func TestWipeLeavesStrangersAlone(t *testing.T) {
	f := newFolder(t)
	put(t, filepath.Join(f.Path(), "kubeconfig"), "precious")
	if _, err := f.Wipe(); !errors.Is(err, ErrNotOurs) {
		t.Errorf("got %v, want %v", err, ErrNotOurs)
	}
	if _, err := os.Stat(f.Kubeconfig()); err != nil {
		t.Error(err)
	}
}

func TestWipeWaitsForNobody(t *testing.T) {
	f := newFolder(t)
	lock, err := Acquire(f)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	put(t, f.state(), "{}")
	var running *Running
	if _, err := f.Wipe(); !errors.As(err, &running) {
		t.Errorf("wiped under a running one: %v", err)
	}
	if _, err := os.Stat(f.state()); err != nil {
		t.Error(err)
	}
}

func TestTail(t *testing.T) {
	file := filepath.Join(t.TempDir(), "log")
	var text strings.Builder
	for range 5000 {
		text.WriteString("an older line\n")
	}
	before := text.Len()
	put(t, file, text.String()+"first\nlast\n")
	if got, want := tail(file, int64(before)), "first\n  last"; got != want {
		t.Errorf("from an offset: got %q, want %q", got, want)
	}
	got := tail(file, 0)
	if lines := strings.Split(got, "\n"); len(lines) != 15 || !strings.HasSuffix(got, "an older line\n  first\n  last") {
		t.Errorf("of all: %d lines, %q", len(lines), got)
	}
	if got := tail(filepath.Join(t.TempDir(), "none"), 0); !strings.Contains(got, "no such file") {
		t.Errorf("of none: %q", got)
	}
}

func TestLogBeginsAnewWhenLarge(t *testing.T) {
	f := newFolder(t)
	for _, tt := range []struct {
		before int64
		want   string
	}{{3, "abcd"}, {logLimit + 1, "d"}} {
		put(t, f.Log(), "abc")
		if err := os.Truncate(f.Log(), tt.before); err != nil {
			t.Fatal(err)
		}
		log, err := f.OpenLog()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Write([]byte("d")); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(f.Log()); err != nil || string(got) != tt.want {
			t.Errorf("after %d bytes: %d bytes, %v", tt.before, len(got), err)
		}
	}
}
