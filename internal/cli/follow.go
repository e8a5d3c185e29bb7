// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// change is an object as it is now, or that it is gone.
type change struct {
	object  client.Object
	deleted bool
}

// follower hands on what changes among the objects of a kind.
//
// It lists, then watches from there, and lists again whenever the watch ends:
// because the server closed it, because its history is too short, or because
// the connection broke. What was handed on already is remembered by UID and
// resourceVersion, so listing again repeats nothing, and what is missing from
// the list was deleted meanwhile. No change of state can be lost that way;
// states that were passed through while the connection was down can.
type follower struct {
	session *session
	kind    *kind
	// namespace is empty for all; name for any.
	namespace, name string
	// each is handed what changed, and says when it has seen enough.
	each func([]change) (done bool, err error)
	// lost is told when the connection breaks after it has worked once.
	lost func(error)

	seen map[types.UID]client.Object
}

// retryAfter is how long a broken connection is left alone.
const retryAfter = time.Second

// run returns when each is done, or with an error: the context's, or the API
// server's where trying again cannot help.
func (f *follower) run(ctx context.Context) error {
	f.seen = map[types.UID]client.Object{}
	worked := false
	for {
		done, err := f.once(ctx, &worked)
		switch {
		case done || ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (!worked || hopeless(err)):
			return f.explain(ctx, err)
		case err != nil:
			if f.lost != nil {
				f.lost(err)
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(retryAfter):
			}
		}
	}
}

// asked is a request that failed.
type asked struct {
	access access
	err    error
}

func (a *asked) Error() string { return a.err.Error() }
func (a *asked) Unwrap() error { return a.err }

// stop is an error of the caller, which ends everything.
type stop struct{ err error }

func (s *stop) Error() string { return s.err.Error() }
func (s *stop) Unwrap() error { return s.err }

func (f *follower) explain(ctx context.Context, err error) error {
	var a *asked
	if errors.As(err, &a) {
		return f.session.explain(ctx, a.err, a.access)
	}
	return err
}

// hopeless says whether trying again gives the same answer.
func hopeless(err error) bool {
	var s *stop
	return errors.As(err, &s) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)
}

// once lists and then watches until the watch ends.
func (f *follower) once(ctx context.Context, worked *bool) (done bool, err error) {
	list := f.kind.list()
	if err := f.session.api.List(ctx, list, f.options("")); err != nil {
		return false, &asked{f.kind.access("list", f.namespace, ""), err}
	}
	*worked = true
	items, err := itemsOf(list, f.kind)
	if err != nil {
		return false, err
	}
	if done, err := f.hand(f.news(items)); done || err != nil {
		return done, err
	}
	w, err := f.session.api.Watch(ctx, f.kind.list(), f.options(list.GetResourceVersion()))
	if err != nil {
		return false, &asked{f.kind.access("watch", f.namespace, ""), err}
	}
	defer w.Stop()
	for event := range w.ResultChan() {
		o, ok := event.Object.(client.Object)
		if !ok {
			// An error, such as a history that is too short: list again.
			return false, nil
		}
		if event.Type == watch.Bookmark {
			continue
		}
		o.GetObjectKind().SetGroupVersionKind(f.kind.gvk())
		c := change{object: o, deleted: event.Type == watch.Deleted}
		f.remember(c)
		if done, err := f.hand([]change{c}); done || err != nil {
			return done, err
		}
	}
	return false, nil
}

func (f *follower) hand(changes []change) (bool, error) {
	if len(changes) == 0 {
		return false, nil
	}
	done, err := f.each(changes)
	if err != nil {
		return false, &stop{err}
	}
	return done, nil
}

func (f *follower) options(version string) client.ListOption {
	o := &client.ListOptions{Namespace: f.namespace, Raw: &metav1.ListOptions{ResourceVersion: version}}
	if f.name != "" {
		o.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.name)
	}
	return o
}

// news is what a list shows that was not handed on yet.
func (f *follower) news(items []client.Object) []change {
	var changes []change
	present := map[types.UID]bool{}
	for _, o := range items {
		present[o.GetUID()] = true
		if had, ok := f.seen[o.GetUID()]; !ok || had.GetResourceVersion() != o.GetResourceVersion() {
			changes = append(changes, change{object: o})
		}
	}
	var gone []change
	for uid, o := range f.seen {
		if !present[uid] {
			gone = append(gone, change{object: o, deleted: true})
		}
	}
	slices.SortFunc(gone, func(a, b change) int { return strings.Compare(a.object.GetName(), b.object.GetName()) })
	changes = append(gone, changes...)
	for _, c := range changes {
		f.remember(c)
	}
	return changes
}

func (f *follower) remember(c change) {
	if c.deleted {
		delete(f.seen, c.object.GetUID())
		return
	}
	f.seen[c.object.GetUID()] = c.object
}
