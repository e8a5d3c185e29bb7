// SPDX-License-Identifier: Apache-2.0

//go:build unix

package supervise

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// HeldError says that another process holds the lock.
type HeldError struct {
	// PID of the holder; 0 in the moment before it has written it down.
	PID int
}

func (e *HeldError) Error() string {
	if e.PID == 0 {
		return "held by another process"
	}
	return fmt.Sprintf("held by process %d", e.PID)
}

// Lock is a held lock file.
type Lock struct {
	file *os.File
}

// A lock without a process id inside is held by someone who only asks (Holder)
// or has just taken it; both pass within a moment, so it is worth a few tries.
const (
	anonymousTries = 50
	anonymousPause = 10 * time.Millisecond
)

// Acquire takes the lock. Where another process has it, the error is a
// *HeldError.
//
// The file is never removed: a remove would let one process lock the old file
// and another a new one of the same name, both at once.
func Acquire(path string) (*Lock, error) {
	for try := 1; ; try++ {
		lock, err := acquire(path)
		var held *HeldError
		if !errors.As(err, &held) || held.PID != 0 || try == anonymousTries {
			return lock, err
		}
		time.Sleep(anonymousPause)
	}
}

func acquire(path string) (*Lock, error) {
	// Close-on-exec, which Go sets, matters: a child with a copy of the
	// descriptor would hold the lock after its parent's death.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, &HeldError{PID: readPID(f)}
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	l := &Lock{file: f}
	if err := l.writePID(); err != nil {
		l.Release()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return l, nil
}

// Release gives the lock back.
func (l *Lock) Release() {
	// An empty file tells a reader that nobody is meant, even if it opened the
	// file while the lock was held.
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

func (l *Lock) writePID() error {
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err := l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

func readPID(f *os.File) int {
	buf := make([]byte, 32)
	n, _ := f.ReadAt(buf, 0)
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil {
		return 0
	}
	return pid
}

// Holder tells who holds the lock; ok is false where nobody does. It takes
// the lock for a moment to find out, and does not create the file.
func Holder(path string) (pid int, ok bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("lock: %w", err)
	}
	defer f.Close()
	// A shared lock: two processes that only ask do not disturb each other.
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	switch {
	case err == nil:
		return 0, false, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return readPID(f), true, nil
	}
	return 0, false, fmt.Errorf("lock %s: %w", path, err)
}
