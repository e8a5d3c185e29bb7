// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// lookAgain is for deletions whose end no watch tells of.
const lookAgain = 10 * time.Second

// finalize removes everything that a deleted Application has deployed, and then
// lets it go.
func (e *Engine) finalize(ctx context.Context, app *argo.Application) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(app, argo.ResourcesFinalizer) {
		return reconcile.Result{}, nil
	}
	left, err := e.removeResources(ctx, app)
	if err != nil {
		return reconcile.Result{}, err
	}
	if left > 0 {
		// Each one's end has the application looked at.
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	released := app.DeepCopy()
	controllerutil.RemoveFinalizer(released, argo.ResourcesFinalizer)
	return retry(e.client.Patch(ctx, released, client.MergeFromWithOptions(app, client.MergeFromWithOptimisticLock{})))
}

// removeResources deletes what is the application's own, and says how much of it is
// still there.
func (e *Engine) removeResources(ctx context.Context, app *argo.Application) (int, error) {
	if len(app.Status.Resources) == 0 {
		return 0, nil
	}
	project := &argo.AppProject{}
	err := client.IgnoreNotFound(e.client.Get(ctx, client.ObjectKey{Namespace: e.options.Namespace, Name: app.Spec.Project}, project))
	if err != nil {
		return 0, err
	}
	to, err := e.destinations.get(ctx, app, project)
	if errors.Is(err, errNoDestination) {
		// There is no way to the cluster any more, and so nothing that can be removed.
		e.options.Log.WarnContext(ctx, "the destination of a deleted application is not known any more; what it deployed stays", "application", app.Name)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	left := 0
	seen := map[watched]bool{}
	for _, r := range app.Status.Resources {
		mapping, err := to.mapping(schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind})
		if err != nil {
			continue
		}
		of := watched{mapping.Resource, r.Namespace}
		if seen[of] {
			continue
		}
		seen[of] = true
		informer, err := to.watched.open(ctx, of.resource, of.namespace)
		if err != nil {
			return left, err
		}
		ours, err := informer.GetIndexer().ByIndex(byApplication, app.Name)
		if err != nil {
			return left, err
		}
		for _, o := range ours {
			m := o.(*metav1.PartialObjectMetadata)
			if !owns(app.Name, mapping.GroupVersionKind.GroupKind(), m) {
				continue
			}
			left++
			if !m.DeletionTimestamp.IsZero() {
				continue
			}
			background := metav1.DeletePropagationBackground
			err := scoped(to.client, mapping, m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
				Preconditions: &metav1.Preconditions{UID: &m.UID}, PropagationPolicy: &background,
			})
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return left, fmt.Errorf("delete %s %s: %w", r.Kind, m.Name, err)
			}
		}
	}
	return left, nil
}
