// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package rig

import "syscall"

func endWithParent(*syscall.SysProcAttr) {}
