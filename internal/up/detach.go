// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// ErrNotStarted says that the process in the background ended before it was
// ready.
var ErrNotStarted = errors.New("weir did not start")

// progressDescriptor is the number under which a child in the background finds
// the pipe to its parent: the first after the three that every process has.
const progressDescriptor = 3

// Detach runs this program again in the background and copies its progress
// until it is ready. See the package documentation for how the two speak.
func Detach(ctx context.Context, f Folder, args []string, out io.Writer) error {
	if err := f.create(); err != nil {
		return err
	}
	log, err := os.OpenFile(f.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = log.Close() }()
	before, err := log.Stat()
	if err != nil {
		return fmt.Errorf("open the log: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	progress, theirs, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = progress.Close() }()
	// It is to outlive this process and with it the context.
	cmd := exec.Command(self, args...) //nolint:noctx // See above.
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = ownSession()
	err = cmd.Start()
	// Our copy must go, or the pipe would never end.
	_ = theirs.Close()
	if err != nil {
		return fmt.Errorf("start in the background: %w", err)
	}
	return accompany(ctx, f, before.Size(), cmd, progress, out)
}

// accompany waits until the child is ready or gone. What it has to say beyond its
// progress is in the log, from an offset on.
func accompany(ctx context.Context, f Folder, from int64, cmd *exec.Cmd, progress io.Reader, out io.Writer) error {
	// A start that is called off must leave nothing behind.
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(terminate) })
	defer stop()
	_, _ = io.Copy(out, progress)
	s, running, err := Find(f)
	if err == nil && running && s.PID == cmd.Process.Pid && s.Ready && ctx.Err() == nil {
		return cmd.Process.Release()
	}
	switch err := cmd.Wait(); {
	case ctx.Err() != nil:
		return ErrInterrupted
	case err == nil:
		// It found another one running and left it the field.
		return nil
	default:
		return fmt.Errorf("%w (%w); %s ends with:\n  %s", ErrNotStarted, err, f.Log(), tail(f.Log(), from))
	}
}

// DetachedProgress is the child's end of the pipe. Its end tells the parent
// that the child is ready.
func DetachedProgress() io.WriteCloser {
	pipe := os.NewFile(progressDescriptor, "progress")
	// Otherwise the children of the child would keep it open.
	notInherited(pipe)
	return pipe
}

// AwaitOther waits for the process that has the folder to be ready, and gives
// its state.
func AwaitOther(ctx context.Context, f Folder, within time.Duration) (State, error) {
	deadline := time.Now().Add(within)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		s, running, err := Find(f)
		switch {
		case err != nil:
			return s, err
		case running && s.Ready:
			return s, nil
		case !running:
			return s, fmt.Errorf("the other %w; see %s", ErrNotStarted, f.Log())
		case time.Now().After(deadline):
			return s, fmt.Errorf("process %d: %w after %s; see %s", s.PID, ErrNotReady, within, f.Log())
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-ticker.C:
		}
	}
}
