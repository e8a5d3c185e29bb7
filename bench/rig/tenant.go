// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
)

// AddTenant makes a namespace and somebody who may use Weir in it, and nothing
// else: a service account with a token. An administrator's requests would pass the
// API server's priority and fairness by, and no tenant is one.
func (r *Rig) AddTenant(ctx context.Context, namespace string) (client.Client, error) {
	const name = "tenant"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
		account,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-tenant-edit"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
		},
	} {
		if err := r.Client.Create(ctx, o); err != nil {
			return nil, fmt.Errorf("make a tenant: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, fmt.Errorf("request a token: %w", err)
	}
	config := rest.AnonymousClientConfig(r.config)
	config.BearerToken, config.WarningHandler = request.Status.Token, rest.NoWarnings{}
	config.QPS = -1
	config.Wrap(r.own.over)
	return client.New(config, client.Options{Scheme: kube.NewScheme(), Mapper: r.Client.RESTMapper()})
}

// Remote is a kubeconfig for the cluster under test, which is the tenants' remote
// cluster as well, with a token of its own each time it is called.
func (r *Rig) Remote(ctx context.Context) (kubeconfig []byte, token, server string, err error) {
	const namespace, name = "kube-system", "bench-remote"
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}
	for _, o := range []client.Object{account.DeepCopy(), binding} {
		if err := r.Client.Create(ctx, o); client.IgnoreAlreadyExists(err) != nil {
			return nil, "", "", fmt.Errorf("make the remote cluster's account: %w", err)
		}
	}
	request := &authenticationv1.TokenRequest{}
	if err := r.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, "", "", fmt.Errorf("request a token: %w", err)
	}
	token = request.Status.Token
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: r.config.Host, CertificateAuthorityData: r.config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	kubeconfig, err = clientcmd.Write(*config)
	return kubeconfig, token, r.config.Host, err
}
