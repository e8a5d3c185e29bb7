// SPDX-License-Identifier: Apache-2.0

package pg

import "syscall"

// endWithParent has the kernel shut the server down (SIGQUIT: at once, leaving
// no children) when the test process ends.
func endWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGQUIT }
