// SPDX-License-Identifier: Apache-2.0

package operate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// localServer is how engines call the cluster that they run on.
const localServer = "https://kubernetes.default.svc"

// RenderApplication gives the engine's Application for a row. It is pure.
func RenderApplication(row store.Application, instance store.Instance) *argov1alpha1.Application {
	app := &argov1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: instance.Namespace,
			Name:      domain.EngineApplicationName(row.ID),
			Labels: map[string]string{
				argov1alpha1.TenantLabel:      string(row.Tenant),
				argov1alpha1.ApplicationLabel: string(row.ID),
			},
		},
		Spec: argov1alpha1.ApplicationSpec{
			Project: domain.EngineProjectName(row.Tenant),
			Source: &argov1alpha1.ApplicationSource{
				RepoURL:        row.Spec.RepoURL,
				Path:           row.Spec.Path,
				TargetRevision: row.Spec.TargetRevision,
			},
			Destination: destinationOf(row.Tenant, row.Environment, row.Spec.Namespace),
		},
	}
	if instance.Kind != store.EngineNone {
		app.Finalizers = []string{argov1alpha1.ResourcesFinalizer}
	}
	if row.Spec.Automated || len(row.Spec.SyncOptions) > 0 {
		app.Spec.SyncPolicy = &argov1alpha1.SyncPolicy{SyncOptions: row.Spec.SyncOptions}
	}
	if row.Spec.Automated {
		// An emptied path prunes nothing: that is more often an accident than a wish.
		app.Spec.SyncPolicy.Automated = &argov1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true, AllowEmpty: false}
	}
	return app
}
