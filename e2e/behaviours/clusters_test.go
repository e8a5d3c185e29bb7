// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

// access is as whom an engine connects to a cluster, in its Secret.
type access struct {
	Token string `json:"bearerToken"`
	TLS   struct {
		Insecure bool   `json:"insecure"`
		CAData   []byte `json:"caData"`
	} `json:"tlsClientConfig"`
}

// awaitAccess waits for the engine's Secret of an environment and reads it.
func (w *world) awaitAccess(e *v1alpha1.GitOpsDeploymentManagedEnvironment) access {
	w.Helper()
	var read access
	testkit.Eventually(w.T, "the engine's Secret for "+e.Name, func() string {
		s := w.clusterSecret(e)
		if s == nil {
			return "none"
		}
		read = access{}
		return said(json.Unmarshal(s.Data["config"], &read))
	})
	return read
}

// as is the cluster seen by whoever has a token.
func (w *world) as(token string) client.Client {
	w.Helper()
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = token
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	w.must(err)
	return c
}

func (w *world) editEnvironment(e *v1alpha1.GitOpsDeploymentManagedEnvironment, change func(*v1alpha1.GitOpsDeploymentManagedEnvironmentSpec)) {
	w.Helper()
	for {
		latest := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(e), latest))
		change(&latest.Spec)
		err := w.api.Update(w.ctx, latest)
		if apierrors.IsConflict(err) {
			continue
		}
		w.must(err)
		return
	}
}

// project reads a tenant's AppProject, nil where there is none.
func (w *world) project(namespace string) *argov1alpha1.AppProject {
	w.Helper()
	p := &argov1alpha1.AppProject{}
	name := domain.EngineProjectName(domain.TenantID(w.namespaceUID(namespace)))
	err := w.api.Get(w.ctx, client.ObjectKey{Namespace: w.EngineNamespace, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return p
}

// accountOf reads the service account that was made for an environment, nil where
// there is none.
func (w *world) accountOf(e *v1alpha1.GitOpsDeploymentManagedEnvironment) *corev1.ServiceAccount {
	w.Helper()
	sa := &corev1.ServiceAccount{}
	err := w.api.Get(w.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "weir-" + string(e.UID)}, sa)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return sa
}

// awaitNoAccount waits until nothing of an environment's account is on the cluster.
func (w *world) awaitNoAccount(e *v1alpha1.GitOpsDeploymentManagedEnvironment) {
	w.Helper()
	testkit.Eventually(w.T, "the account goes", func() string {
		if w.accountOf(e) != nil {
			return "the account is there"
		}
		for _, list := range []client.ObjectList{&rbacv1.ClusterRoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.RoleList{}} {
			w.must(w.api.List(w.ctx, list))
			for _, o := range items(list) {
				if o.GetName() == "weir-"+string(e.UID) {
					return fmt.Sprintf("a %T is there", o)
				}
			}
		}
		return ""
	})
}

// deafListener accepts connections and never answers.
type deafListener struct {
	net.Listener
	mu       sync.Mutex
	accepted []net.Conn
}

func newDeafListener(t *testing.T) *deafListener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	l := &deafListener{Listener: listener}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			l.mu.Lock()
			l.accepted = append(l.accepted, conn)
			l.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		running.Wait()
		for _, conn := range l.accepted {
			_ = conn.Close()
		}
	})
	return l
}

func (l *deafListener) connections() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// elsewhere gives an environment another server than the cluster under test.
func (w *world) elsewhere(namespace, name, server string) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	w.Helper()
	w.secret(namespace, name, v1alpha1.ManagedEnvironmentSecretType, map[string][]byte{"kubeconfig": fmt.Appendf(nil, `
clusters: [{name: c, cluster: {server: %q}}]
users: [{name: u, user: {token: x}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
`, server)})
	return w.environment(namespace, name, name, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.APIURL = server })
}

// ownNamespaceOnly makes a service account that may do everything in one namespace.
func (w *world) ownNamespaceOnly(namespace string) string {
	w.Helper()
	token := w.account(namespace, "owner", "")
	w.must(w.api.Create(w.ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owner"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "owner"}},
	}))
	return token
}

func Test36_TwoTenantsOnOneClusterKeepToThemselves(t *testing.T) {
	each(t, func(w *world) {
		type tenant struct {
			namespace, remote, token string
			environment              *v1alpha1.GitOpsDeploymentManagedEnvironment
		}
		var both []tenant
		servers := map[string]bool{}
		for range 2 {
			x := tenant{namespace: w.tenant(), remote: w.tenant()}
			x.token = w.ownNamespaceOnly(x.remote)
			w.environmentSecret(x.namespace, "staging", kubeconfigWith(w.T, x.token))
			x.environment = w.environment(x.namespace, "staging", "staging", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.Namespaces = []string{x.remote} })
			w.awaitConnection(x.environment, v1alpha1.ReasonSucceeded)
			w.awaitAt(w.deployed(x.namespace, "shop", to(x.environment, x.remote)), x.environment, x.remote)
			both = append(both, x)
		}
		for i, own := range both {
			other := both[1-i]
			if got := w.awaitAccess(own.environment).Token; got != own.token {
				t.Error("the engine's Secret does not hold the tenant's own token")
			}
			secret := w.clusterSecret(own.environment)
			servers[string(secret.Data["server"])] = true
			if got, want := string(secret.Data["project"]), w.project(own.namespace).Name; got != want {
				t.Errorf("the Secret is for project %s, not %s", got, want)
			}
			for _, d := range w.project(own.namespace).Spec.Destinations {
				if d.Name != secret.Name || d.Namespace != own.remote {
					t.Errorf("the project allows %+v", d)
				}
			}
			api := w.as(own.token)
			testkit.Eventually(w.T, "the tenant deploys to its own namespace", func() string {
				return said(client.IgnoreAlreadyExists(api.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: own.remote, Name: "mine"}})))
			})
			if err := api.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: other.remote, Name: "theirs"}}); !apierrors.IsForbidden(err) {
				t.Errorf("with its token a tenant reaches the other's namespace: %v", err)
			}
			d := w.create(testkit.Deployment(own.namespace, "thief", to(own.environment, other.remote)))
			w.awaitStatus(d, "refused", shows(v1alpha1.ConditionErrorOccurred, "spec.destination.namespace"))
			if w.application(d) != nil {
				t.Error("it was deployed")
			}
		}
		if len(servers) != 2 {
			t.Errorf("the two clusters cannot be told apart: %v", servers)
		}
	})
}

func Test37_TheServiceAccountIsMadeOnceAndGoesWithTheEnvironment(t *testing.T) {
	each(t, func(w *world) {
		ns, remote, other := w.tenant(), w.tenant(), w.tenant()
		given := w.account(ns, "me", "cluster-admin")
		w.environmentSecret(ns, "staging", kubeconfigWith(w.T, given))
		e := w.environment(ns, "staging", "staging", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) {
			s.CreateNewServiceAccount, s.Namespaces = true, []string{remote, other}
		})
		w.awaitConnection(e, v1alpha1.ReasonSucceeded)
		token := w.awaitAccess(e).Token
		if token == given {
			t.Fatal("the given token is used")
		}
		made := w.accountOf(e)
		if made == nil {
			t.Fatal("there is no account")
		}

		w.awaitQuiet()
		w.StopBackend()
		w.StartBackend()
		no := false
		w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.AllowAutomatedDeployments = &no })
		testkit.Eventually(w.T, "the edit is taken in", func() string {
			return zero(w.count("SELECT count(*) FROM managed_environment WHERE id = $1 AND allow_automated", string(e.UID)))
		})
		w.awaitQuiet()
		if again := w.accountOf(e); again == nil || again.UID != made.UID || w.awaitAccess(e).Token != token {
			t.Error("another account or token after a restart and an edit")
		}

		api := w.as(token)
		put := func(namespace, name string) error {
			return client.IgnoreAlreadyExists(api.Create(w.ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
		}
		testkit.Eventually(w.T, "the token works", func() string { return said(put(remote, "one")) + said(put(other, "one")) })
		for what, err := range map[string]error{
			"in another namespace":       put(ns, "one"),
			"in kube-system":             put(metav1.NamespaceSystem, "one"),
			"another's Secrets":          api.List(w.ctx, &corev1.SecretList{}, client.InNamespace(ns)),
			"without a namespace":        api.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "more"}}),
			"a role for itself":          api.Create(w.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "more"}}),
			"another's role":             api.Delete(w.ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "cluster-admin"}}),
			"its own role, to change it": api.Update(w.ctx, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: made.Name}}),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("the account may more than it needs, %s: %v", what, err)
			}
		}

		w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.Namespaces = []string{remote} })
		testkit.Eventually(w.T, "it loses the namespace that is not listed any more", func() string {
			if err := put(other, "two"); !apierrors.IsForbidden(err) {
				return fmt.Sprint(err)
			}
			return ""
		})
		w.awaitQuiet()
		w.must(w.api.Delete(w.ctx, e))
		w.awaitNoAccount(e)
		w.awaitNoSecret(e)
		w.awaitQuiet()
	})
}

func TestTheServiceAccountGoesWhenItIsNotWantedAnyMore(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		given := w.account(ns, "me", "cluster-admin")
		w.environmentSecret(ns, "staging", kubeconfigWith(w.T, given))
		e := w.environment(ns, "staging", "staging", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.CreateNewServiceAccount = true })
		w.awaitConnection(e, v1alpha1.ReasonSucceeded)
		if w.awaitAccess(e).Token == given {
			t.Fatal("the given token is used")
		}
		w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.CreateNewServiceAccount = false })
		testkit.Eventually(w.T, "the given token is used", func() string {
			if w.awaitAccess(e).Token != given {
				return "the account's"
			}
			return ""
		})
		w.awaitNoAccount(e)
	})
}

func Test38_AClusterThatNeverAnswersKeepsNobodyElseWaiting(t *testing.T) {
	each(t, func(w *world) {
		mine, yours := w.tenant(), w.tenant()
		deaf := newDeafListener(t)
		began := time.Now()
		dead := w.elsewhere(mine, "dead", "https://"+deaf.Addr().String())
		waits := w.create(testkit.Deployment(mine, "waits", to(dead, "apps")))
		testkit.Eventually(w.T, "it is being asked", func() string { return zero(1 - min(1, deaf.connections())) })

		goes := w.deployed(mine, "goes", to(w.connected(mine, "live"), "apps"))
		w.deployed(yours, "goes", to(w.connected(yours, "live"), "apps"))
		local := w.deployed(mine, "local")
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the others took %s", took)
		}
		w.awaitStatus(waits, "its own waits", shows(v1alpha1.ConditionErrorOccurred, "GitOpsDeploymentManagedEnvironment dead", "is not connected"))
		w.awaitConnection(dead, v1alpha1.ReasonUnableToValidateClusterCredentials, "did not answer in time", deaf.Addr().String())
		if took := time.Since(began); took > 25*time.Second {
			t.Errorf("the timeout was reported after %s", took)
		}
		for _, d := range []*v1alpha1.GitOpsDeployment{goes, local} {
			if c := condition(w.get(d), v1alpha1.ConditionErrorOccurred); c.Status == metav1.ConditionTrue {
				t.Errorf("%s: %s", d.Name, c.Message)
			}
		}
		if w.application(waits) != nil {
			t.Error("what waits was deployed")
		}
	})
}

func TestNamespacesAndClusterResourcesReachTheEngine(t *testing.T) {
	each(t, func(w *world) {
		ns, remote := w.tenant(), w.tenant()
		w.environmentSecret(ns, "staging", kubeconfigWith(w.T, w.account(ns, "me", "cluster-admin")))
		e := w.environment(ns, "staging", "staging", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) {
			s.Namespaces, s.ClusterResources = []string{remote, ns}, true
		})
		w.awaitConnection(e, v1alpha1.ReasonSucceeded)
		w.awaitAt(w.deployed(ns, "shop", to(e, remote)), e, remote)
		outside := w.create(testkit.Deployment(ns, "outside", to(e, "elsewhere")))
		w.awaitStatus(outside, "refused", shows(v1alpha1.ConditionErrorOccurred, "spec.destination.namespace", "staging", "spec.namespaces"))
		if w.application(outside) != nil {
			t.Error("it was deployed")
		}
		check := func(namespaces, clusterResources string, kinds int) {
			t.Helper()
			testkit.Eventually(w.T, "Secret and project", func() string {
				data, spec := w.clusterSecret(e).Data, w.project(ns).Spec
				if string(data["namespaces"]) != namespaces || string(data["clusterResources"]) != clusterResources {
					return fmt.Sprintf("the Secret has %q and %q", data["namespaces"], data["clusterResources"])
				}
				if len(spec.ClusterResourceWhitelist) != kinds || len(spec.Destinations) != 1 || spec.Destinations[0].Namespace != remote {
					return fmt.Sprintf("the project has %+v", spec)
				}
				return ""
			})
		}
		sorted := slices.Sorted(slices.Values([]string{ns, remote}))
		check(sorted[0]+","+sorted[1], "true", 1)
		w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) {
			s.Namespaces, s.ClusterResources = []string{remote}, false
		})
		check(remote, "false", 0)
		w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.Namespaces = []string{remote, "elsewhere"} })
		w.awaitApplication(outside)
		w.awaitStatus(outside, "resolved", resolved(v1alpha1.ConditionErrorOccurred))
	})
}

func TestAutomatedOnlyWhereTheEnvironmentAllowsIt(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		e := w.connected(ns, "staging")
		d := w.deployed(ns, "shop", to(e, "apps"))
		for _, allowed := range []bool{true, false, true} {
			w.editEnvironment(e, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.AllowAutomatedDeployments = &allowed })
			testkit.Eventually(w.T, fmt.Sprintf("automated is %t", allowed), func() string {
				policy := w.application(d).Spec.SyncPolicy
				if (policy != nil && policy.Automated != nil) != allowed {
					return fmt.Sprintf("%+v", policy)
				}
				return ""
			})
		}
		if local := w.deployed(ns, "local"); local.Spec.Type == v1alpha1.DeploymentTypeAutomated && w.application(local).Spec.SyncPolicy == nil {
			t.Error("a deployment elsewhere is held to it as well")
		}
	})
}

func TestDeniedAddressesOfClustersGetNoPacket(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		deaf := newDeafListener(t)
		for i, server := range []string{
			"https://" + deaf.Addr().String(), "https://internal.example.com:" + port(deaf), "https://both.example.com:" + port(deaf), "https://[::ffff:127.0.0.1]:" + port(deaf),
			"https://169.254.169.254", "https://10.0.0.1:6443", "https://[fd00::1]:6443",
		} {
			e := w.elsewhere(ns, fmt.Sprintf("denied-%d", i), server)
			w.awaitConnection(e, v1alpha1.ReasonUnsupportedAPIURL, "spec.apiURL")
		}
		if n := deaf.connections(); n != 0 {
			t.Errorf("%d connections", n)
		}
		if n := w.count("SELECT count(*) FROM cluster_credentials"); n != 0 {
			t.Errorf("%d of them taken in", n)
		}
	}, service.WithNetwork(tenantnet.Policy{ConnectTimeout: 2 * time.Second, Resolver: names{
		"internal.example.com": {netip.MustParseAddr("127.0.0.1")},
		"both.example.com":     {netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("127.0.0.1")},
	}}))
}

// names answers lookups.
type names map[string][]netip.Addr

// LookupNetIP gives the addresses of a name.
func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	return n[strings.TrimSuffix(host, ".")], nil
}

func port(l net.Listener) string {
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}
