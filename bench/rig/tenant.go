// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
)

// AddTenant makes a namespace and a user who may use Weir in it, and nothing
// else. An administrator's requests would pass the API server's priority and
// fairness by, and no tenant is one.
func (r *Rig) AddTenant(ctx context.Context, namespace string) (client.Client, error) {
	user := "tenant-" + namespace
	if err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return nil, fmt.Errorf("create namespace: %w", err)
	}
	if err := r.Client.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tenant"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-tenant-edit"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}); err != nil {
		return nil, fmt.Errorf("give the tenant its role: %w", err)
	}
	config := rest.CopyConfig(r.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return client.New(config, client.Options{Scheme: kube.NewScheme(), Mapper: r.Client.RESTMapper()})
}
