// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// actVariable makes the test's program play another one, so that the tests have
// real processes to start, signal and kill.
const actVariable = "WEIR_UP_TEST_ACT"

func TestMain(m *testing.M) {
	if act := os.Getenv(actVariable); act != "" {
		os.Exit(play(act))
	}
	goleak.VerifyTestMain(m)
}

// play is what the test's program does as another one. The end of the test
// process ends it too, at the latest after the limit.
func play(act string) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	switch act {
	case "localkube":
		return playLocalkube(ctx, true)
	case "localkube, stubborn":
		return playLocalkube(ctx, false)
	case "localkube, broken":
		fmt.Fprintln(os.Stderr, "etcd ended unexpectedly")
		return 1
	case "up":
		return playUp(ctx, true)
	case "up, stubborn":
		return playUp(ctx, false)
	case "up, broken":
		fmt.Fprintln(os.Stderr, "weir: no database")
		return 1
	case "up, second":
		return 0
	}
	fmt.Fprintln(os.Stderr, "unknown act", act)
	return 2
}

// playLocalkube answers up and down as localkube does.
func playLocalkube(ctx context.Context, obeys bool) int {
	if os.Args[1] != "up" {
		return 0
	}
	stop, cancel := asked(ctx, obeys)
	defer cancel()
	file := os.Args[slices.Index(os.Args, "--ready-file")+1]
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return 1
	}
	<-stop.Done()
	return 0
}

// playUp is a `weir up` in the background without any parts.
func playUp(ctx context.Context, obeys bool) int {
	folder, err := NewFolder(os.Args[1])
	if err != nil {
		return 1
	}
	stop, cancel := asked(ctx, obeys)
	defer cancel()
	progress := DetachedProgress()
	_, _ = fmt.Fprintln(progress, "one moment")
	if _, err := Acquire(folder); err != nil {
		return 1
	}
	if err := WriteState(folder, State{PID: os.Getpid(), Ready: true}); err != nil {
		return 1
	}
	_ = progress.Close()
	<-stop.Done()
	return 0
}

// asked ends when the process is asked to, if it obeys.
func asked(ctx context.Context, obeys bool) (context.Context, context.CancelFunc) {
	if obeys {
		return signal.NotifyContext(ctx, syscall.SIGTERM)
	}
	signal.Ignore(syscall.SIGTERM)
	return context.WithCancel(ctx)
}

func newFolder(t *testing.T) Folder {
	t.Helper()
	f, err := NewFolder(filepath.Join(t.TempDir(), "weir"))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
