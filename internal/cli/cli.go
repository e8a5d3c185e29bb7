// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// GroupID is the group of commands that the tenant's commands are in; the
// program's root gives it a title.
const GroupID = "tenant"

// pluginName is what kubectl looks for on the PATH when asked for `kubectl weir`.
const pluginName = "kubectl-weir"

// app is what all commands share.
type app struct {
	// program is how the user calls it: "weir" or "kubectl weir".
	program string
	now     func() time.Time
	// terminal is asked before anything is typed or drawn over.
	terminal terminal
}

// Attach adds the tenant's commands to the program. called is the program's
// name as it was started, os.Args[0]: as kubectl-weir, help speaks of
// `kubectl weir`.
func Attach(root *cobra.Command, called string) {
	attach(root, &app{program: programName(called), now: time.Now, terminal: realTerminal{}})
}

func attach(root *cobra.Command, a *app) {
	if a.program != root.Name() {
		root.Use = pluginName
		if root.Annotations == nil {
			root.Annotations = map[string]string{}
		}
		root.Annotations[cobra.CommandDisplayNameAnnotation] = a.program
	}
	for _, c := range []*cobra.Command{a.newGet(), a.newDescribe(), a.newSync(), a.newHistory(), a.newEnv(), a.newRepo()} {
		c.GroupID = GroupID
		a.finish(c)
		root.AddCommand(c)
	}
	a.addKubectlCompletion(root)
}

func programName(called string) string {
	if strings.TrimSuffix(filepath.Base(called), ".exe") == pluginName {
		return "kubectl weir"
	}
	return "weir"
}

// finish gives a command and those below it what all have: wrong usage has its
// own exit code, and examples name the program as it was called.
func (a *app) finish(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%w\nsee: %s --help", err, c.CommandPath())
	})
	c.Example = strings.ReplaceAll(c.Example, "  weir ", "  "+a.program+" ")
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return usagef("%w\nusage: %s", err, c.UseLine())
			}
			return nil
		}
	}
	// Cobra checks required and exclusive flags after the arguments and returns
	// plain errors for them; asked first, they are wrong usage as well.
	c.PreRunE = func(c *cobra.Command, _ []string) error {
		for _, check := range []func() error{c.ValidateRequiredFlags, c.ValidateFlagGroups} {
			if err := check(); err != nil {
				return usagef("%w\nsee: %s --help", err, c.CommandPath())
			}
		}
		return nil
	}
	for _, sub := range c.Commands() {
		a.finish(sub)
	}
}
