// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// uidIndex finds a tenant's CR by its UID in the cache.
const uidIndex = "metadata.uid"

func indexUID(o client.Object) []string { return []string{string(o.GetUID())} }

// cluster is the tenants' cluster as the steps see it.
type cluster struct {
	cached client.Client
	live   client.Reader
}

// environmentIndex and deploymentIndex find those that name an environment, or a
// deployment.
const (
	environmentIndex = "spec.destination.environment"
	deploymentIndex  = "spec.gitopsDeploymentName"
)

func indexEnvironment(o client.Object) []string {
	return []string{o.(*v1alpha1.GitOpsDeployment).Spec.Destination.Environment}
}

func indexDeployment(o client.Object) []string {
	return []string{o.(*v1alpha1.GitOpsDeploymentSyncRun).Spec.GitopsDeploymentName}
}

func (c *cluster) Deployment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
	return get(ctx, c.cached, namespace, name, &v1alpha1.GitOpsDeployment{})
}

func (c *cluster) DeploymentNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
	return get(ctx, c.live, namespace, name, &v1alpha1.GitOpsDeployment{})
}

func (c *cluster) SyncRun(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentSyncRun, error) {
	return get(ctx, c.cached, namespace, name, &v1alpha1.GitOpsDeploymentSyncRun{})
}

func (c *cluster) SyncRunNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentSyncRun, error) {
	return get(ctx, c.live, namespace, name, &v1alpha1.GitOpsDeploymentSyncRun{})
}

func (c *cluster) DeleteSyncRun(ctx context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun) error {
	return client.IgnoreNotFound(c.cached.Delete(ctx, cr, client.Preconditions{UID: &cr.UID}))
}

func (c *cluster) Environment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error) {
	return get(ctx, c.cached, namespace, name, &v1alpha1.GitOpsDeploymentManagedEnvironment{})
}

func (c *cluster) EnvironmentNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error) {
	return get(ctx, c.live, namespace, name, &v1alpha1.GitOpsDeploymentManagedEnvironment{})
}

func (c *cluster) Credential(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error) {
	return get(ctx, c.cached, namespace, name, &v1alpha1.GitOpsDeploymentRepositoryCredential{})
}

func (c *cluster) CredentialNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error) {
	return get(ctx, c.live, namespace, name, &v1alpha1.GitOpsDeploymentRepositoryCredential{})
}

// Secret reads from the API server: Secrets are kept in no cache.
func (c *cluster) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	return get(ctx, c.live, namespace, name, &corev1.Secret{})
}

// get gives nil for an object that is not there.
func get[T client.Object](ctx context.Context, r client.Reader, namespace, name string, into T) (T, error) {
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		var none T
		return none, nil
	}
	return into, err
}

func (c *cluster) OlderDeployments(ctx context.Context, cr *v1alpha1.GitOpsDeployment) (int, error) {
	var list v1alpha1.GitOpsDeploymentList
	err := c.cached.List(ctx, &list, client.InNamespace(cr.Namespace), client.UnsafeDisableDeepCopy)
	return olderThan(cr, slices.Collect(pointers(list.Items))), err
}

func (c *cluster) OlderEnvironments(ctx context.Context, cr *v1alpha1.GitOpsDeploymentManagedEnvironment) (int, error) {
	var list v1alpha1.GitOpsDeploymentManagedEnvironmentList
	err := c.cached.List(ctx, &list, client.InNamespace(cr.Namespace), client.UnsafeDisableDeepCopy)
	return olderThan(cr, slices.Collect(pointers(list.Items))), err
}

func (c *cluster) OlderCredentials(ctx context.Context, cr *v1alpha1.GitOpsDeploymentRepositoryCredential) (int, error) {
	var list v1alpha1.GitOpsDeploymentRepositoryCredentialList
	err := c.cached.List(ctx, &list, client.InNamespace(cr.Namespace), client.UnsafeDisableDeepCopy)
	return olderThan(cr, slices.Collect(pointers(list.Items))), err
}

func pointers[T any](items []T) iter.Seq[*T] {
	return func(yield func(*T) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}

// olderThan counts the objects that are older than one. Those made within the
// same second are in the order of their UIDs, so that each has its place.
func olderThan[T client.Object](one client.Object, all []T) int {
	older := 0
	for _, o := range all {
		before, same := o.GetCreationTimestamp(), one.GetCreationTimestamp()
		if before.Before(&same) || before.Equal(&same) && o.GetUID() < one.GetUID() {
			older++
		}
	}
	return older
}

func (c *cluster) Namespace(ctx context.Context, name string) (kube.Namespace, error) {
	ns, err := kube.ReadNamespace(ctx, name, c.cached, c.live)
	if err == nil && ns.Terminating {
		// It may be gone and back under the same name by now, and the cache late.
		return kube.ReadNamespace(ctx, name, c.live)
	}
	return ns, err
}

func (c *cluster) Release(ctx context.Context, cr *v1alpha1.GitOpsDeployment) error {
	released := cr.DeepCopy()
	if !controllerutil.RemoveFinalizer(released, v1alpha1.DeletionFinalizer) {
		return nil
	}
	err := c.cached.Patch(ctx, released, client.MergeFromWithOptions(cr, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("remove the finalizer: %w", domain.ErrConflict)
	}
	return client.IgnoreNotFound(err)
}

// deploymentByUID finds the CR that an application stands for; false where it
// is gone.
func (c *cluster) deploymentByUID(ctx context.Context, id domain.ApplicationID) (*v1alpha1.GitOpsDeployment, bool) {
	var list v1alpha1.GitOpsDeploymentList
	if err := c.cached.List(ctx, &list, client.MatchingFields{uidIndex: string(id)}); err != nil || len(list.Items) == 0 {
		return nil, false
	}
	return &list.Items[0], true
}

// uidOf gives the UID of the CR under a name as the cache has it, empty where
// there is none.
func (c *cluster) uidOf(ctx context.Context, kind store.CRKind, namespace, name string) (string, error) {
	var cr client.Object
	switch kind {
	case store.KindSyncRun:
		cr = &v1alpha1.GitOpsDeploymentSyncRun{}
	case store.KindEnvironment:
		cr = &v1alpha1.GitOpsDeploymentManagedEnvironment{}
	default:
		cr = &v1alpha1.GitOpsDeploymentRepositoryCredential{}
	}
	found, err := get(ctx, c.cached, namespace, name, cr)
	if err != nil || found == nil {
		return "", err
	}
	return string(found.GetUID()), nil
}
