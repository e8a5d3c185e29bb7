// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/store"
)

// Where Argo CD keeps its settings, and the one without which it deploys as
// itself, whoever's the repository is.
const (
	argoSettings       = "argocd-cm"
	impersonationField = "application.sync.impersonation.enabled"
)

// checkIsolation refuses an Argo CD that does not deploy as the tenant. The
// project alone would then be all that keeps tenants apart.
func checkIsolation(ctx context.Context, r client.Reader, namespace string, kind store.EngineKind) error {
	if kind != store.EngineArgoCD {
		return nil
	}
	settings := &corev1.ConfigMap{}
	err := r.Get(ctx, client.ObjectKey{Namespace: namespace, Name: argoSettings}, settings)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("isolation is half configured: namespace %s has no ConfigMap %s, so Argo CD is not there, or not set up to deploy as the tenant; install it, and set %s to \"true\" in that ConfigMap", namespace, argoSettings, impersonationField)
	case err != nil:
		return fmt.Errorf("read Argo CD's settings: %w", err)
	case settings.Data[impersonationField] != "true":
		return fmt.Errorf("isolation is half configured: Argo CD in namespace %s deploys as itself, not as the tenant; set %s to \"true\" in its ConfigMap %s", namespace, impersonationField, argoSettings)
	}
	return nil
}

// ArgoSettings is a ConfigMap with which checkIsolation is content: for stand-ins
// of Argo CD.
func ArgoSettings(namespace string) *corev1.ConfigMap {
	settings := &corev1.ConfigMap{Data: map[string]string{impersonationField: "true"}}
	settings.Namespace, settings.Name = namespace, argoSettings
	return settings
}
