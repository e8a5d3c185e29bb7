// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

type describeCommand struct {
	app        *app
	connection connection
}

func (a *app) newDescribe() *cobra.Command {
	d := &describeCommand{app: a}
	c := &cobra.Command{
		Use:   "describe [KIND] NAME",
		Short: "Show everything about a deployment, or about another resource, on one screen",
		Long: `Show everything about a deployment, or about another resource, on one screen:
what it is made of, how it is doing and why, what was done last, and what happened.

Without a kind: a deployment.`,
		Example: `  weir describe shop
  weir describe environment prod
  weir describe syncrun shop-x7k2p`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: d.complete,
		RunE: func(c *cobra.Command, args []string) error {
			k, name := deployments(), args[0]
			if len(args) == 2 {
				if k = findKind(args[0]); k == nil {
					return usagef("there is no kind %q: choose %s", args[0], choice(kindNames()))
				}
				name = args[1]
			}
			s, err := d.connection.open(a, c.ErrOrStderr())
			if err != nil {
				return err
			}
			found, err := s.gather(c.Context(), k, name)
			if err != nil {
				return err
			}
			found.show(&page{c.OutOrStdout()}, a.now())
			return nil
		},
	}
	d.connection.add(c)
	return c
}

func (d *describeCommand) complete(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch len(args) {
	case 0:
		names, directive := d.connection.names(c.Context(), d.app, deployments())
		return append(names, kindNames()...), directive
	case 1:
		if k := findKind(args[0]); k != nil {
			return d.connection.names(c.Context(), d.app, k)
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// described is an object with all around it that a page shows. What the tenant
// may not read is named in unreadable, and the page shows the rest.
type described struct {
	kind        *kind
	object      client.Object
	deployments []*v1alpha1.GitOpsDeployment
	runs        []*v1alpha1.GitOpsDeploymentSyncRun
	environment *v1alpha1.GitOpsDeploymentManagedEnvironment
	events      []corev1.Event
	unreadable  []error
}

// gather reads what the page needs.
func (s *session) gather(ctx context.Context, k *kind, name string) (*described, error) {
	o, err := s.get(ctx, k, name)
	if err != nil {
		return nil, err
	}
	d := &described{kind: k, object: o}
	note := func(err error) {
		if err != nil {
			d.unreadable = append(d.unreadable, err)
		}
	}
	switch o := o.(type) {
	case *v1alpha1.GitOpsDeployment:
		d.runs, err = s.runsOf(ctx, name)
		note(err)
		if environment := o.Spec.Destination.Environment; environment != "" {
			e, err := s.get(ctx, environments(), environment)
			note(err)
			d.environment, _ = e.(*v1alpha1.GitOpsDeploymentManagedEnvironment)
		}
	case *v1alpha1.GitOpsDeploymentManagedEnvironment, *v1alpha1.GitOpsDeploymentRepositoryCredential:
		d.deployments, err = s.usersOf(ctx, o)
		note(err)
	}
	d.events, err = s.eventsOf(ctx, o)
	note(err)
	return d, nil
}

// eventsOf reads the events of an object, oldest first.
func (s *session) eventsOf(ctx context.Context, o client.Object) ([]corev1.Event, error) {
	list := &corev1.EventList{}
	selector := fields.OneTermEqualSelector("involvedObject.uid", string(o.GetUID()))
	if err := s.api.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFieldsSelector{Selector: selector}); err != nil {
		return nil, s.explain(ctx, err, access{verb: "list", resource: "events", namespace: o.GetNamespace()})
	}
	slices.SortStableFunc(list.Items, func(a, b corev1.Event) int {
		return cmp.Or(moment(eventTime(&a)).Compare(moment(eventTime(&b))), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// eventTime is when an event last happened. Which field says so depends on the
// API that it was written by.
func eventTime(e *corev1.Event) *metav1.Time {
	switch {
	case e.Series != nil && !e.Series.LastObservedTime.IsZero():
		return &metav1.Time{Time: e.Series.LastObservedTime.Time}
	case !e.LastTimestamp.IsZero():
		return &e.LastTimestamp
	case !e.EventTime.IsZero():
		return &metav1.Time{Time: e.EventTime.Time}
	default:
		return &e.CreationTimestamp
	}
}

func eventCount(e *corev1.Event) int {
	if e.Series != nil {
		return int(e.Series.Count)
	}
	return max(1, int(e.Count))
}

// show prints the page.
func (d *described) show(p *page, now time.Time) {
	p.title(d.kind, d.object.GetName(), d.object.GetNamespace())
	switch o := d.object.(type) {
	case *v1alpha1.GitOpsDeployment:
		d.showDeployment(p, o, now)
	case *v1alpha1.GitOpsDeploymentSyncRun:
		showSyncRun(p, o, now)
	case *v1alpha1.GitOpsDeploymentManagedEnvironment:
		showEnvironment(p, o, now)
		showUsers(p, d.deployments)
	case *v1alpha1.GitOpsDeploymentRepositoryCredential:
		showCredential(p, o, now)
		showUsers(p, d.deployments)
	}
	showEvents(p, d.events, now)
	for _, err := range d.unreadable {
		p.section("Not shown: %v", err)
	}
}

// shownEvents is how many events fit beside all else on a screen.
const shownEvents = 10

func showEvents(p *page, events []corev1.Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	p.section("Events")
	if more := len(events) - shownEvents; more > 0 {
		p.line("(%d older)", more)
		events = events[more:]
	}
	t := newTable(p.out, "  ", "WHEN", "TYPE", "REASON", "MESSAGE")
	var rows [][]string
	for i := range events {
		e := &events[i]
		message := e.Message
		if n := eventCount(e); n > 1 {
			message += fmt.Sprintf(" (%d times)", n)
		}
		rows = append(rows, []string{since(now, eventTime(e)), e.Type, e.Reason, message})
	}
	t.print(rows...)
}

func showUsers(p *page, users []*v1alpha1.GitOpsDeployment) {
	if len(users) == 0 {
		return
	}
	p.section("Used by")
	for _, d := range users {
		p.line("deployment %s (%s, %s)", d.Name, orDash(string(d.Status.Sync.Status)), orDash(string(d.Status.Health.Status)))
	}
}
