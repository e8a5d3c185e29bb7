// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package up

import "syscall"

// ownGroup keeps a terminal's Ctrl-C from a child, which is to be ended in its
// turn.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
