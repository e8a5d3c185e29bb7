// SPDX-License-Identifier: Apache-2.0

package supervise

import "syscall"

// attributes: own process group, and death with the parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
