// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/testkit"
)

// user gives a client that acts as somebody who has a role in one namespace.
func user(t *testing.T, name, namespace, role string) client.Client {
	t.Helper()
	admin := administrator(t)
	must(t, admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}},
	}))
	config := rest.CopyConfig(cluster.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: []string{"system:authenticated"}}
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	must(t, err)
	return c
}

func administrator(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	must(t, err)
	return c
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Whoever may edit or view a namespace may do so with the tenant kinds in it,
// and in no other.
func TestRolesOfTenants(t *testing.T) {
	admin := administrator(t)
	own, other := "roles-own", "roles-other"
	for _, name := range []string{own, other} {
		must(t, admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		t.Cleanup(func() { removeAll(t, name) })
	}
	editor, viewer := user(t, "editor", own, "edit"), user(t, "viewer", own, "view")
	testkit.Eventually(t, "an editor creates", func() string {
		return said(editor.Create(t.Context(), testkit.Deployment(own, "one")))
	})
	testkit.Eventually(t, "a viewer lists", func() string {
		return said(viewer.List(t.Context(), &v1alpha1.GitOpsDeploymentList{}, client.InNamespace(own)))
	})
	for what, err := range map[string]error{
		"an editor creates in another namespace": editor.Create(t.Context(), testkit.Deployment(other, "one")),
		"an editor lists another namespace":      editor.List(t.Context(), &v1alpha1.GitOpsDeploymentList{}, client.InNamespace(other)),
		"a viewer creates":                       viewer.Create(t.Context(), testkit.Deployment(own, "two")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v, want forbidden", what, err)
		}
	}
}

func said(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// A schema that names a level which is not there is accepted and does nothing,
// so that it exists is not enough.
func TestFlowSchemasAreInForce(t *testing.T) {
	admin := administrator(t)
	for _, name := range []string{"weir-tenants", "weir-service"} {
		testkit.Eventually(t, "FlowSchema "+name, func() string {
			schema := &flowcontrolv1.FlowSchema{}
			if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, schema); err != nil {
				return err.Error()
			}
			for _, c := range schema.Status.Conditions {
				if c.Type == flowcontrolv1.FlowSchemaConditionDangling && c.Status == flowcontrolv1.ConditionFalse {
					return ""
				}
			}
			return fmt.Sprintf("not in force: %+v", schema.Status.Conditions)
		})
	}
}
