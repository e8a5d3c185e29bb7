// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// Stopped tells what Down has done.
type Stopped struct {
	// PID is that of the process that ran; 0 where none did.
	PID int
	// Killed says that it did not end by itself.
	Killed bool
}

// Down ends what runs in the folder and waits until it has ended. All data
// stays.
func Down(ctx context.Context, f Folder, grace time.Duration) (Stopped, error) {
	var done Stopped
	pid, running, err := holder(f)
	if err != nil {
		return done, err
	}
	if running {
		if done, err = end(ctx, f, pid, grace); err != nil {
			return done, err
		}
	}
	return done, endOrphan(ctx, f)
}

// end stops one process. The handle is taken while the lock says that the
// process runs, and leads to that process only: an id that passes to a stranger
// afterwards does not take the signal with it.
func end(ctx context.Context, f Folder, pid int, grace time.Duration) (Stopped, error) {
	done := Stopped{PID: pid}
	process, err := os.FindProcess(pid)
	if err != nil {
		return done, fmt.Errorf("find process %d: %w", pid, err)
	}
	defer func() { _ = process.Release() }()
	if now, running, err := holder(f); err != nil || !running || now != pid {
		// Gone, between the two looks.
		return done, err
	}
	if err := process.Signal(terminate); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return done, fmt.Errorf("stop process %d: %w", pid, err)
	}
	err = awaitGone(ctx, f, pid, grace)
	if !errors.Is(err, errStillThere) {
		return done, err
	}
	done.Killed = true
	if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return done, fmt.Errorf("kill process %d: %w", pid, err)
	}
	return done, awaitGone(ctx, f, pid, killGrace)
}

var errStillThere = errors.New("still runs")

// killGrace is how long the system may take to take a killed process away.
const killGrace = 10 * time.Second

// awaitGone waits until the process no longer holds the folder, which is when
// it has ended.
func awaitGone(ctx context.Context, f Folder, pid int, grace time.Duration) error {
	deadline := time.Now().Add(grace)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		now, running, err := holder(f)
		switch {
		case err != nil:
			return err
		case !running || now != pid:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("process %d %w", pid, errStillThere)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// endOrphan ends a control plane whose parent was killed.
func endOrphan(ctx context.Context, f Folder) error {
	s, err := ReadState(f)
	if err != nil || s.Cluster.Localkube == "" {
		return err
	}
	if _, err := os.Stat(f.cluster()); err != nil {
		return nil //nolint:nilerr // There is no control plane to end.
	}
	if _, err := os.Stat(s.Cluster.Localkube); err != nil {
		return nil //nolint:nilerr // Its program has gone; nothing here could end it.
	}
	return stopLocalkube(ctx, f, s.Cluster.Localkube)
}
