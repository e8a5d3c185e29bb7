// SPDX-License-Identifier: Apache-2.0

//go:build race

package render

// raced says that the race detector is on. Its runtime ends a process that gets
// no more address space in a way of its own.
const raced = true
