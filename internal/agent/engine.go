// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// resourceIndex finds Operations by the resource they are about.
const resourceIndex = "resource"

func indexResource(o client.Object) []string {
	l := o.GetLabels()
	return []string{l[operationv1alpha1.ResourceTypeLabel] + "/" + l[operationv1alpha1.ResourceLabel]}
}

// engineNamespace reads an engine instance's namespace through the cache and
// writes to the API server.
//
// The cache may be behind our own writes: an edit and its reversal within a
// moment would find the cache still showing the first state and conclude that
// nothing is to be done. So the version of each write is remembered until the
// cache has caught up with it, and meanwhile reads go to the API server. Steps
// on one Application never overlap, so no other write of ours can be missed.
type engineNamespace struct {
	namespace string
	cached    client.Client
	live      client.Reader

	mu      sync.Mutex
	written map[string]uint64 // Application name → resourceVersion of our last write
}

func (e *engineNamespace) Operations(ctx context.Context, t domain.ResourceType, resource string) ([]operationv1alpha1.Operation, error) {
	var list operationv1alpha1.OperationList
	err := e.cached.List(ctx, &list, client.InNamespace(e.namespace), client.MatchingFields{resourceIndex: string(t) + "/" + resource})
	slices.SortFunc(list.Items, func(a, b operationv1alpha1.Operation) int { return cmp.Compare(a.Spec.OperationID, b.Spec.OperationID) })
	return list.Items, err
}

func (e *engineNamespace) DeleteOperation(ctx context.Context, op *operationv1alpha1.Operation) error {
	return client.IgnoreNotFound(e.cached.Delete(ctx, op, client.Preconditions{UID: &op.UID}))
}

func (e *engineNamespace) Application(ctx context.Context, name string) (*argov1alpha1.Application, error) {
	app, err := e.get(ctx, e.cached, name)
	known := e.lastWrite(name)
	if err != nil || known <= version(app) {
		return app, err
	}
	if app, err = e.get(ctx, e.live, name); err == nil && app == nil {
		e.gone(name, known)
	}
	return app, err
}

// lastWrite gives the version of our last write that the cache may not have
// seen; 0 where there is none.
func (e *engineNamespace) lastWrite(name string) uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.written[name]
}

// seen is told of every version that reaches the cache, so that nothing is
// remembered longer than it matters.
func (e *engineNamespace) seen(name string, v uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written[name] <= v {
		delete(e.written, name)
	}
}

func (e *engineNamespace) get(ctx context.Context, r client.Reader, name string) (*argov1alpha1.Application, error) {
	app := &argov1alpha1.Application{}
	err := r.Get(ctx, client.ObjectKey{Namespace: e.namespace, Name: name}, app)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return app, err
}

func (e *engineNamespace) CreateApplication(ctx context.Context, app *argov1alpha1.Application) error {
	err := e.cached.Create(ctx, app)
	if apierrors.IsAlreadyExists(err) {
		return e.existsUnseen(ctx, app.Name)
	}
	if err == nil {
		e.remember(app.Name, version(app))
	}
	return err
}

// existsUnseen makes the next look see an Application that the cache does not
// show: it is not there yet, or has lost the labels that it is watched by.
func (e *engineNamespace) existsUnseen(ctx context.Context, name string) error {
	there, err := e.get(ctx, e.live, name)
	if err != nil {
		return err
	}
	e.remember(name, version(there))
	return fmt.Errorf("%s exists: %w", name, domain.ErrConflict)
}

func (e *engineNamespace) UpdateApplication(ctx context.Context, have, want *argov1alpha1.Application) error {
	changes := []jsonPatch{
		{Op: "test", Path: "/metadata/uid", Value: have.UID},
		{Op: "replace", Path: "/spec", Value: want.Spec},
	}
	labels := map[string]string{}
	maps.Copy(labels, have.Labels)
	maps.Copy(labels, want.Labels)
	if !maps.Equal(labels, have.Labels) {
		changes = append(changes, jsonPatch{Op: "add", Path: "/metadata/labels", Value: labels})
	}
	patch, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	patched := have.DeepCopy()
	if err := e.cached.Patch(ctx, patched, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return e.whyNotPatched(ctx, have, err)
	}
	e.remember(have.Name, version(patched))
	return nil
}

// whyNotPatched tells a patch that met another object under the name from one
// that the API server will never take: both are refused as invalid.
func (e *engineNamespace) whyNotPatched(ctx context.Context, have *argov1alpha1.Application, refusal error) error {
	if apierrors.IsNotFound(refusal) || apierrors.IsConflict(refusal) {
		return fmt.Errorf("%s is not what it was: %w", have.Name, domain.ErrConflict)
	}
	if !apierrors.IsInvalid(refusal) {
		return refusal
	}
	now, err := e.get(ctx, e.live, have.Name)
	if err != nil {
		return err
	}
	if now == nil || now.UID != have.UID {
		e.remember(have.Name, version(now))
		return fmt.Errorf("%s is another by now: %w", have.Name, domain.ErrConflict)
	}
	return refusal
}

type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

func (e *engineNamespace) DeleteApplication(ctx context.Context, name string) (bool, error) {
	seen, err := e.get(ctx, e.cached, name)
	if err != nil {
		return false, err
	}
	if seen != nil && !seen.DeletionTimestamp.IsZero() {
		return false, nil
	}
	app := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: e.namespace, Name: name}}
	if err := e.cached.Delete(ctx, app); apierrors.IsNotFound(err) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	// Accepted. Without finalizers that was all. Of an Application that the
	// cache has not seen, it may never see the end either, so the API server is asked.
	if seen == nil {
		seen, err = e.get(ctx, e.live, name)
		return seen == nil, err
	}
	// Until the cache has seen the end of it, what it shows is not to be trusted.
	e.remember(name, untilGone)
	return len(seen.Finalizers) == 0, nil
}

// untilGone is remembered of an Application that we have deleted.
const untilGone = ^uint64(0)

// remember notes a write of ours. A smaller version than the one known comes
// from a look that was overtaken.
func (e *engineNamespace) remember(name string, v uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written == nil {
		e.written = make(map[string]uint64)
	}
	e.written[name] = max(e.written[name], v)
}

// ended is told of every Application whose end reached the cache, with the
// version at its end: a later write of ours is to another one, and stays known.
func (e *engineNamespace) ended(name string, v uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if known := e.written[name]; known <= v || known == untilGone {
		delete(e.written, name)
	}
}

// gone is told of an Application that the API server does not have, and what was
// known when it was asked: a write since stays known.
func (e *engineNamespace) gone(name string, known uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.written[name] == known {
		delete(e.written, name)
	}
}

// version gives an object's resourceVersion as the number that it is; 0 for
// none.
func version(app *argov1alpha1.Application) uint64 {
	if app == nil {
		return 0
	}
	v, err := strconv.ParseUint(app.ResourceVersion, 10, 64)
	if err != nil {
		return 0
	}
	return v
}
