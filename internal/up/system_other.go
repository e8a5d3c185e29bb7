// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package up

import (
	"errors"
	"os"
	"syscall"
)

// errSystem is why nothing of this package works here: `weir up` needs kernel
// locks, sessions and signals. The rest of Weir does without.
var errSystem = errors.New("weir up works on Linux and macOS")

func lockFile(*os.File, bool) error    { return errSystem }
func ownSession() *syscall.SysProcAttr { return nil }
func ownGroup() *syscall.SysProcAttr   { return nil }
func notInherited(*os.File)            {}

// terminate is the only way to end a process.
const terminate = syscall.SIGKILL
