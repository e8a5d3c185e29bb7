// SPDX-License-Identifier: Apache-2.0

//go:build unix

package up

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes a kernel lock on a file, alone or shared, or fails with
// errHeld.
func lockFile(file *os.File, alone bool) error {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	err := syscall.Flock(int(file.Fd()), how|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return errHeld
	}
	return err
}

// ownSession starts a process that a closed terminal does not end.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// notInherited keeps a descriptor from the processes that this one starts.
func notInherited(file *os.File) { syscall.CloseOnExec(int(file.Fd())) }

// terminate is the polite way to end a process.
const terminate = syscall.SIGTERM
