// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func exampleState() State {
	return State{
		PID: 4711, Version: "v0.1.0", Ready: true,
		Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		Ports:   Ports{Git: 21001, Probes: 21002},
		Cluster: ClusterState{UID: "u-1", Localkube: "/opt/weir/bin/localkube", Server: "https://127.0.0.1:21003", Version: "v1.36.3"},
		Engine:  EngineState{Kind: "none", Namespace: "argocd"},
	}
}

func TestStateIsReadAsItWasWritten(t *testing.T) {
	f := newFolder(t)
	if s, err := ReadState(f); err != nil || s != (State{}) {
		t.Errorf("before the first start: %+v, %v", s, err)
	}
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	want := exampleState()
	if err := WriteState(f, want); err != nil {
		t.Fatal(err)
	}
	got, err := ReadState(f)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if left, err := filepath.Glob(filepath.Join(f.Path(), ".*")); err != nil || len(left) > 0 {
		t.Errorf("drafts are left: %v, %v", left, err)
	}
	if info, err := os.Stat(f.state()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v; want it for its owner alone", info.Mode(), err)
	}
}

func TestBrokenStateNamesTheFileAndTheRemedy(t *testing.T) {
	f := newFolder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.state(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := ReadState(f)
	if err == nil {
		t.Fatal("accepted")
	}
	if want := "read the state of the last start: " + f.state() + ": unexpected end of JSON input; remove the file to choose new ports"; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

// A crash leaves state and process id behind; by now the id may be anybody's.
func TestStaleProcessIDIsNotBelieved(t *testing.T) {
	f := newFolder(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	// The test's parent: a process that exists, and that must survive this.
	stranger := os.Getppid()
	s := exampleState()
	s.PID = stranger
	s.Cluster.Localkube = ""
	if err := WriteState(f, s); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.lock(), []byte(strconv.Itoa(stranger)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, running, err := Find(f); err != nil || running {
		t.Errorf("found %+v, running %t, %v", got, running, err)
	}
	if stopped, err := Down(t.Context(), f, time.Second); err != nil || stopped != (Stopped{}) {
		t.Errorf("stopped %+v, %v", stopped, err)
	}
	if r, err := Inspect(t.Context(), f); err != nil || r.Running || r.Ready {
		t.Errorf("reported %+v, %v", r, err)
	}
	lock, err := Acquire(f)
	if err != nil {
		t.Fatalf("the folder cannot be taken: %v", err)
	}
	lock.Release()
}

func TestLockIsForOne(t *testing.T) {
	f := newFolder(t)
	lock, err := Acquire(f)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Acquire(f)
	var other *Running
	if !errors.As(err, &other) || other.PID != os.Getpid() {
		t.Errorf("a second one got %v", err)
	}
	// The lock is taken before the state is written: between the two, the old
	// state must not pass for the new process's.
	if err := WriteState(f, exampleState()); err != nil {
		t.Fatal(err)
	}
	if s, running, err := Find(f); err != nil || !running || s != (State{PID: os.Getpid()}) {
		t.Errorf("found %+v, running %t, %v", s, running, err)
	}
	lock.Release()
	if _, running, err := Find(f); err != nil || running {
		t.Errorf("after release: running %t, %v", running, err)
	}
}

func TestDiffers(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, file := range []string{a, b} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, given := exampleState(), exampleState()
	given.Cluster.Given = a
	none := EngineState{Kind: "none", Namespace: "argocd"}
	for _, tt := range []struct {
		name       string
		runs       State
		kubeconfig string
		engine     EngineState
		want       error
	}{
		{"nothing asked", own, "", none, nil},
		{"nothing asked, a cluster was given", given, "", none, nil},
		{"the same cluster", given, a, none, nil},
		{"another cluster", given, b, none, ErrDiffers},
		{"a cluster instead of our own", own, a, none, ErrDiffers},
		{"another engine", own, "", EngineState{Kind: "argocd", Namespace: "argocd"}, ErrDiffers},
		{"another namespace", own, "", EngineState{Kind: "none", Namespace: "x"}, ErrDiffers},
		{"no such file", own, filepath.Join(dir, "c"), none, os.ErrNotExist},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.runs.Differs(tt.kubeconfig, tt.engine); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}
