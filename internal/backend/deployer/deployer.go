// SPDX-License-Identifier: Apache-2.0

// Package deployer keeps, in each tenant's namespace, the service account as
// which engines deploy into it. What the tenant's repository holds can then do no
// more in the cluster than that account may: the cluster itself holds the line,
// whatever an engine gets wrong.
package deployer

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
)

// DefaultRole is the ClusterRole that is installed with Weir.
const DefaultRole = "weir-deployer"

// managedBy marks what Weir has made in a tenant's namespace.
const (
	managedByLabel = "app.kubernetes.io/managed-by"
	managedByWeir  = "weir"
)

// Accounts makes the accounts, once for each tenant.
type Accounts struct {
	Client client.Client
	// Live reads past the cache, which holds none of these kinds.
	Live client.Reader
	// Role is the ClusterRole that the accounts have within their namespace.
	Role string

	made sync.Map // domain.TenantID → struct{}
}

// Check refuses to go on without the role: the accounts would exist and could do
// nothing, or, with a role that somebody creates later under that name, anything.
func (a *Accounts) Check(ctx context.Context) error {
	role := &rbacv1.ClusterRole{}
	err := a.Live.Get(ctx, client.ObjectKey{Name: a.Role}, role)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("isolation is half configured: the ClusterRole %s, as which engines deploy into tenants' namespaces, does not exist; install it with: weir crds install, or name another with --deployer-role", a.Role)
	}
	if err != nil {
		return fmt.Errorf("look for ClusterRole %s: %w", a.Role, err)
	}
	for _, rule := range role.Rules {
		if escalates(rule) {
			return fmt.Errorf("isolation is half configured: the ClusterRole %s lets tenants' repositories change roles (apiGroups %v, resources %v); take that out, or name another with --deployer-role", a.Role, rule.APIGroups, rule.Resources)
		}
	}
	return nil
}

// escalates says whether a rule lets its holder give itself more.
func escalates(r rbacv1.PolicyRule) bool {
	group, writes := false, false
	for _, g := range r.APIGroups {
		group = group || g == "*" || g == rbacv1.GroupName
	}
	for _, v := range r.Verbs {
		writes = writes || (v != "get" && v != "list" && v != "watch")
	}
	return group && writes
}

// Ensure makes the account of a tenant and gives it its role.
func (a *Accounts) Ensure(ctx context.Context, t domain.TenantID, namespace string) error {
	if _, made := a.made.Load(t); made {
		return nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: a.meta(namespace)}
	if err := a.Client.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create the deployer's service account: %w", err)
	}
	if err := a.bind(ctx, namespace); err != nil {
		return err
	}
	a.made.Store(t, struct{}{})
	return nil
}

func (a *Accounts) meta(namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: domain.DeployerServiceAccount, Labels: map[string]string{managedByLabel: managedByWeir},
	}
}

func (a *Accounts) bind(ctx context.Context, namespace string) error {
	want := &rbacv1.RoleBinding{
		ObjectMeta: a.meta(namespace),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: a.Role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: domain.DeployerServiceAccount}},
	}
	err := a.Client.Create(ctx, want.DeepCopy())
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("bind the deployer's role: %w", err)
		}
		return nil
	}
	have := &rbacv1.RoleBinding{}
	if err := a.Live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return fmt.Errorf("read the deployer's role binding: %w", err)
	}
	if have.RoleRef == want.RoleRef {
		have.Subjects, have.Labels = want.Subjects, want.Labels
		return client.IgnoreNotFound(a.Client.Update(ctx, have))
	}
	// A role cannot be changed in place.
	if err := client.IgnoreNotFound(a.Client.Delete(ctx, have, client.Preconditions{UID: &have.UID})); err != nil {
		return fmt.Errorf("replace the deployer's role binding: %w", err)
	}
	return kube.AsConflict(a.Client.Create(ctx, want))
}
