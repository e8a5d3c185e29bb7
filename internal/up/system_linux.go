// SPDX-License-Identifier: Apache-2.0

package up

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from a child, which is to be ended in its
// turn, and has the kernel end it where its parent is killed.
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
