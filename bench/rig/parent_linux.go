// SPDX-License-Identifier: Apache-2.0

package rig

import "syscall"

// endWithParent has the kernel ask the process to stop when this one ends, however
// that happens.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
