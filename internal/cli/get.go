// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type getCommand struct {
	app           *app
	connection    connection
	output        output
	allNamespaces bool
	watch         bool

	out, err io.Writer
	session  *session
}

func (a *app) newGet() *cobra.Command {
	g := &getCommand{app: a}
	c := &cobra.Command{
		Use:   "get [deployments|syncruns|environments|credentials|all] [NAME]",
		Short: "List your deployments, sync runs, environments and credentials",
		Long: `List your deployments, sync runs, environments and credentials.

Without a kind: deployments. Kinds may be shortened: deploy, run, env, cred, and
kubectl's short names work too.`,
		Example: `  weir get                        your deployments
  weir get all                    everything of yours
  weir get deploy shop -o yaml    one of them, whole
  weir get runs --watch           sync runs, and what becomes of them`,
		Args:              cobra.MaximumNArgs(2),
		ValidArgsFunction: g.complete,
		RunE: func(c *cobra.Command, args []string) error {
			g.out, g.err = c.OutOrStdout(), c.ErrOrStderr()
			return g.run(c.Context(), args)
		},
	}
	g.connection.add(c)
	addOutputFlag(c, &g.output, "json", "yaml", "wide", "name")
	c.Flags().BoolVarP(&g.allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	c.Flags().BoolVarP(&g.watch, "watch", "w", false, "go on showing changes, until Ctrl-C")
	return c
}

func (g *getCommand) run(ctx context.Context, args []string) error {
	wanted, name, err := whatToGet(args)
	if err != nil {
		return err
	}
	if g.watch && len(wanted) > 1 {
		return usagef("--watch follows one kind at a time: choose %s", choice(kindNames()))
	}
	if name != "" && g.allNamespaces {
		return usagef("a name is looked up in one namespace: leave out -A, or the name")
	}
	if g.session, err = g.connection.open(g.app, g.err); err != nil {
		return err
	}
	if g.allNamespaces {
		g.session.namespace = ""
	}
	if g.watch {
		return g.follow(ctx, wanted[0], name)
	}
	if name != "" {
		return g.one(ctx, wanted[0], name)
	}
	return g.list(ctx, wanted)
}

// whatToGet understands the arguments: a kind, a name, both, or neither.
func whatToGet(args []string) (wanted []*kind, name string, err error) {
	switch {
	case len(args) == 0:
		return []*kind{deployments()}, "", nil
	case args[0] == "all" && len(args) == 1:
		return kinds(), "", nil
	case args[0] == "all":
		return nil, "", usagef("a name needs its kind: choose %s", choice(kindNames()))
	}
	k := findKind(args[0])
	if k == nil {
		return nil, "", usagef("there is no kind %q: choose %s", args[0], choice(append(kindNames(), "all")))
	}
	if len(args) == 2 {
		name = args[1]
	}
	return []*kind{k}, name, nil
}

func (g *getCommand) one(ctx context.Context, k *kind, name string) error {
	o, err := g.session.get(ctx, k, name)
	if err != nil {
		return err
	}
	return g.print([]*kind{k}, [][]client.Object{{o}}, false)
}

// get reads one object. Where there is none, close names are offered.
func (s *session) get(ctx context.Context, k *kind, name string) (client.Object, error) {
	o := k.object()
	err := s.api.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: name}, o)
	a := k.access("get", s.namespace, name)
	if apierrors.IsNotFound(err) && !definitionsMissing(err, a) {
		return nil, s.notFound(ctx, k, name)
	}
	if err != nil {
		return nil, s.explain(ctx, err, a)
	}
	o.GetObjectKind().SetGroupVersionKind(k.gvk())
	return o, nil
}

// all lists the objects of a kind in the session's namespace.
func (s *session) all(ctx context.Context, k *kind) ([]client.Object, error) {
	list := k.list()
	if err := s.api.List(ctx, list, client.InNamespace(s.namespace)); err != nil {
		return nil, s.explain(ctx, err, k.access("list", s.namespace, ""))
	}
	return itemsOf(list, k)
}

func (g *getCommand) list(ctx context.Context, wanted []*kind) error {
	var found [][]client.Object
	for _, k := range wanted {
		items, err := g.session.all(ctx, k)
		if err != nil {
			return err
		}
		found = append(found, items)
	}
	return g.print(wanted, found, true)
}

// print writes what was found, kind by kind.
func (g *getCommand) print(wanted []*kind, found [][]client.Object, asList bool) error {
	all := slices.Concat(found...)
	for _, o := range all {
		tidy(o)
	}
	switch {
	case g.output == outputJSON || g.output == outputYAML:
		if !asList {
			return printData(g.out, g.output, all[0])
		}
		return printData(g.out, g.output, newBundle(all))
	case len(all) == 0:
		fmt.Fprintln(g.err, g.nothing(wanted))
		return nil
	}
	begun := false
	for i, k := range wanted {
		if len(found[i]) == 0 {
			continue
		}
		if begun && g.output != outputName {
			fmt.Fprintln(g.out)
		}
		begun = true
		g.rows(g.table(k), k, found[i], len(wanted) > 1)
	}
	return nil
}

func (g *getCommand) nothing(wanted []*kind) string {
	what := "resources"
	if len(wanted) == 1 {
		what = wanted[0].plural
	}
	if g.session.namespace == "" {
		return fmt.Sprintf("There are no %s in any namespace.", what)
	}
	return fmt.Sprintf("There are no %s in namespace %s.", what, g.session.namespace)
}

func (g *getCommand) table(k *kind) *table {
	header := k.columns.header(g.output == outputWide)
	if g.allNamespaces {
		header = append([]string{"NAMESPACE"}, header...)
	}
	return newTable(g.out, "", header...)
}

func (g *getCommand) rows(t *table, k *kind, items []client.Object, withKind bool) {
	var rows [][]string
	for _, o := range items {
		if g.output == outputName {
			fmt.Fprintln(g.out, qualified(k, o))
			continue
		}
		row := k.columns.row(o, g.app.now(), g.output == outputWide)
		if withKind {
			row[0] = k.singular + "/" + row[0]
		}
		if g.allNamespaces {
			row = append([]string{o.GetNamespace()}, row...)
		}
		rows = append(rows, row)
	}
	if len(rows) > 0 {
		t.print(rows...)
	}
}

// follow shows what is there and then every change, until it is interrupted.
func (g *getCommand) follow(ctx context.Context, k *kind, name string) error {
	t := g.table(k)
	f := &follower{
		session: g.session, kind: k, namespace: g.session.namespace, name: name,
		each: func(changes []change) (bool, error) { return false, g.showChanges(t, k, changes) },
		lost: func(error) { fmt.Fprintln(g.err, "The connection broke; trying again.") },
	}
	err := f.run(ctx)
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func (g *getCommand) showChanges(t *table, k *kind, changes []change) error {
	var rows [][]string
	for _, c := range changes {
		tidy(c.object)
		switch g.output {
		case outputName:
			fmt.Fprintln(g.out, qualified(k, c.object))
		case outputYAML, outputJSON:
			if g.output == outputYAML {
				fmt.Fprintln(g.out, "---")
			}
			if err := printData(g.out, g.output, c.object); err != nil {
				return err
			}
		default:
			row := k.columns.row(c.object, g.app.now(), g.output == outputWide)
			if c.deleted {
				row[len(row)-1] = strings.TrimSuffix("deleted: "+row[len(row)-1], ": ")
			}
			if g.allNamespaces {
				row = append([]string{c.object.GetNamespace()}, row...)
			}
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		t.print(rows...)
	}
	return nil
}
