// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/internal/up"
)

var errNotRunning = errors.New("not running")

func newStatus() *cobra.Command {
	var dir, output string
	c := &cobra.Command{
		Use:     "status",
		GroupID: "local",
		Short:   `Tell how what "weir up" has started is doing`,
		Long: `Tell how what "weir up" has started is doing.

The exit code is 0 where everything is ready, and 1 where not.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if output != "text" && output != "json" {
				return fmt.Errorf("--output %q: use text or json", output)
			}
			folder, err := up.NewFolder(dir)
			if err != nil {
				return err
			}
			report, err := up.Inspect(c.Context(), folder)
			if err != nil {
				return err
			}
			return tellStatus(c, report, output)
		},
	}
	addFolderFlag(c.Flags(), &dir)
	c.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"text", "json"}, cobra.ShellCompDirectiveNoFileComp))
	return c
}

func tellStatus(c *cobra.Command, report up.Report, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(c.OutOrStdout())
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(report); err != nil {
			return err
		}
	} else {
		fmt.Fprint(c.OutOrStdout(), report.Text(time.Now(), up.NewWords(up.State{})))
	}
	switch {
	case !report.Running:
		return errNotRunning
	case !report.Ready:
		return up.ErrNotReady
	default:
		return nil
	}
}
