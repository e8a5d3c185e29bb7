// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// Projects and Secrets are read and written in one way: read at least as new as
// our own last write, created, or replaced where nobody else has changed them.
// The versions of our writes are remembered in the same table as those of
// Applications, under names that cannot be theirs.
const (
	projectNames = "project/"
	secretNames  = "secret/"
)

// tenantIndex finds Applications by their tenant.
const tenantIndex = "tenant"

func indexTenant(o client.Object) []string { return []string{o.GetLabels()[argov1alpha1.TenantLabel]} }

func (e *engineNamespace) ApplicationsOf(ctx context.Context, t domain.TenantID) ([]argov1alpha1.Application, error) {
	var list argov1alpha1.ApplicationList
	err := e.cached.List(ctx, &list, client.InNamespace(e.namespace), client.MatchingFields{tenantIndex: string(t)})
	// What we have deleted, and no finalizer holds, is gone, although the cache may
	// not have heard of it.
	return slices.DeleteFunc(list.Items, func(app argov1alpha1.Application) bool {
		return len(app.Finalizers) == 0 && e.lastWrite(app.Name) == untilGone
	}), err
}

func (e *engineNamespace) Project(ctx context.Context, name string) (*argov1alpha1.AppProject, error) {
	p := &argov1alpha1.AppProject{}
	if there, err := e.read(ctx, p, name, projectNames+name); err != nil || !there {
		return nil, err
	}
	return p, nil
}

func (e *engineNamespace) PutProject(ctx context.Context, have, want *argov1alpha1.AppProject) error {
	if have != nil {
		put := have.DeepCopy()
		put.Spec, put.Labels = want.Spec, merged(have.Labels, want.Labels)
		return e.write(ctx, put, projectNames+want.Name, true)
	}
	return e.write(ctx, want.DeepCopy(), projectNames+want.Name, false)
}

func (e *engineNamespace) DeleteProject(ctx context.Context, have *argov1alpha1.AppProject) error {
	return e.remove(ctx, have, projectNames+have.Name)
}

func (e *engineNamespace) Secret(ctx context.Context, name string) (*corev1.Secret, error) {
	s := &corev1.Secret{}
	if there, err := e.read(ctx, s, name, secretNames+name); err != nil || !there {
		return nil, err
	}
	return s, nil
}

func (e *engineNamespace) PutSecret(ctx context.Context, have, want *corev1.Secret) error {
	if have != nil {
		put := have.DeepCopy()
		put.Data, put.Labels = want.Data, merged(have.Labels, want.Labels)
		return e.write(ctx, put, secretNames+want.Name, true)
	}
	return e.write(ctx, want.DeepCopy(), secretNames+want.Name, false)
}

func (e *engineNamespace) DeleteSecret(ctx context.Context, have *corev1.Secret) error {
	return e.remove(ctx, have, secretNames+have.Name)
}

func (e *engineNamespace) read(ctx context.Context, into client.Object, name, key string) (bool, error) {
	at := client.ObjectKey{Namespace: e.namespace, Name: name}
	known := e.lastWrite(key)
	err := e.cached.Get(ctx, at, into)
	if client.IgnoreNotFound(err) != nil {
		return false, err
	}
	if err == nil && known <= versionOf(into) || err != nil && known == 0 {
		return err == nil, nil
	}
	err = e.live.Get(ctx, at, into)
	if apierrors.IsNotFound(err) {
		e.gone(key, known)
		return false, nil
	}
	return err == nil, err
}

func (e *engineNamespace) write(ctx context.Context, o client.Object, key string, replace bool) error {
	do := func() error { return e.cached.Create(ctx, o) }
	if replace {
		do = func() error { return e.cached.Update(ctx, o) }
	}
	err := do()
	switch {
	case err == nil:
		e.remember(key, versionOf(o))
		return nil
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), replace && apierrors.IsNotFound(err):
		// The cache is late: the next look asks the API server.
		e.remember(key, versionOf(o)+1)
		return fmt.Errorf("%s is not what it was: %w", o.GetName(), domain.ErrConflict)
	}
	return err
}

func (e *engineNamespace) remove(ctx context.Context, o client.Object, key string) error {
	uid := o.GetUID()
	err := e.cached.Delete(ctx, o, client.Preconditions{UID: &uid})
	if apierrors.IsConflict(err) {
		e.remember(key, versionOf(o)+1)
		return fmt.Errorf("%s is another by now: %w", o.GetName(), domain.ErrConflict)
	}
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	e.remember(key, untilGone)
	return nil
}

func merged(have, want map[string]string) map[string]string {
	all := make(map[string]string, len(have)+len(want))
	for k, v := range have {
		all[k] = v
	}
	for k, v := range want {
		all[k] = v
	}
	return all
}

// RequestSync asks the engine for a sync, and to look at Git anew before it: an
// engine may have resolved the revision a while ago. Refused with a conflict
// where the Application has changed since it was read.
func (e *engineNamespace) RequestSync(ctx context.Context, app *argov1alpha1.Application, op argov1alpha1.Operation) error {
	return e.patch(ctx, app, map[string]any{
		"metadata": map[string]any{
			"resourceVersion": app.ResourceVersion,
			"annotations":     map[string]string{argov1alpha1.RefreshAnnotation: argov1alpha1.RefreshNormal},
		},
		"operation": op,
	})
}

// CancelSync takes back a sync that the engine has not begun with.
func (e *engineNamespace) CancelSync(ctx context.Context, app *argov1alpha1.Application) error {
	return e.patch(ctx, app, map[string]any{
		"metadata":  map[string]any{"resourceVersion": app.ResourceVersion},
		"operation": nil,
	})
}

// TerminateSync asks the engine to end the sync that it is at.
func (e *engineNamespace) TerminateSync(ctx context.Context, app *argov1alpha1.Application) error {
	return e.patch(ctx, app, map[string]any{
		"metadata": map[string]any{"resourceVersion": app.ResourceVersion},
		"status":   map[string]any{"operationState": map[string]any{"phase": argov1alpha1.OperationTerminating}},
	})
}

func (e *engineNamespace) patch(ctx context.Context, app *argov1alpha1.Application, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	patched := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	err = e.cached.Patch(ctx, patched, client.RawPatch(types.MergePatchType, text))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		e.remember(app.Name, version(app)+1)
		return fmt.Errorf("%s is not what it was: %w", app.Name, domain.ErrConflict)
	}
	if err == nil {
		e.remember(app.Name, version(patched))
	}
	return err
}

func versionOf(o client.Object) uint64 {
	v, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
