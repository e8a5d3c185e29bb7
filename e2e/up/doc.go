// SPDX-License-Identifier: Apache-2.0

// Package up tests `weir up`, `weir status` and `weir down` from the outside: the
// built programs, a real control plane, and the commands that they tell a user
// to try.
package up
