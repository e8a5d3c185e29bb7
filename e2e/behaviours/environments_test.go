// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"context"
	"fmt"
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

		w.secret(ns, "credentials", "Opaque", map[string][]byte{"kubeconfig": kubeconfigWith(t, token)})
		w.awaitConnection(e, v1alpha1.ReasonInvalidSecretType, v1alpha1.ManagedEnvironmentSecretType)
		w.must(w.api.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "credentials"}}))

		w.secret(ns, "credentials", v1alpha1.ManagedEnvironmentSecretType, map[string][]byte{"config": []byte("x")})
		w.awaitConnection(e, v1alpha1.ReasonMissingKubeConfigField, "kubeconfig")
		w.environmentSecret(ns, "credentials", []byte("][ no kubeconfig"))
		w.awaitConnection(e, v1alpha1.ReasonUnableToParseKubeconfigData)
		w.environmentSecret(ns, "credentials", kubeconfigWith(t, token, func(c *clientcmdapi.Config) { c.Clusters["remote"].Server = "https://elsewhere.example.com" }))
		w.awaitConnection(e, v1alpha1.ReasonUnableToLocateContext)
		w.environmentSecret(ns, "credentials", kubeconfigWith(t, ""))
		w.awaitConnection(e, v1alpha1.ReasonUnableToRetrieveRestConfig)
		w.environmentSecret(ns, "credentials", kubeconfigWith(t, token))
		w.awaitConnection(e, v1alpha1.ReasonSucceeded)
	})
}

func Test32_RotatedCredentialsReachTheEngine(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		e := w.connected(ns, "staging")
		before := string(w.clusterSecret(e).Data["config"])
		w.environmentSecret(ns, "staging", kubeconfigWith(t, w.token(ns, "staging")))
		testkit.Eventually(t, "the engine has the new token", func() string {
			if string(w.clusterSecret(e).Data["config"]) == before {
				return "the old one"
			}
			return ""
		})
		w.awaitQuiet()
	})
}
