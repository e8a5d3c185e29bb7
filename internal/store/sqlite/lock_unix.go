// SPDX-License-Identifier: Apache-2.0

//go:build unix

package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/weir-gitops/weir/internal/store"
)

// processLock is a lock on a file that the kernel releases when the process
// ends, however it ends. The file stays: removing it would let a third process
// lock a new one while a second waits on the old.
type processLock struct{ file *os.File }

func acquire(path string) (*processLock, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304 -- the operator names the database
	if err != nil {
		return nil, fmt.Errorf("open the lock file: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(inUse(file), file.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	if err := note(file); err != nil {
		return nil, errors.Join(fmt.Errorf("write %s: %w", path, err), file.Close())
	}
	return &processLock{file: file}, nil
}

// note writes who holds the lock, for the other's message.
func note(file *os.File) error {
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func inUse(file *os.File) error {
	holder := "another process"
	if id, err := io.ReadAll(io.LimitReader(file, 32)); err == nil && len(id) > 0 {
		holder = "process " + strings.TrimSpace(string(id))
	}
	return fmt.Errorf("%w: %s has it; a SQLite database is for one process, stop that one or use PostgreSQL",
		store.ErrInUse, holder)
}

// release lets go; once more is harmless.
func (l *processLock) release() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("unlock the database: %w", err)
	}
	return nil
}
