// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package pg

import "syscall"

// endWithParent leaves it to the guard.
func endWithParent(*syscall.SysProcAttr) {}
