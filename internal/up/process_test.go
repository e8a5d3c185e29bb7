// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// detach starts a `weir up` without parts in the background.
func detach(t *testing.T, f Folder, act string) (string, error) {
	t.Helper()
	t.Setenv(actVariable, act)
	var out bytes.Buffer
	err := Detach(t.Context(), f, []string{f.Path()}, &out)
	t.Cleanup(func() {
		if _, err := Down(context.WithoutCancel(t.Context()), f, time.Millisecond); err != nil {
			t.Error(err)
		}
	})
	return out.String(), err
}

func TestDetachReturnsWhenReady(t *testing.T) {
	f := newFolder(t)
	out, err := detach(t, f, "up")
	if err != nil {
		t.Fatal(err)
	}
	if out != "one moment\n" {
		t.Errorf("showed %q", out)
	}
	s, running, err := Find(f)
	if err != nil || !running || !s.Ready {
		t.Fatalf("found %+v, running %t, %v", s, running, err)
	}
	if other, err := AwaitOther(t.Context(), f, time.Second); err != nil || other.PID != s.PID {
		t.Errorf("a second one finds %+v, %v", other, err)
	}
	if stopped, err := Down(t.Context(), f, time.Minute); err != nil || stopped != (Stopped{PID: s.PID}) {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	if _, running, err := Find(f); err != nil || running {
		t.Errorf("afterwards: running %t, %v", running, err)
	}
}

func TestDownKillsWhatDoesNotStop(t *testing.T) {
	f := newFolder(t)
	if _, err := detach(t, f, "up, stubborn"); err != nil {
		t.Fatal(err)
	}
	stopped, err := Down(t.Context(), f, 50*time.Millisecond)
	if err != nil || !stopped.Killed {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	if _, running, err := Find(f); err != nil || running {
		t.Errorf("afterwards: running %t, %v", running, err)
	}
}

func TestDetachTellsWhyNot(t *testing.T) {
	f := newFolder(t)
	put(t, f.Log(), "an older start's last words\n")
	_, err := detach(t, f, "up, broken")
	if !errors.Is(err, ErrNotStarted) {
		t.Fatalf("got %v, want %v", err, ErrNotStarted)
	}
	if text := err.Error(); !strings.Contains(text, "weir: no database") || strings.Contains(text, "older") {
		t.Errorf("the message does not show the right part of the log: %s", text)
	}
}

func TestDetachLeavesTheFieldToAnother(t *testing.T) {
	if _, err := detach(t, newFolder(t), "up, second"); err != nil {
		t.Error(err)
	}
}

func TestDetachCalledOffLeavesNothing(t *testing.T) {
	f := newFolder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self(t), "up", "--ready-file", f.clusterReady())
	cmd.Env = append(os.Environ(), actVariable+"=localkube")
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ours.Close() }()
	cmd.ExtraFiles = []*os.File{theirs}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = theirs.Close()
	// The child is never ready, so only its end ends the pipe.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := accompany(ctx, f, 0, cmd, ours, io.Discard); !errors.Is(err, ErrInterrupted) {
		t.Errorf("got %v, want %v", err, ErrInterrupted)
	}
	if cmd.ProcessState == nil {
		t.Error("the child still runs")
	}
}

func TestAwaitOtherGivesUp(t *testing.T) {
	f := newFolder(t)
	if _, err := AwaitOther(t.Context(), f, time.Minute); !errors.Is(err, ErrNotStarted) {
		t.Errorf("nobody there: %v, want %v", err, ErrNotStarted)
	}
	lock, err := Acquire(f)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if _, err := AwaitOther(t.Context(), f, time.Millisecond); !errors.Is(err, ErrNotReady) {
		t.Errorf("never ready: %v, want %v", err, ErrNotReady)
	}
}

func TestLocalkube(t *testing.T) {
	quiet := NewProgress(io.Discard)
	t.Run("starts, is noticed when it ends, stops", func(t *testing.T) {
		t.Setenv(actVariable, "localkube")
		f := newFolder(t)
		if err := f.create(); err != nil {
			t.Fatal(err)
		}
		k, err := startLocalkube(t.Context(), f, self(t), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.stop(); err != nil {
			t.Error(err)
		}
		if err := k.watch(t.Context()); err == nil {
			t.Error("its end was not noticed")
		}
	})
	t.Run("that does not start", func(t *testing.T) {
		t.Setenv(actVariable, "localkube, broken")
		f := newFolder(t)
		if err := f.create(); err != nil {
			t.Fatal(err)
		}
		_, err := startLocalkube(t.Context(), f, self(t), quiet)
		if err == nil || !strings.Contains(err.Error(), "etcd ended unexpectedly") {
			t.Errorf("got %v, want the end of its log", err)
		}
	})
	t.Run("that does not stop", func(t *testing.T) {
		t.Setenv(actVariable, "localkube, stubborn")
		f := newFolder(t)
		if err := f.create(); err != nil {
			t.Fatal(err)
		}
		k, err := startLocalkube(t.Context(), f, self(t), quiet)
		if err != nil {
			t.Fatal(err)
		}
		if err := k.child.stop(time.Millisecond); !errors.Is(err, errKilled) {
			t.Errorf("got %v, want %v", err, errKilled)
		}
	})
	t.Run("called off", func(t *testing.T) {
		t.Setenv(actVariable, "localkube")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		f := newFolder(t)
		if err := f.create(); err != nil {
			t.Fatal(err)
		}
		if _, err := startLocalkube(ctx, f, self(t), quiet); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
	})
}

func TestFindLocalkube(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := FindLocalkube(""); !errors.Is(err, ErrNoLocalkube) {
		t.Errorf("none: %v, want %v", err, ErrNoLocalkube)
	}
	if _, err := FindLocalkube("/no/such/program"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a wrong name: %v, want %v", err, os.ErrNotExist)
	}
	if got, err := FindLocalkube(self(t)); err != nil || got != self(t) {
		t.Errorf("named: %s, %v", got, err)
	}
}
