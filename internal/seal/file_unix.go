// SPDX-License-Identifier: Apache-2.0

//go:build unix

package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// exposed says whether anybody but the owner may read or write.
func exposed(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// lockPause is short, because a lock is held for one small write.
const lockPause = 10 * time.Millisecond

// lock waits for the file's lock as long as the context allows. The kernel gives it
// up when the file is closed or the process ends.
func lock(ctx context.Context, file *os.File) error {
	tick := time.NewTicker(lockPause)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for another change of it to end: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// keepOwner gives a file the owner of the one that it replaces: an operator who
// rotates as root must not take the ring from the service.
func keepOwner(was *os.File, path string) error {
	info, err := was.Stat()
	if err != nil {
		return err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) == os.Geteuid() {
		return nil
	}
	return os.Chown(path, int(owner.Uid), int(owner.Gid))
}

// syncFolder makes a rename in the folder survive a loss of power.
func syncFolder(path string) error {
	folder, err := os.Open(path) // #nosec G304 -- the operator names the file
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
