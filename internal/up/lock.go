// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"
)

// Running is the error that says who has the folder already.
type Running struct {
	Folder Folder
	// PID is 0 in the moment before the other has written it down.
	PID int
}

func (r *Running) Error() string {
	return fmt.Sprintf("weir already runs in %s (process %d)", r.Folder.Path(), r.PID)
}

// errHeld is how a system's lock says that another process has it.
var errHeld = errors.New("held by another process")

// Lock is held by the process that runs in a folder.
type Lock struct{ file *os.File }

// A lock without a process id inside belongs to somebody who only asks, or who
// has just taken it. Both pass within a moment.
const (
	momentTries = 50
	momentPause = 10 * time.Millisecond
)

// Acquire makes the folder where it is missing and takes its lock. Where
// another process has it, the error is a *Running.
func Acquire(f Folder) (*Lock, error) {
	if err := f.create(); err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		lock, err := acquire(f)
		var running *Running
		if !errors.As(err, &running) || running.PID != 0 || try == momentTries {
			return lock, err
		}
		time.Sleep(momentPause)
	}
}

func acquire(f Folder) (*Lock, error) {
	// Go opens files so that children do not inherit them; a child with a copy
	// would hold the lock after its parent's death.
	file, err := os.OpenFile(f.lock(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the folder: %w", err)
	}
	if err := lockFile(file, true); err != nil {
		pid := readPID(file)
		_ = file.Close()
		if errors.Is(err, errHeld) {
			return nil, &Running{Folder: f, PID: pid}
		}
		return nil, fmt.Errorf("lock %s: %w", f.lock(), err)
	}
	lock := &Lock{file: file}
	if err := lock.claim(f); err != nil {
		lock.Release()
		return nil, fmt.Errorf("lock %s: %w", f.lock(), err)
	}
	return lock, nil
}

// claim writes down who holds the lock, after a look whether the locked file
// is still the one that others would find: Wipe may have removed it between our
// opening and our locking.
func (l *Lock) claim(f Folder) error {
	ours, err := l.file.Stat()
	if err != nil {
		return err
	}
	theirs, err := os.Stat(f.lock())
	if err != nil || !os.SameFile(ours, theirs) {
		return fmt.Errorf("%w just now by weir down --wipe, try again", fs.ErrNotExist)
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// Release gives the lock back. A process that is about to end need not: then
// the lock's end is the process's end, which is what a waiting `weir down`
// wants to know.
func (l *Lock) Release() {
	// An empty file tells who opened it before that nobody is meant.
	_ = l.file.Truncate(0)
	_ = l.file.Close()
}

// holder tells which process runs in the folder; false where none does. It
// changes nothing and does not make the folder.
func holder(f Folder) (pid int, running bool, err error) {
	file, err := os.Open(f.lock())
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("look who runs in the folder (--dir): %w", err)
	}
	defer func() { _ = file.Close() }()
	// Shared, so that two who only ask do not take each other for the holder.
	switch err := lockFile(file, false); {
	case err == nil:
		return 0, false, nil
	case errors.Is(err, errHeld):
		return readPID(file), true, nil
	default:
		return 0, false, fmt.Errorf("look who runs in the folder (--dir): %w", err)
	}
}

func readPID(file *os.File) int {
	text, err := io.ReadAll(io.NewSectionReader(file, 0, 32))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}
