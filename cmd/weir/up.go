// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/spf13/cobra"

func newUp() *cobra.Command     { return &cobra.Command{Use: "up", GroupID: "local"} }
func newDown() *cobra.Command   { return &cobra.Command{Use: "down", GroupID: "local"} }
func newStatus() *cobra.Command { return &cobra.Command{Use: "status", GroupID: "local"} }
