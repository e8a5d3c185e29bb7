// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// addition writes a resource with the Secret that it names, and waits for what
// the service says of them.
//
// The resource is first written as a dry run: what the API server refuses, it
// refuses before a credential has gone anywhere. Then the Secret is written, so
// that the service finds it when it sees the resource.
type addition struct {
	app     *app
	session *session
	kind    *kind
	secret  *credentialSecret
	// want is the resource; have is what is there already, nil where nothing is.
	want, have client.Object
	answer     func(client.Object) answer
	conditions func(client.Object) []metav1.Condition
	out, err   io.Writer
}

// waiting are the flags of a command that waits for an answer.
type waiting struct {
	wait    bool
	timeout time.Duration
}

func (w *waiting) add(c *cobra.Command, what string) {
	c.Flags().BoolVar(&w.wait, "wait", true, "wait until the service has tried "+what)
	c.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait for that")
}

func (a *addition) run(ctx context.Context, w waiting) error {
	if err := a.write(ctx, client.DryRunAll); err != nil {
		return err
	}
	created, err := a.secret.put(ctx, a.session)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s Secret %s.\n", didWord(created, true), a.secret.name)
	if err := a.write(ctx); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s %s %s.\n", didWord(a.have == nil, a.changed()), a.kind.singular, a.want.GetName())
	if !w.wait {
		fmt.Fprintf(a.out, "See how it goes with: %s describe %s %s -n %s\n", a.app.program, a.kind.singular, a.want.GetName(), a.session.namespace)
		return nil
	}
	return a.await(ctx, w.timeout)
}

func didWord(created, changed bool) string {
	switch {
	case created:
		return "Created"
	case changed:
		return "Updated"
	default:
		return "Kept"
	}
}

// write creates the resource, or changes the one that is there. A merge patch
// needs no retry when the service writes the status meanwhile.
func (a *addition) write(ctx context.Context, options ...client.PatchOption) error {
	o, ok := a.want.DeepCopyObject().(client.Object)
	if !ok {
		return fmt.Errorf("%T is no resource", a.want)
	}
	namespace := a.session.namespace
	if a.have != nil {
		err := a.session.api.Patch(ctx, o, client.MergeFrom(a.have), options...)
		return a.keep(ctx, err, o, a.kind.access("patch", namespace, o.GetName()), len(options) == 0)
	}
	var create []client.CreateOption
	if len(options) > 0 {
		create = append(create, client.DryRunAll)
	}
	err := a.session.api.Create(ctx, o, create...)
	return a.keep(ctx, err, o, a.kind.access("create", namespace, ""), len(options) == 0)
}

// keep remembers what was written, for its generation; a dry run writes nothing.
func (a *addition) keep(ctx context.Context, err error, o client.Object, asked access, written bool) error {
	if err != nil {
		return a.session.explain(ctx, err, asked)
	}
	if written {
		a.want = o
	}
	return nil
}

// changed says whether the spec has changed.
func (a *addition) changed() bool {
	return a.have == nil || a.want.GetGeneration() != a.have.GetGeneration()
}

// await waits for an answer that speaks of what was just written. Where only
// the Secret has changed, a bad answer that is exactly as before may be the old
// one, so it is not taken; a good one is, and may be taken back later.
func (a *addition) await(parent context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(parent, timeout)
	defer cancel()
	var last answer
	var before []metav1.Condition
	if a.have != nil {
		before = a.conditions(a.have)
	}
	p := newProgress(a.out, a.app.terminal.Is(a.out))
	p.say("Waiting for the service to try it.")
	f := &follower{
		session: a.session, kind: a.kind, namespace: a.session.namespace, name: a.want.GetName(),
		each: func(changes []change) (bool, error) {
			c := changes[len(changes)-1]
			if c.deleted {
				return false, fmt.Errorf("the %s %s was deleted meanwhile", a.kind.singular, a.want.GetName())
			}
			if c.object.GetGeneration() < a.want.GetGeneration() {
				return false, nil
			}
			last = a.answer(c.object)
			old := !a.changed() && equality.Semantic.DeepEqual(before, a.conditions(c.object))
			return last.known && (last.good || !old), nil
		},
		lost: func(error) { p.say("The connection broke; trying again.") },
	}
	err := f.run(ctx)
	p.end()
	name, look := a.want.GetName(), fmt.Sprintf("%s describe %s %s -n %s", a.app.program, a.kind.singular, a.want.GetName(), a.session.namespace)
	switch {
	case parent.Err() != nil:
		return exitf(exitInterrupted, "interrupted; the %s is there: %s", a.kind.singular, look)
	case errors.Is(err, context.DeadlineExceeded):
		return exitf(exitTimedOut, "the service has not said within %s whether %s %s can be used%s; see: %s", timeout, a.kind.singular, name, lastWords(last), look)
	case err != nil:
		return err
	case !last.good:
		return exitf(exitFailed, "%s %s cannot be used: %s: %s", a.kind.singular, name, last.reason, plain(last.trouble()))
	}
	fmt.Fprintf(a.out, "The %s works%s.\n", a.kind.singular, goodWords(last))
	return nil
}

func lastWords(last answer) string {
	if last.trouble() == "" {
		return ""
	}
	return " (the last that it said: " + plain(last.trouble()) + ")"
}

func goodWords(a answer) string {
	if a.message == "" {
		return ""
	}
	return ": " + plain(a.message)
}

// existing reads a resource that may not be there; nil where it is not.
func (s *session) existing(ctx context.Context, k *kind, name string) (client.Object, error) {
	o, err := s.get(ctx, k, name)
	if errors.Is(err, errNotFound) {
		return nil, nil
	}
	return o, err
}

func environmentConditions(o client.Object) []metav1.Condition {
	e, ok := o.(*v1alpha1.GitOpsDeploymentManagedEnvironment)
	if !ok {
		return nil
	}
	return e.Status.Conditions
}

func credentialConditions(o client.Object) []metav1.Condition {
	c, ok := o.(*v1alpha1.GitOpsDeploymentRepositoryCredential)
	if !ok {
		return nil
	}
	return c.Status.Conditions
}
