// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervise

import "syscall"

// attributes: own process group. There is no parent-death signal here.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
