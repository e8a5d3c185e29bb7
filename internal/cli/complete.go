// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completeWithin is how long a shell may hang on a cluster that does not answer.
const completeWithin = 2 * time.Second

// names completes the names of a kind's objects. A shell has no place for
// errors: whatever goes wrong completes nothing.
func (c *connection) names(ctx context.Context, a *app, k *kind) ([]string, cobra.ShellCompDirective) {
	s, err := c.open(a, io.Discard)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(ctx, completeWithin)
	defer cancel()
	list := k.list()
	if err := s.api.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	items, _ := itemsOf(list, k)
	return namesOf(items), cobra.ShellCompDirectiveNoFileComp
}

// completeFirst completes the first argument with names of a kind.
func (c *connection) completeFirst(a *app, k *kind) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(cmd.Context(), a, k)
	}
}

func (c *connection) completeContexts(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return c.contexts(), cobra.ShellCompDirectiveNoFileComp
}

// completeContextsOf completes contexts of another kubeconfig than one's own.
func completeContextsOf(load func() (*clientcmdapi.Config, error)) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		config, err := load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return contextNames(config), cobra.ShellCompDirectiveNoFileComp
	}
}

func (g *getCommand) complete(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		return append(kindNames(), "all"), cobra.ShellCompDirectiveNoFileComp
	case 1:
		if k := findKind(args[0]); k != nil {
			return g.connection.names(c.Context(), g.app, k)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// addKubectlCompletion adds to cobra's own completion command the script by
// which kubectl completes what follows `kubectl weir`.
func (a *app) addKubectlCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() != "completion" {
			continue
		}
		c.AddCommand(&cobra.Command{
			Use:   "kubectl",
			Short: "Generate the script by which kubectl completes `kubectl weir`",
			Long: `Generate the script by which kubectl completes ` + "`kubectl weir`" + `.

kubectl runs the program kubectl_complete-weir on the PATH for it. "make install"
puts it there; by hand:

  weir completion kubectl > ~/.local/bin/kubectl_complete-weir
  chmod +x ~/.local/bin/kubectl_complete-weir`,
			Args:              cobra.NoArgs,
			ValidArgsFunction: cobra.NoFileCompletions,
			Run: func(c *cobra.Command, _ []string) {
				fmt.Fprint(c.OutOrStdout(), strings.ReplaceAll(kubectlCompletion, "PLUGIN", pluginName))
			},
		})
	}
}

// kubectlCompletion hands kubectl's question on to the plugin: kubectl expects
// the very protocol that cobra's __complete speaks.
const kubectlCompletion = `#!/bin/sh
# Completes "kubectl weir". kubectl runs this with the words typed so far.
exec PLUGIN __complete "$@"
`
