// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// newList is get for one kind.
func (a *app) newList(k *kind) *cobra.Command {
	g := &getCommand{app: a}
	c := &cobra.Command{
		Use:               "list",
		Aliases:           []string{"ls"},
		Short:             "List your " + k.plural,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, _ []string) error {
			g.out, g.err = c.OutOrStdout(), c.ErrOrStderr()
			return g.run(c.Context(), []string{k.plural})
		},
	}
	g.connection.add(c)
	addOutputFlag(c, &g.output, "json", "yaml", "wide", "name")
	c.Flags().BoolVarP(&g.allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	return c
}

type removeCommand struct {
	app        *app
	connection connection
	kind       *kind
	secretOf   func(client.Object) string
	yes        bool

	session  *session
	prompt   *prompter
	out, err io.Writer
}

func (a *app) newRemove(k *kind, secretOf func(client.Object) string) *cobra.Command {
	r := &removeCommand{app: a, kind: k, secretOf: secretOf}
	c := &cobra.Command{
		Use:     "remove NAME",
		Aliases: []string{"rm"},
		Short:   fmt.Sprintf("Remove the %s NAME and its Secret", k.singular),
		Long: fmt.Sprintf(`Remove the %s NAME, and its Secret if this program made it and nothing else
needs it. Says which deployments still use it, and asks first.`, k.singular),
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: r.connection.completeFirst(a, k),
		RunE: func(c *cobra.Command, args []string) error {
			r.out, r.err = c.OutOrStdout(), c.ErrOrStderr()
			r.prompt = &prompter{terminal: a.terminal, in: c.InOrStdin(), out: r.err}
			var err error
			if r.session, err = r.connection.open(a, r.err); err != nil {
				return err
			}
			return r.run(c.Context(), args[0])
		},
	}
	r.connection.add(c)
	c.Flags().BoolVarP(&r.yes, "yes", "y", false, "do not ask")
	return c
}

var errNotConfirmed = errors.New("nothing was removed")

func (r *removeCommand) run(ctx context.Context, name string) error {
	o, err := r.session.get(ctx, r.kind, name)
	if err != nil {
		return err
	}
	users, err := r.session.usersOf(ctx, o)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		fmt.Fprintf(r.err, "%s %s is still used by %s: %s.\n", r.kind.singular, name, counted(len(users), "deployment", "deployments"), strings.Join(userNames(users), ", "))
	}
	if !r.yes {
		if !r.prompt.interactive() {
			return usagef("there is nobody to ask: confirm with --yes")
		}
		sure, err := r.prompt.confirm(ctx, fmt.Sprintf("Remove %s %s from namespace %s?", r.kind.singular, name, r.session.namespace))
		if err != nil {
			return err
		}
		if !sure {
			return errNotConfirmed
		}
	}
	// The UID keeps a namesake that was made since the question.
	uid := o.GetUID()
	if err := r.session.api.Delete(ctx, o, client.Preconditions{UID: &uid}); err != nil {
		return r.session.explain(ctx, err, r.kind.access("delete", r.session.namespace, name))
	}
	fmt.Fprintf(r.out, "Removed %s %s.\n", r.kind.singular, name)
	return r.removeSecret(ctx, o)
}

// removeSecret removes the Secret unless another resource of the kind uses it.
func (r *removeCommand) removeSecret(ctx context.Context, o client.Object) error {
	secret := r.secretOf(o)
	others, err := r.session.all(ctx, r.kind)
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.GetUID() != o.GetUID() && r.secretOf(other) == secret {
			fmt.Fprintf(r.out, "Secret %s is left: %s %s uses it.\n", secret, r.kind.singular, other.GetName())
			return nil
		}
	}
	removeSecret(ctx, r.session, secret, r.out)
	return nil
}

func userNames(users []*v1alpha1.GitOpsDeployment) []string {
	var names []string
	for _, d := range users {
		names = append(names, d.Name)
	}
	return names
}
