// SPDX-License-Identifier: Apache-2.0

// Package reach goes out to what tenants name: their clusters and their Git
// servers. Everything here runs with a deadline, through the one dialer that keeps
// tenants away from addresses that are not theirs, and ends in words for the
// tenant that hold no secret.
package reach

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// Problem is why a cluster cannot be used.
type Problem struct {
	Reason  v1alpha1.ConditionReason
	Message string
}

func (p *Problem) Error() string { return p.Message }

// Cluster is what is asked of a tenant's cluster.
type Cluster struct {
	Access kubeconfig.Access
	// Namespaces are the only ones that are to be used; none means all.
	Namespaces       []string
	ClusterResources bool
	// Account is the name of the service account to make and use instead of the
	// given credentials; empty for none.
	Account string
	// Former is the name of an account that was made before and is not wanted any
	// more; empty for none.
	Former string
}

// Connected is the answer of a cluster that can be used.
type Connected struct {
	Access kubeconfig.Access
	// ServiceAccount is namespace/name of the account that was made, and Expires the
	// end of its token.
	ServiceAccount string
	Expires        time.Time
}

// Clusters connects to tenants' clusters.
type Clusters struct {
	Dialer *tenantnet.Dialer
	// Timeout is for each request.
	Timeout time.Duration
}

// Connect checks that a cluster answers and lets us do what we need, and makes the
// service account where one is asked for.
func (c *Clusters) Connect(ctx context.Context, to Cluster) (Connected, error) {
	api, done, err := c.client(to.Access)
	if err != nil {
		return Connected{}, &Problem{v1alpha1.ReasonUnableToCreateClient, "no client can be made from the kubeconfig: check its certificates"}
	}
	defer done()
	if err := look(ctx, api, to.Namespaces); err != nil {
		return Connected{}, explain(err, to)
	}
	if to.Account == "" {
		if to.Former != "" {
			// With the given credentials, which could make it. Where they no longer
			// can, that is no reason to refuse the cluster.
			_ = removeAccount(ctx, api, to.Former)
		}
		return Connected{Access: to.Access}, nil
	}
	return install(ctx, api, to)
}

func (c *Clusters) client(a kubeconfig.Access) (kubernetes.Interface, func(), error) {
	config := a.RESTConfig(c.Dialer, c.Timeout)
	over, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, nil, err
	}
	api, err := kubernetes.NewForConfigAndClient(config, over)
	return api, over.CloseIdleConnections, err
}

// look asks whether we may read what a deployment would have to read. The cluster
// is asked for its judgement, not for the data: a list that has to be consistent
// may make an API server wait for its storage, and one that need not be may be large.
func look(ctx context.Context, api kubernetes.Interface, namespaces []string) error {
	if len(namespaces) == 0 {
		return may(ctx, api, authorizationv1.ResourceAttributes{Verb: "list", Resource: "namespaces"}, func() error {
			_, err := api.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: 1})
			return err
		})
	}
	for _, ns := range namespaces {
		if err := may(ctx, api, authorizationv1.ResourceAttributes{Verb: "list", Resource: "pods", Namespace: ns}, func() error {
			_, err := api.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{Limit: 1})
			return err
		}); err != nil {
			return &inNamespace{ns, err}
		}
	}
	return nil
}

// may asks a cluster whether it would let us; one that does not answer such
// questions is tried instead.
func may(ctx context.Context, api kubernetes.Interface, what authorizationv1.ResourceAttributes, try func() error) error {
	review, err := api.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
		Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &what},
	}, metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		return try()
	case err != nil:
		return err
	case !review.Status.Allowed:
		return apierrors.NewForbidden(schema.GroupResource{Resource: what.Resource}, "", errNotAllowed)
	}
	return nil
}

var errNotAllowed = errors.New("not allowed")

// inNamespace is a request about one of the listed namespaces that failed.
type inNamespace struct {
	name  string
	cause error
}

func (e *inNamespace) Error() string { return "namespace " + e.name + ": " + e.cause.Error() }
func (e *inNamespace) Unwrap() error { return e.cause }

// explain says in words why a cluster cannot be used. What a server said is not
// passed on: it is a stranger's text.
func explain(err error, to Cluster) error {
	var (
		denied    *tenantnet.DeniedError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		hostname  x509.HostnameError
		verifying *tls.CertificateVerificationError
		problem   *Problem
		within    *inNamespace
	)
	refuse := func(reason v1alpha1.ConditionReason, format string, args ...any) error {
		return &Problem{reason, fmt.Sprintf(format, args...)}
	}
	host := to.Access.Server
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &denied):
		return refuse(v1alpha1.ReasonUnsupportedAPIURL, "spec.apiURL: %s", denied.Error())
	case apierrors.IsUnauthorized(err):
		return refuse(v1alpha1.ReasonUnableToValidateClusterCredentials, "%s does not accept the credentials: they are wrong or have expired; put new ones into the Secret that spec.credentialsSecret names", host)
	case apierrors.IsForbidden(err) && !errors.As(err, &within):
		return refuse(v1alpha1.ReasonUnableToValidateClusterCredentials, "the credentials lack the permission to list namespaces on %s: give it to them, or name the namespaces to use in spec.namespaces", host)
	case apierrors.IsForbidden(err):
		return refuse(v1alpha1.ReasonInvalidNamespaceList, "the credentials lack the permission to list pods in namespace %s on %s: give it to them, or take the namespace out of spec.namespaces", within.name, host)
	case errors.As(err, &authority), errors.As(err, &invalid), errors.As(err, &hostname), errors.As(err, &verifying):
		return refuse(v1alpha1.ReasonUnableToValidateClusterCredentials, "the certificate of %s is not signed by a known authority for that host: put the authority into the kubeconfig (certificate-authority-data), or set spec.allowInsecureSkipTLSVerify", host)
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return refuse(v1alpha1.ReasonUnableToValidateClusterCredentials, "%s did not answer in time; this will be tried again", host)
	default:
		return refuse(v1alpha1.ReasonUnableToValidateClusterCredentials, "%s cannot be reached, or does not answer like a Kubernetes API server; this will be tried again", host)
	}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// accountNamespace is where service accounts are made on tenants' clusters.
const accountNamespace = "kube-system"

// tokenLifetime is asked for; a cluster may give less. A token is renewed when
// two thirds of its life are over, so a day leaves eight hours for an outage.
const tokenLifetime = 24 * time.Hour

// install makes the service account with its roles, and a token for it. What is
// there already is used again.
//
// Everything made belongs to the account's ClusterRoleBinding, so that deleting
// that one object, which the account itself may do, takes all of it away.
func install(ctx context.Context, api kubernetes.Interface, to Cluster) (Connected, error) {
	fail := func(doing string, err error) (Connected, error) {
		return Connected{}, &Problem{v1alpha1.ReasonUnableToInstallServiceAccount, fmt.Sprintf(
			"cannot %s on %s with the given credentials (%s): they need the rights of a cluster administrator, or set spec.createNewServiceAccount to false",
			doing, to.Access.Server, apierrors.ReasonForError(err))}
	}
	owner, err := bindCluster(ctx, api, to.Account)
	if err != nil {
		return fail("bind a role", err)
	}
	account := &corev1.ServiceAccount{ObjectMeta: owned(owner, accountNamespace, to.Account)}
	if _, err := api.CoreV1().ServiceAccounts(accountNamespace).Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fail("create a service account", err)
	}
	if err := grant(ctx, api, owner, to); err != nil {
		return fail("give the service account its role", err)
	}
	seconds := int64(tokenLifetime.Seconds())
	token, err := api.CoreV1().ServiceAccounts(accountNamespace).CreateToken(ctx, to.Account,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return fail("request a token for the service account", err)
	}
	access := to.Access
	access.Token, access.ClientCert, access.ClientKey = token.Status.Token, nil, nil
	return Connected{Access: access, ServiceAccount: accountNamespace + "/" + to.Account, Expires: token.Status.ExpirationTimestamp.Time}, nil
}

func subject(account string) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: accountNamespace, Name: account}}
}

func bindCluster(ctx context.Context, api kubernetes.Interface, account string) (*rbacv1.ClusterRoleBinding, error) {
	bindings := api.RbacV1().ClusterRoleBindings()
	made, err := bindings.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account, Labels: ours()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: account}, Subjects: subject(account),
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return bindings.Get(ctx, account, metav1.GetOptions{})
	}
	return made, err
}

func ours() map[string]string { return map[string]string{"app.kubernetes.io/managed-by": "weir"} }

func owned(owner *rbacv1.ClusterRoleBinding, namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: ours(),
		OwnerReferences: []metav1.OwnerReference{{
			APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding", Name: owner.Name, UID: owner.UID,
		}},
	}
}

// grant gives the account what it needs and no more: everything with a namespace,
// in the namespaces that are listed, or everywhere where none are; and without a
// namespace only where the environment says so. And it may take itself away again.
func grant(ctx context.Context, api kubernetes.Interface, owner *rbacv1.ClusterRoleBinding, to Cluster) error {
	all := []string{"*"}
	everything := rbacv1.PolicyRule{APIGroups: all, Resources: all, Verbs: all}
	wide := &rbacv1.ClusterRole{ObjectMeta: owned(owner, "", to.Account), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, ResourceNames: []string{to.Account}, Verbs: []string{"delete"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"}},
	}}
	if len(to.Namespaces) == 0 || to.ClusterResources {
		wide.Rules = append(wide.Rules, everything)
	}
	if err := putClusterRole(ctx, api, wide); err != nil {
		return err
	}
	for _, ns := range to.Namespaces {
		role := &rbacv1.Role{ObjectMeta: owned(owner, ns, to.Account), Rules: []rbacv1.PolicyRule{everything}}
		if _, err := api.RbacV1().Roles(ns).Create(ctx, role, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
		if _, err := api.RbacV1().RoleBindings(ns).Create(ctx, &rbacv1.RoleBinding{
			ObjectMeta: owned(owner, ns, to.Account),
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: to.Account}, Subjects: subject(to.Account),
		}, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return withdraw(ctx, api, to)
}

// withdraw takes back what the account had in namespaces that are not listed any
// more.
func withdraw(ctx context.Context, api kubernetes.Interface, to Cluster) error {
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, to.Account).String()}
	bindings, err := api.RbacV1().RoleBindings(metav1.NamespaceAll).List(ctx, named)
	if err != nil {
		return err
	}
	for _, b := range bindings.Items {
		if slices.Contains(to.Namespaces, b.Namespace) {
			continue
		}
		if err := api.RbacV1().RoleBindings(b.Namespace).Delete(ctx, b.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err := api.RbacV1().Roles(b.Namespace).Delete(ctx, b.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return nil
}

func putClusterRole(ctx context.Context, api kubernetes.Interface, role *rbacv1.ClusterRole) error {
	_, err := api.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	_, err = api.RbacV1().ClusterRoles().Update(ctx, role, metav1.UpdateOptions{})
	return err
}

// Remove takes a service account and its roles away, with its own credentials.
func (c *Clusters) Remove(ctx context.Context, access kubeconfig.Access, account string) error {
	api, done, err := c.client(access)
	if err != nil {
		return err
	}
	defer done()
	return removeAccount(ctx, api, account)
}

func removeAccount(ctx context.Context, api kubernetes.Interface, account string) error {
	err := api.RbacV1().ClusterRoleBindings().Delete(ctx, account, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
