// SPDX-License-Identifier: Apache-2.0

package deployer

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// plane is the test binary's control plane, started by the first that needs it.
var plane struct {
	once    sync.Once
	started *controlplane.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if plane.started != nil {
		if err := plane.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func newClient(t *testing.T) client.Client {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	plane.once.Do(func() { plane.started, plane.err = controlplane.Start(context.WithoutCancel(t.Context())) })
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	c, err := client.New(plane.started.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func create(t *testing.T, c client.Client, o client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

func TestCheck(t *testing.T) {
	c := newClient(t)
	for name, test := range map[string]struct {
		rules []rbacv1.PolicyRule
		says  string
	}{
		"good":        {[]rbacv1.PolicyRule{rule("", "configmaps", "*"), rule("apps", "deployments", "create", "delete")}, ""},
		"empty":       {nil, ""},
		"reads-roles": {[]rbacv1.PolicyRule{rule(rbacv1.GroupName, "roles", "get", "list", "watch")}, ""},
		"binds":       {[]rbacv1.PolicyRule{rule("", "pods", "get"), rule(rbacv1.GroupName, "roles", "bind")}, "apiGroups [rbac.authorization.k8s.io], resources [roles]"},
		"everything":  {[]rbacv1.PolicyRule{rule("*", "*", "*")}, "apiGroups [*], resources [*]"},
		"all-groups":  {[]rbacv1.PolicyRule{rule("*", "rolebindings", "create")}, "apiGroups [*], resources [rolebindings]"},
	} {
		t.Run(name, func(t *testing.T) {
			create(t, c, role("check-"+name, test.rules...))
			err := (&Accounts{Client: c, Live: c, Role: "check-" + name}).Check(t.Context())
			switch {
			case test.says == "" && err != nil:
				t.Error(err)
			case test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "--deployer-role")):
				t.Errorf("got %v; want that it names %s", err, test.says)
			}
		})
	}
	err := (&Accounts{Client: c, Live: c, Role: "nobody-made-it"}).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ClusterRole nobody-made-it") || !strings.Contains(err.Error(), "weir crds install") {
		t.Errorf("got %v", err)
	}
}

func binding(t *testing.T, c client.Client, namespace string) *rbacv1.RoleBinding {
	t.Helper()
	have := &rbacv1.RoleBinding{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: domain.DeployerServiceAccount}, have); err != nil {
		t.Fatal(err)
	}
	return have
}

func TestEnsure(t *testing.T) {
	c := newClient(t)
	create(t, c, role("ensure-first", rule("", "configmaps", "*")))
	create(t, c, role("ensure-second", rule("", "configmaps", "get")))
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ensure"}})
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	want := func(role string) (rbacv1.RoleRef, []rbacv1.Subject) {
		return rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: role},
			[]rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ensure", Name: "weir-deployer"}}
	}
	ensure := func(role string) *rbacv1.RoleBinding {
		t.Helper()
		// A process that remembers nothing.
		a := &Accounts{Client: c, Live: c, Role: role}
		for range 2 {
			if err := a.Ensure(t.Context(), "tenant", "ensure"); err != nil {
				t.Fatal(err)
			}
		}
		have := binding(t, c, "ensure")
		ref, subjects := want(role)
		if diff := cmp.Diff(ref, have.RoleRef) + cmp.Diff(subjects, have.Subjects); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if have.Labels["app.kubernetes.io/managed-by"] != "weir" {
			t.Errorf("labels %v", have.Labels)
		}
		return have
	}
	first := ensure("ensure-first")
	if again := ensure("ensure-first"); again.UID != first.UID {
		t.Error("a binding that was right was replaced")
	}
	account := &corev1.ServiceAccount{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "ensure", Name: "weir-deployer"}, account); err != nil {
		t.Error(err)
	}
	// Somebody adds himself: the binding is ours, and is put right.
	first = binding(t, c, "ensure")
	first.Subjects = append(first.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"})
	if err := c.Update(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	ensure("ensure-first")
	// A role cannot be changed in place.
	if second := ensure("ensure-second"); second.UID == first.UID {
		t.Error("the binding was not replaced")
	}
	accounts := &corev1.ServiceAccountList{}
	if err := c.List(t.Context(), accounts, client.InNamespace("other"), client.MatchingLabels{managedByLabel: managedByWeir}); err != nil || len(accounts.Items) != 0 {
		t.Errorf("accounts in another namespace: %v, %v", accounts.Items, err)
	}
}

func TestEnsureRemembers(t *testing.T) {
	c := newClient(t)
	create(t, c, role("remember", rule("", "configmaps", "*")))
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "remember"}})
	a := &Accounts{Client: c, Live: c, Role: "remember"}
	if err := a.Ensure(t.Context(), "absent", "no-such-namespace"); err == nil {
		t.Error("no error for a namespace that is not there")
	}
	if err := a.Ensure(t.Context(), "tenant", "remember"); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), binding(t, c, "remember")); err != nil {
		t.Fatal(err)
	}
	// A namespace made again is another tenant, for whom nothing is remembered.
	if err := a.Ensure(t.Context(), "another tenant", "remember"); err != nil {
		t.Fatal(err)
	}
	binding(t, c, "remember")
}
