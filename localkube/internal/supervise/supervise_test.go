// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell starts a script as a child. A script that wants to be waited for
// writes to its standard output, which is the log: see awaitLog.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script},
		Env: os.Environ(), Dir: t.TempDir(), LogFile: filepath.Join(t.TempDir(), "script.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop(0) })
	return p
}

// awaitLog waits until the child's log contains the text.
func awaitLog(t *testing.T, p *Process, text string) {
	t.Helper()
	eventually(t, func() bool {
		data, err := os.ReadFile(p.LogFile())
		return err == nil && strings.Contains(string(data), text)
	})
}

func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatal("did not come true within 10 s")
		}
		<-tick.C
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestAChildThatEndsByItself(t *testing.T) {
	for _, tc := range []struct {
		script string
		code   int
	}{
		{"exit 0", 0},
		{"echo said; exit 3", 3},
	} {
		p := shell(t, tc.script)
		<-p.Done()
		var exit *exec.ExitError
		switch {
		case tc.code == 0:
			if p.Err() != nil {
				t.Errorf("%q: error %v", tc.script, p.Err())
			}
		case !errors.As(p.Err(), &exit) || exit.ExitCode() != tc.code:
			t.Errorf("%q: error %v, want exit code %d", tc.script, p.Err(), tc.code)
		}
		if err := p.Stop(time.Minute); err != nil {
			t.Errorf("stop of a child that has gone: %v", err)
		}
	}
}

func TestStopAsksFirst(t *testing.T) {
	p := shell(t, `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.01; done`)
	awaitLog(t, p, "up")
	if err := p.Stop(10 * time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
	if alive(p.PID()) {
		t.Error("the child is still there")
	}
	if diff := cmp.Diff([]string{"up", "bye"}, Tail(p.LogFile(), 5)); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

func TestStopKillsWhatDoesNotListen(t *testing.T) {
	p := shell(t, `trap '' TERM; echo up; while :; do sleep 0.01; done`)
	awaitLog(t, p, "up")
	if err := p.Stop(50 * time.Millisecond); !errors.Is(err, ErrKilled) {
		t.Errorf("stop: %v, want ErrKilled", err)
	}
	if alive(p.PID()) {
		t.Error("the child is still there")
	}
}

func TestAChildHasItsNameAndItsOwnGroup(t *testing.T) {
	p := shell(t, `echo "I am $0"; while :; do sleep 0.01; done`)
	awaitLog(t, p, "I am script")
	group, err := syscall.Getpgid(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	if group != p.PID() {
		t.Errorf("group %d, want the child's own %d", group, p.PID())
	}
}

func TestStartOfWhatDoesNotExist(t *testing.T) {
	log := filepath.Join(t.TempDir(), "x.log")
	if _, err := Start(Spec{Name: "ghost", Path: "/nonexistent", LogFile: log}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "ghost") {
		t.Errorf("error %v", err)
	}
	if _, err := Start(Spec{Name: "mute", Path: "/bin/sh", LogFile: "/nonexistent/x.log"}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestTail(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("x", 100)
	var many strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&many, "%d %s\n", i, long)
	}
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"empty":          {"", nil},
		"fewer":          {"a\nb\n", []string{"a", "b"}},
		"more":           {"a\nb\nc\nd\n", []string{"b", "c", "d"}},
		"no last break":  {"a\nb", []string{"a", "b"}},
		"beyond window":  {many.String(), []string{"997 " + long, "998 " + long, "999 " + long}},
		"one huge line":  {strings.Repeat("y", tailWindow+5), []string{strings.Repeat("y", tailWindow)}},
		"blank in there": {"a\n\nb\n", []string{"a", "", "b"}},
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(tc.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tc.want, Tail(file, 3)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := Tail(filepath.Join(dir, "absent"), 3); got != nil {
		t.Errorf("absent: %v", got)
	}
}

func TestABigLogIsPutAside(t *testing.T) {
	file := filepath.Join(t.TempDir(), "x.log")
	if err := os.WriteFile(file, []byte("old\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, logLimit+1); err != nil {
		t.Fatal(err)
	}
	f, err := openLog(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for name, want := range map[string]int64{file: 0, file + ".old": logLimit + 1} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() != want {
			t.Errorf("%s has %d bytes, want %d", name, info.Size(), want)
		}
	}
}

func TestLock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	if _, running, err := Holder(file); running || err != nil {
		t.Errorf("no file yet: %v, %v", running, err)
	}
	lock, err := Acquire(file)
	if err != nil {
		t.Fatal(err)
	}
	var held *HeldError
	if _, err := Acquire(file); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("second: %v, want held by %d", err, os.Getpid())
	}
	if pid, running, err := Holder(file); pid != os.Getpid() || !running || err != nil {
		t.Errorf("holder: %d, %v, %v", pid, running, err)
	}
	lock.Release()
	if _, running, err := Holder(file); running || err != nil {
		t.Errorf("released: %v, %v", running, err)
	}
	again, err := Acquire(file)
	if err != nil {
		t.Fatalf("after the release: %v", err)
	}
	again.Release()
}

// TestAcquireOutlastsAnAsker: someone who only asks holds the lock, without a
// process id in it, for a moment.
func TestAcquireOutlastsAnAsker(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	asker, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(asker.Fd()), syscall.LOCK_SH); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(50*time.Millisecond, func() { asker.Close() })
	defer timer.Stop()
	lock, err := Acquire(file)
	if err != nil {
		t.Fatalf("Acquire: %v", err)
	}
	lock.Release()
}
