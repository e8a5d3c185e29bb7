// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

const canary = "canary-2e9d47"

// powerless is the token of a service account without any rights.
func powerless(t *testing.T, api kubernetes.Interface, name string) string {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	if _, err := api.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := api.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// refused checks a refusal's reason and words, and that no token is among them.
func refused(t *testing.T, err error, reason v1alpha1.ConditionReason, words string, tokens ...string) {
	t.Helper()
	var p *Problem
	if !errors.As(err, &p) {
		t.Fatalf("got %v; want words for the tenant", err)
	}
	if p.Reason != reason || !strings.Contains(p.Message, words) {
		t.Errorf("got %s: %s\nwant %s: …%s…", p.Reason, p.Message, reason, words)
	}
	for _, token := range append(tokens, canary) {
		if strings.Contains(p.Message, token) {
			t.Errorf("%q holds a token", p.Message)
		}
	}
}

func TestConnect(t *testing.T) {
	admin, api := administrator(t)
	namespaces(t, api, "connect-a")
	for name, to := range map[string]Cluster{
		"everywhere": {Access: admin}, "in one namespace": {Access: admin, Namespaces: []string{"connect-a"}},
	} {
		got, err := onLoopback(t).Connect(t.Context(), to)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got.ServiceAccount != "" || !got.Expires.IsZero() || got.Access.Token != admin.Token || got.Access.Server != admin.Server {
			t.Errorf("%s: got %+v; want the given access", name, got)
		}
	}
}

func TestConnectIsRefusedInWords(t *testing.T) {
	admin, api := administrator(t)
	weak := powerless(t, api, "weak")
	strange := as(admin, canary)
	strange.CAData = nil
	const invalid = v1alpha1.ReasonUnableToValidateClusterCredentials
	for name, c := range map[string]struct {
		to     Cluster
		reason v1alpha1.ConditionReason
		words  string
	}{
		"wrong token":          {Cluster{Access: as(admin, canary)}, invalid, admin.Server + " does not accept the credentials"},
		"no rights":            {Cluster{Access: as(admin, weak)}, invalid, "lack the permission to list namespaces on " + admin.Server},
		"no rights in one":     {Cluster{Access: as(admin, weak), Namespaces: []string{"default"}}, v1alpha1.ReasonInvalidNamespaceList, "lack the permission to list pods in namespace default"},
		"unknown authority":    {Cluster{Access: strange}, invalid, "is not signed by a known authority for that host"},
		"no rights to install": {Cluster{Access: as(admin, weak), Account: "weir-weak"}, invalid, "lack the permission to list namespaces"},
		"unreadable authority": {Cluster{Access: kubeconfig.Access{Server: admin.Server, CAData: []byte(canary), Token: canary}}, v1alpha1.ReasonUnableToCreateClient, "check its certificates"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := onLoopback(t).Connect(t.Context(), c.to)
			refused(t, err, c.reason, c.words, weak)
		})
	}
}

// Who may look but not make accounts is told what is lacking.
func TestConnectWithoutTheRightToMakeAnAccount(t *testing.T) {
	admin, api := administrator(t)
	token := powerless(t, api, "looker")
	if _, err := api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "looker"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "looker"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	to := Cluster{Access: as(admin, token), Namespaces: []string{"default"}}
	eventually(t, "the looker may look", func() bool {
		_, err := onLoopback(t).Connect(t.Context(), to)
		return err == nil
	})
	to.Account = "weir-looker"
	_, err := onLoopback(t).Connect(t.Context(), to)
	refused(t, err, v1alpha1.ReasonUnableToInstallServiceAccount, "they need the rights of a cluster administrator, or set spec.createNewServiceAccount to false", token)
}

func TestConnectToNobody(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	to := func(l net.Listener) Cluster {
		return Cluster{Access: kubeconfig.Access{Server: "https://" + l.Addr().String(), Token: canary}}
	}
	const invalid = v1alpha1.ReasonUnableToValidateClusterCredentials

	hasty := clusters(t, tenantnet.Policy{AllowLoopback: true})
	hasty.Timeout = 200 * time.Millisecond
	_, err = hasty.Connect(t.Context(), to(silent))
	refused(t, err, invalid, "did not answer in time; this will be tried again")

	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err = clusters(t, tenantnet.Policy{AllowLoopback: true}).Connect(ctx, to(silent))
	refused(t, err, invalid, "did not answer in time")

	_, err = clusters(t, tenantnet.Policy{AllowLoopback: true}).Connect(t.Context(), to(closed))
	refused(t, err, invalid, "cannot be reached, or does not answer like a Kubernetes API server")

	_, err = clusters(t, tenantnet.Policy{}).Connect(t.Context(), to(silent))
	refused(t, err, v1alpha1.ReasonUnsupportedAPIURL, "spec.apiURL: ")
}

// clientOf is a client with an account's own access.
func clientOf(t *testing.T, a kubeconfig.Access) kubernetes.Interface {
	t.Helper()
	api, done, err := onLoopback(t).client(a)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(done)
	return api
}

func mayList(t *testing.T, api kubernetes.Interface, namespace string) bool {
	t.Helper()
	_, err := api.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil && !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	return err == nil
}

func TestAnAccountIsMadeOnceWithLittle(t *testing.T) {
	admin, api := administrator(t)
	namespaces(t, api, "account-a", "account-b")
	to := Cluster{Access: admin, Namespaces: []string{"account-a"}, Account: "weir-little"}
	got, err := onLoopback(t).Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if got.ServiceAccount != "kube-system/weir-little" || got.Access.Token == "" || got.Access.ClientCert != nil || got.Access.ClientKey != nil {
		t.Errorf("got %+v", got)
	}
	if left := time.Until(got.Expires); left < 23*time.Hour || left > 25*time.Hour {
		t.Errorf("the token ends in %s", left)
	}
	own := clientOf(t, got.Access)
	eventually(t, "the account may work in its namespace", func() bool { return mayList(t, own, "account-a") })
	for _, namespace := range []string{"account-b", "kube-system", metav1.NamespaceAll} {
		if mayList(t, own, namespace) {
			t.Errorf("the account may list Secrets in %q", namespace)
		}
	}
	role := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "greedy"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	if _, err := own.RbacV1().ClusterRoleBindings().Create(t.Context(), role, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the account binds cluster-admin: %v", err)
	}

	before, err := api.CoreV1().ServiceAccounts("kube-system").Get(t.Context(), "weir-little", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// Once more, for another namespace: the account is the same, its rights move.
	to.Namespaces = []string{"account-b"}
	again, err := onLoopback(t).Connect(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	if again.Access.Token == got.Access.Token {
		t.Error("no new token was given")
	}
	after, err := api.CoreV1().ServiceAccounts("kube-system").Get(t.Context(), "weir-little", metav1.GetOptions{})
	if err != nil || after.UID != before.UID {
		t.Errorf("the account was made again: %v", err)
	}
	eventually(t, "the account's rights have moved", func() bool {
		return mayList(t, own, "account-b") && !mayList(t, own, "account-a")
	})
}

func TestAnAccountForAllNamespaces(t *testing.T) {
	admin, _ := administrator(t)
	got, err := onLoopback(t).Connect(t.Context(), Cluster{Access: admin, Account: "weir-wide"})
	if err != nil {
		t.Fatal(err)
	}
	own := clientOf(t, got.Access)
	eventually(t, "the account may work everywhere", func() bool { return mayList(t, own, metav1.NamespaceAll) })
}

// left lists what is left of an account on the cluster.
func left(t *testing.T, api kubernetes.Interface, account string) []string {
	t.Helper()
	var all []string
	note := func(what string, err error) {
		if err == nil {
			all = append(all, what)
		} else if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	_, err := api.RbacV1().ClusterRoleBindings().Get(t.Context(), account, metav1.GetOptions{})
	note("ClusterRoleBinding", err)
	_, err = api.RbacV1().ClusterRoles().Get(t.Context(), account, metav1.GetOptions{})
	note("ClusterRole", err)
	_, err = api.CoreV1().ServiceAccounts(accountNamespace).Get(t.Context(), account, metav1.GetOptions{})
	note("ServiceAccount", err)
	_, err = api.RbacV1().RoleBindings("remove-a").Get(t.Context(), account, metav1.GetOptions{})
	note("RoleBinding", err)
	_, err = api.RbacV1().Roles("remove-a").Get(t.Context(), account, metav1.GetOptions{})
	note("Role", err)
	return all
}

func TestRemoveTakesAllAway(t *testing.T) {
	admin, api := administrator(t)
	namespaces(t, api, "remove-a")
	const account = "weir-removed"
	got, err := onLoopback(t).Connect(t.Context(), Cluster{Access: admin, Namespaces: []string{"remove-a"}, Account: account})
	if err != nil {
		t.Fatal(err)
	}
	if all := left(t, api, account); !slices.Equal(all, []string{"ClusterRoleBinding", "ClusterRole", "ServiceAccount", "RoleBinding", "Role"}) {
		t.Fatalf("made %v", all)
	}
	// With its own credentials, which need a moment to count.
	eventually(t, "the account takes itself away", func() bool {
		err := onLoopback(t).Remove(t.Context(), got.Access, account)
		if err != nil && !apierrors.IsForbidden(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	eventually(t, "nothing of it is left", func() bool { return len(left(t, api, account)) == 0 })
	if err := onLoopback(t).Remove(t.Context(), admin, account); err != nil {
		t.Errorf("removing what is gone: %v", err)
	}
}

// An environment that goes back to the given credentials leaves no account behind.
func TestAFormerAccountIsTakenAway(t *testing.T) {
	admin, api := administrator(t)
	namespaces(t, api, "remove-a")
	const account = "weir-former"
	if _, err := onLoopback(t).Connect(t.Context(), Cluster{Access: admin, Account: account}); err != nil {
		t.Fatal(err)
	}
	got, err := onLoopback(t).Connect(t.Context(), Cluster{Access: admin, Former: account})
	if err != nil || got.ServiceAccount != "" {
		t.Fatalf("got %+v, %v", got, err)
	}
	eventually(t, "nothing of it is left", func() bool { return len(left(t, api, account)) == 0 })
}
