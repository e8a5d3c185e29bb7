// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/testkit"
)

// account makes a service account with a role everywhere and gives its token. The
// control plane under test is the tenants' remote cluster as well.
func (w *world) account(namespace, name, role string) string {
	w.Helper()
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.must(w.api.Create(w.ctx, sa))
	if role != "" {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: namespace + "-" + name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		}
		w.must(w.api.Create(w.ctx, binding))
		w.Cleanup(func() { _ = administrator(w.T).Delete(context.WithoutCancel(w.ctx), binding) })
	}
	return w.token(namespace, name)
}

func (w *world) token(namespace, name string) string {
	w.Helper()
	request := &authenticationv1.TokenRequest{}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	w.must(w.api.SubResource("token").Create(w.ctx, sa, request))
	return request.Status.Token
}

// kubeconfigWith is a tenant's kubeconfig for the cluster under test.
func kubeconfigWith(t *testing.T, token string, change ...func(*clientcmdapi.Config)) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["remote"] = &clientcmdapi.Cluster{Server: cluster.Config.Host, CertificateAuthorityData: cluster.Config.CAData}
	config.AuthInfos["me"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["here"] = &clientcmdapi.Context{Cluster: "remote", AuthInfo: "me"}
	config.CurrentContext = "here"
	for _, c := range change {
		c(config)
	}
	text, err := clientcmd.Write(*config)
	must(t, err)
	return text
}

// secret writes a Secret of a type.
func (w *world) secret(namespace, name, kind string, data map[string][]byte) {
	w.Helper()
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Type: corev1.SecretType(kind), Data: data}
	err := w.api.Create(w.ctx, s)
	if apierrors.IsAlreadyExists(err) {
		err = w.api.Update(w.ctx, s)
	}
	w.must(err)
}

func (w *world) environmentSecret(namespace, name string, kubeconfig []byte) {
	w.Helper()
	w.secret(namespace, name, v1alpha1.ManagedEnvironmentSecretType, map[string][]byte{"kubeconfig": kubeconfig})
}

func (w *world) environment(namespace, name, secret string, change ...func(*v1alpha1.GitOpsDeploymentManagedEnvironmentSpec)) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	w.Helper()
	e := &v1alpha1.GitOpsDeploymentManagedEnvironment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{APIURL: cluster.Config.Host, CredentialsSecret: secret},
	}
	for _, c := range change {
		c(&e.Spec)
	}
	w.must(w.api.Create(w.ctx, e))
	return e
}

// awaitConnection waits for the environment's condition.
func (w *world) awaitConnection(e *v1alpha1.GitOpsDeploymentManagedEnvironment, reason v1alpha1.ConditionReason, words ...string) {
	w.Helper()
	testkit.Eventually(w.T, "environment "+e.Name+" says "+string(reason), func() string {
		latest := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(e), latest))
		c := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionConnectionInitializationSucceeded))
		if c == nil || c.Reason != string(reason) {
			return fmt.Sprintf("%+v", c)
		}
		if (c.Status == metav1.ConditionTrue) != (reason == v1alpha1.ReasonSucceeded) {
			return fmt.Sprintf("status %s with reason %s", c.Status, c.Reason)
		}
		return mention(c.Message, words...)
	})
}

// clusterSecret reads the engine's Secret for an environment, nil where there is none.
func (w *world) clusterSecret(e *v1alpha1.GitOpsDeploymentManagedEnvironment) *corev1.Secret {
	w.Helper()
	return w.engineSecret(domain.ClusterSecretName(domain.EnvironmentID(e.UID)))
}

func (w *world) engineSecret(name string) *corev1.Secret {
	w.Helper()
	s := &corev1.Secret{}
	err := w.api.Get(w.ctx, client.ObjectKey{Namespace: w.EngineNamespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return s
}

// connected makes an environment with the rights of an administrator.
func (w *world) connected(namespace, name string) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	w.Helper()
	w.environmentSecret(namespace, name, kubeconfigWith(w.T, w.account(namespace, name, "cluster-admin")))
	e := w.environment(namespace, name, name)
	w.awaitConnection(e, v1alpha1.ReasonSucceeded)
	testkit.Eventually(w.T, "the engine's Secret", func() string {
		if w.clusterSecret(e) == nil {
			return "none"
		}
		return ""
	})
	return e
}

func Test29_EachProblemOfASecretHasAReasonOfItsOwn(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		token := w.account(ns, "me", "cluster-admin")
		e := w.environment(ns, "staging", "credentials")
		w.awaitConnection(e, v1alpha1.ReasonKubernetesError, "credentials", "create it")

		w.secret(ns, "credentials", "Opaque", map[string][]byte{"kubeconfig": kubeconfigWith(w.T, token)})
		w.awaitConnection(e, v1alpha1.ReasonInvalidSecretType, v1alpha1.ManagedEnvironmentSecretType)
		w.must(w.api.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "credentials"}}))

		w.secret(ns, "credentials", v1alpha1.ManagedEnvironmentSecretType, map[string][]byte{"config": []byte("x")})
		w.awaitConnection(e, v1alpha1.ReasonMissingKubeConfigField, "kubeconfig")
		w.environmentSecret(ns, "credentials", []byte("][ no kubeconfig"))
		w.awaitConnection(e, v1alpha1.ReasonUnableToParseKubeconfigData)
		w.environmentSecret(ns, "credentials", kubeconfigWith(w.T, token, func(c *clientcmdapi.Config) { c.Clusters["remote"].Server = "https://elsewhere.example.com" }))
		w.awaitConnection(e, v1alpha1.ReasonUnableToLocateContext)
		w.environmentSecret(ns, "credentials", kubeconfigWith(w.T, ""))
		w.awaitConnection(e, v1alpha1.ReasonUnableToRetrieveRestConfig)
		w.environmentSecret(ns, "credentials", kubeconfigWith(w.T, token))
		w.awaitConnection(e, v1alpha1.ReasonSucceeded)
	})
}

func Test30_WhatIsMissingIsNamed(t *testing.T) {
	each(t, func(w *world) {
		ns, remote := w.tenant(), w.tenant()
		w.environmentSecret(ns, "nobody", kubeconfigWith(w.T, w.account(ns, "nobody", "")))
		everywhere := w.environment(ns, "everywhere", "nobody")
		w.awaitConnection(everywhere, v1alpha1.ReasonUnableToValidateClusterCredentials, "permission to list namespaces", "spec.namespaces")
		listed := w.environment(ns, "listed", "nobody", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.Namespaces = []string{remote} })
		w.awaitConnection(listed, v1alpha1.ReasonInvalidNamespaceList, "permission to list pods in namespace "+remote)

		token := w.account(ns, "me", "cluster-admin")
		w.environmentSecret(ns, "stranger", kubeconfigWith(w.T, token, func(c *clientcmdapi.Config) { c.Clusters["remote"].CertificateAuthorityData = nil }))
		unknown := w.environment(ns, "unknown-authority", "stranger")
		w.awaitConnection(unknown, v1alpha1.ReasonUnableToValidateClusterCredentials, "certificate-authority-data", "spec.allowInsecureSkipTLSVerify")
		w.editEnvironment(unknown, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.AllowInsecureSkipTLSVerify = true })
		w.awaitConnection(unknown, v1alpha1.ReasonSucceeded)
		if config := w.awaitAccess(unknown); !config.TLS.Insecure || len(config.TLS.CAData) > 0 || config.Token != token {
			t.Error("the engine's Secret does not say the same")
		}

		w.environmentSecret(ns, "expired", kubeconfigWith(w.T, token+"x"))
		w.awaitConnection(w.environment(ns, "expired", "expired"), v1alpha1.ReasonUnableToValidateClusterCredentials, "does not accept the credentials")
	})
}

// What a kubeconfig may not hold, and the word by which the tenant finds it.
func forbiddenParts(witness, proxy string) map[string]func(*clientcmdapi.Config) {
	user := func(change func(*clientcmdapi.AuthInfo)) func(*clientcmdapi.Config) {
		return func(c *clientcmdapi.Config) { change(c.AuthInfos["me"]) }
	}
	return map[string]func(*clientcmdapi.Config){
		"users[me].user.exec": user(func(u *clientcmdapi.AuthInfo) {
			u.Exec = &clientcmdapi.ExecConfig{APIVersion: "client.authentication.k8s.io/v1", Command: "touch", Args: []string{witness}, InteractiveMode: "Never"}
		}),
		"users[me].user.auth-provider":      user(func(u *clientcmdapi.AuthInfo) { u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc"} }),
		"users[me].user.tokenFile":          user(func(u *clientcmdapi.AuthInfo) { u.TokenFile = witness }),
		"users[me].user.client-certificate": user(func(u *clientcmdapi.AuthInfo) { u.ClientCertificate = "/etc/passwd" }),
		"users[me].user.client-key":         user(func(u *clientcmdapi.AuthInfo) { u.ClientKey = "/etc/passwd" }),
		"users[me].user.as ":                user(func(u *clientcmdapi.AuthInfo) { u.Impersonate = "system:admin" }),
		"users[me].user.as-groups":          user(func(u *clientcmdapi.AuthInfo) { u.ImpersonateGroups = []string{"system:masters"} }),
		"users[me].user.as-uid":             user(func(u *clientcmdapi.AuthInfo) { u.ImpersonateUID = "1" }),
		"users[me].user.password":           user(func(u *clientcmdapi.AuthInfo) { u.Password = "x" }),
		"clusters[remote].cluster.certificate-authority ": func(c *clientcmdapi.Config) {
			c.Clusters["remote"].CertificateAuthorityData, c.Clusters["remote"].CertificateAuthority = nil, "/etc/passwd"
		},
		"clusters[remote].cluster.proxy-url": func(c *clientcmdapi.Config) { c.Clusters["remote"].ProxyURL = proxy },
	}
}

func Test31_PartsOfAKubeconfigThatDoSomethingAreRefusedByName(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		token := w.account(ns, "me", "cluster-admin")
		witness := filepath.Join(t.TempDir(), "witness")
		proxy := newDeafListener(t)
		e := w.environment(ns, "staging", "credentials")
		for field, change := range forbiddenParts(witness, "http://"+proxy.Addr().String()) {
			w.environmentSecret(ns, "credentials", kubeconfigWith(w.T, token, change))
			w.awaitConnection(e, v1alpha1.ReasonUnableToRetrieveRestConfig, field)
		}
		if _, err := os.Stat(witness); !os.IsNotExist(err) {
			t.Errorf("the command was run: %v", err)
		}
		if n := proxy.connections(); n != 0 {
			t.Errorf("%d connections to the proxy", n)
		}
		if n := w.count("SELECT count(*) FROM cluster_credentials"); n != 0 {
			t.Errorf("%d of them taken in", n)
		}
	})
}

func Test32_RotatedCredentialsReachTheEngine(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		e := w.connected(ns, "staging")
		before := string(w.clusterSecret(e).Data["config"])
		w.environmentSecret(ns, "staging", kubeconfigWith(w.T, w.token(ns, "staging")))
		testkit.Eventually(w.T, "the engine has the new token", func() string {
			if string(w.clusterSecret(e).Data["config"]) == before {
				return "the old one"
			}
			return ""
		})
		w.awaitQuiet()
	})
}

// to makes a deployment go to an environment.
func to(e *v1alpha1.GitOpsDeploymentManagedEnvironment, namespace string) testkit.Modify {
	return testkit.WithDestination(e.Name, namespace)
}

// awaitFollows waits until a deployment's row and Application are at an environment.
func (w *world) awaitFollows(d *v1alpha1.GitOpsDeployment, environment, namespace string, at func(argov1alpha1.ApplicationDestination) bool) *argov1alpha1.Application {
	w.Helper()
	var app *argov1alpha1.Application
	testkit.Eventually(w.T, d.Name+" follows", func() string {
		var row, ns string
		w.must(w.Raw.QueryRowContext(w.ctx, "SELECT environment_id, namespace FROM application WHERE id = $1", string(d.UID)).Scan(&row, &ns))
		if row != environment || ns != namespace {
			return "the row is at " + row + ", " + ns
		}
		if app = w.application(d); app == nil || !app.DeletionTimestamp.IsZero() || !at(app.Spec.Destination) || app.Spec.Destination.Namespace != namespace {
			return fmt.Sprintf("the Application is %+v", app)
		}
		return ""
	})
	return app
}

func (w *world) awaitAt(d *v1alpha1.GitOpsDeployment, e *v1alpha1.GitOpsDeploymentManagedEnvironment, namespace string) *argov1alpha1.Application {
	w.Helper()
	return w.awaitFollows(d, string(e.UID), namespace, func(to argov1alpha1.ApplicationDestination) bool {
		return to.Name == domain.ClusterSecretName(domain.EnvironmentID(e.UID)) && to.Server == ""
	})
}

func (w *world) awaitLocal(d *v1alpha1.GitOpsDeployment) *argov1alpha1.Application {
	w.Helper()
	return w.awaitFollows(d, w.namespaceUID(d.Namespace), d.Namespace, func(to argov1alpha1.ApplicationDestination) bool {
		return to.Name == "" && to.Server != ""
	})
}

func (w *world) awaitNoSecret(e *v1alpha1.GitOpsDeploymentManagedEnvironment) {
	w.Helper()
	testkit.Eventually(w.T, "the engine's Secret goes", func() string {
		if w.clusterSecret(e) != nil {
			return "it is there"
		}
		return ""
	})
}

func Test33_OfADeletedEnvironmentTheDeploymentsSayAndFollowItsReturn(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		first := w.connected(ns, "staging")
		d := w.deployed(ns, "shop", to(first, "apps"))
		w.awaitAt(d, first, "apps")
		w.awaitQuiet()
		// As some minutes later, when finished operations have been collected.
		w.exec("DELETE FROM operation")
		w.must(w.api.Delete(w.ctx, first))
		w.awaitNoSecret(first)
		w.awaitStatus(d, "it says so", shows(v1alpha1.ConditionErrorOccurred, "GitOpsDeploymentManagedEnvironment staging", "is not there"))
		if n := w.count("SELECT count(*) FROM application WHERE id = $1 AND environment_id = $2", string(d.UID), string(first.UID)); n != 1 {
			t.Errorf("%d rows of the deployment", n)
		}
		if n := w.count("SELECT count(*) FROM cluster_credentials"); n != 0 {
			t.Errorf("%d credentials are left", n)
		}
		if app := w.application(d); app == nil || !app.DeletionTimestamp.IsZero() {
			t.Error("the Application went with the environment")
		}

		second := w.environment(ns, "staging", "staging")
		w.awaitConnection(second, v1alpha1.ReasonSucceeded)
		w.awaitAt(d, second, "apps")
		w.awaitStatus(d, "it is resolved", resolved(v1alpha1.ConditionErrorOccurred))
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM managed_environment WHERE id = $1", string(first.UID)); n != 0 {
			t.Error("the row that only the deployment kept is still there")
		}
		w.delete(d)
		w.awaitGone(d)
		w.must(w.api.Delete(w.ctx, second))
		w.awaitNoSecret(second)
		testkit.Eventually(w.T, "no row is left", func() string {
			return zero(w.count("SELECT count(*) FROM managed_environment WHERE kind = 'remote'") + w.count("SELECT count(*) FROM api_cr_to_database_mapping"))
		})
	})
}

func Test34_AMovedDeploymentIsRemovedWhereItWas(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		a, b := w.connected(ns, "a"), w.connected(ns, "b")
		d := w.deployed(ns, "shop")
		for _, move := range []struct {
			change testkit.Modify
			arrive func() *argov1alpha1.Application
		}{
			{to(a, "apps"), func() *argov1alpha1.Application { return w.awaitAt(d, a, "apps") }},
			{to(b, "apps"), func() *argov1alpha1.Application { return w.awaitAt(d, b, "apps") }},
			{to(b, "other"), func() *argov1alpha1.Application { return w.awaitAt(d, b, "other") }},
			{testkit.WithDestination("", ""), func() *argov1alpha1.Application { return w.awaitLocal(d) }},
		} {
			before := w.application(d)
			w.pauseEngine()
			w.edit(d, move.change)
			// Until the engine has removed what it deployed, nothing is deployed elsewhere.
			testkit.Eventually(w.T, "the Application is being deleted", func() string {
				app := w.application(d)
				if app == nil || app.UID != before.UID || app.Spec.Destination != before.Spec.Destination {
					return "it was changed instead"
				}
				if app.DeletionTimestamp.IsZero() || len(app.Finalizers) == 0 {
					return "it stays"
				}
				return ""
			})
			w.resumeEngine()
			if after := move.arrive(); after.UID == before.UID {
				t.Error("the Application was changed in place, what it had deployed is left behind")
			}
			w.awaitQuiet()
		}
		project := w.project(ns)
		if len(project.Spec.Destinations) != 1 || project.Spec.Destinations[0].Name != "" {
			t.Errorf("the project still allows where it was: %+v", project.Spec.Destinations)
		}
	})
}

func Test35_SameNameNewUIDRemovesTheOldRows(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		w.environmentSecret(ns, "staging", kubeconfigWith(w.T, w.account(ns, "me", "cluster-admin")))
		own := func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.CreateNewServiceAccount = true }
		first := w.environment(ns, "staging", "staging", own)
		w.awaitConnection(first, v1alpha1.ReasonSucceeded)
		w.awaitAccess(first)
		w.StopBackend()
		w.must(w.api.Delete(w.ctx, first))
		second := w.environment(ns, "staging", "staging", own)
		w.StartBackend()
		w.awaitConnection(second, v1alpha1.ReasonSucceeded)
		w.awaitAccess(second)
		w.awaitNoSecret(first)
		testkit.Eventually(w.T, "rows of the new one only", func() string {
			return zero(w.count("SELECT count(*) FROM managed_environment WHERE kind = 'remote'") - 1 +
				w.count("SELECT count(*) FROM api_cr_to_database_mapping WHERE cr_uid = $1", string(first.UID)))
		})
		w.awaitNoAccount(first)
		w.awaitQuiet()
	})
}
