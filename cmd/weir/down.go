// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/internal/up"
)

// errKept says that a question was not answered with yes.
var errKept = errors.New("nothing was removed")

func newDown() *cobra.Command {
	var dir string
	var wipe, yes bool
	var timeout time.Duration
	c := &cobra.Command{
		Use:     "down",
		GroupID: "local",
		Short:   `Stop what "weir up" has started`,
		Long: `Stop what "weir up" has started, and wait until it has stopped.

All data stays for the next "weir up", unless --wipe is given. A cluster that
was given with --kubeconfig is left as it is.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			folder, err := up.NewFolder(dir)
			if err != nil {
				return err
			}
			if err := stopUp(c, folder, timeout); err != nil || !wipe {
				return err
			}
			return wipeUp(c, folder, yes)
		},
	}
	addFolderFlag(c.Flags(), &dir)
	c.Flags().DurationVar(&timeout, "timeout", time.Minute, "how long to wait before it is killed")
	c.Flags().BoolVar(&wipe, "wipe", false, "then remove the folder with everything that weir up has put there")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask before --wipe")
	return c
}

func stopUp(c *cobra.Command, folder up.Folder, timeout time.Duration) error {
	out := c.OutOrStdout()
	stopped, err := up.Down(c.Context(), folder, timeout)
	switch {
	case err != nil:
		return err
	case stopped.PID == 0:
		fmt.Fprintf(out, "Nothing runs in %s.\n", up.Short(folder.Path()))
	case stopped.Killed:
		fmt.Fprintf(out, "Process %d did not stop within %s and was killed.\n", stopped.PID, timeout)
	default:
		fmt.Fprintf(out, "Stopped process %d. The data stays in %s.\n", stopped.PID, up.Short(folder.Path()))
	}
	return nil
}

func wipeUp(c *cobra.Command, folder up.Folder, yes bool) error {
	out := c.OutOrStdout()
	if !yes {
		fmt.Fprintf(out, "Remove %s: cluster, database, sample repository, logs? [y/N] ", up.Short(folder.Path()))
		// The end of the input is a no.
		answer, _ := bufio.NewReader(c.InOrStdin()).ReadString('\n')
		if a := strings.ToLower(strings.TrimSpace(answer)); a != "y" && a != "yes" {
			return errKept
		}
	}
	left, err := folder.Wipe()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		fmt.Fprintf(out, "Removed what weir up had made. Not its own, and left: %s\n", strings.Join(left, ", "))
		return nil
	}
	fmt.Fprintf(out, "Removed %s.\n", up.Short(folder.Path()))
	return nil
}
