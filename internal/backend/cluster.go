// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
)

// uidIndex finds a tenant's CR by its UID in the cache.
const uidIndex = "metadata.uid"

func indexUID(o client.Object) []string { return []string{string(o.GetUID())} }

// cluster is the tenants' cluster as the steps see it.
type cluster struct {
	cached client.Client
	live   client.Reader
}

func (c *cluster) Deployment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
	return getDeployment(ctx, c.cached, namespace, name)
}

func (c *cluster) DeploymentNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
	return getDeployment(ctx, c.live, namespace, name)
}

func getDeployment(ctx context.Context, r client.Reader, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
	cr := &v1alpha1.GitOpsDeployment{}
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, cr)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return cr, err
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
