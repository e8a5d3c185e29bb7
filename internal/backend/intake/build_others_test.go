// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// noon is when these tests happen.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const (
	apiURL = "https://api.example.com:6443"
	canary = "canary-5d1f0e"
)

func meta(name, uid string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID(uid), Generation: 1}
}

func deleted(m *metav1.ObjectMeta) {
	t := metav1.NewTime(noon)
	m.DeletionTimestamp, m.Finalizers = &t, []string{"foregroundDeletion"}
}

// settledAt is the placement of a tenant that is settled on engine-1.
func settledAt() store.Placement { return store.Placement{Instance: engineID, Settled: true} }

// operationOn is an operation on a row of the kinds besides deployments.
func operationOn(kind domain.ResourceType, resource string, s domain.OperationState, message string) *store.Operation {
	return &store.Operation{
		ID: "earlier", Tenant: tenantA, Instance: engineID, ResourceType: kind, ResourceID: resource, State: s, Message: message, Version: 1,
	}
}

func announces(id string, t domain.TenantID, kind domain.ResourceType, resource string) []store.NewOperation {
	return []store.NewOperation{{ID: domain.OperationID(id), Tenant: t, Instance: engineID, ResourceType: kind, ResourceID: resource}}
}

type runOption func(*v1alpha1.GitOpsDeploymentSyncRun)

// run is a sync run of deployment "shop".
func run(name string, options ...runOption) *v1alpha1.GitOpsDeploymentSyncRun {
	cr := &v1alpha1.GitOpsDeploymentSyncRun{
		ObjectMeta: meta(name, "uid-"+name),
		Spec:       v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: "shop", RevisionID: "v1"},
	}
	for _, o := range options {
		o(cr)
	}
	return cr
}

func runFinished(at time.Time) runOption {
	return func(cr *v1alpha1.GitOpsDeploymentSyncRun) {
		t := metav1.NewTime(at)
		cr.Status.StartedAt, cr.Status.FinishedAt = &t, &t
	}
}

func runStarted(cr *v1alpha1.GitOpsDeploymentSyncRun) {
	t := metav1.NewTime(noon)
	cr.Status.StartedAt = &t
}

func runOf(uid string) runOption {
	return func(cr *v1alpha1.GitOpsDeploymentSyncRun) { cr.UID = types.UID(uid) }
}

func runRevision(r string) runOption {
	return func(cr *v1alpha1.GitOpsDeploymentSyncRun) { cr.Spec.RevisionID = r }
}

func runTTL(ttl string) runOption {
	return func(cr *v1alpha1.GitOpsDeploymentSyncRun) {
		cr.Annotations = map[string]string{v1alpha1.TTLAnnotation: ttl}
	}
}

func runDeleted(cr *v1alpha1.GitOpsDeploymentSyncRun) { deleted(&cr.ObjectMeta) }

type syncOption func(*store.SyncChain)

// syncOf is what the database holds of run "r", which the engine is at.
func syncOf(uid string, options ...syncOption) store.SyncChain {
	c := store.SyncChain{
		Link: store.CRLink{Kind: store.KindSyncRun, UID: uid, Tenant: tenantA, Namespace: team, Name: "r"},
		Sync: &store.SyncOperation{
			ID: domain.SyncOperationID(uid), Tenant: tenantA, Application: "uid-shop", Deployment: "shop", Revision: "v1", RunningLimit: 20,
		},
		Operation: operationOn(domain.ResourceSyncOperation, uid, domain.OperationInProgress, ""),
	}
	for _, o := range options {
		o(&c)
	}
	return c
}

func syncEnded(at time.Time) syncOption {
	return func(c *store.SyncChain) {
		c.Sync.Result = domain.SyncResult{Phase: domain.SyncSucceeded, StartedAt: at, FinishedAt: at}
	}
}

func syncTenant(t domain.TenantID) syncOption {
	return func(c *store.SyncChain) {
		c.Link.Tenant = t
		if c.Sync != nil {
			c.Sync.Tenant = t
		}
		if c.Operation != nil {
			c.Operation.Tenant = t
		}
	}
}

func syncGone(c *store.SyncChain) { c.Sync = nil }

func syncWithoutOperation(c *store.SyncChain) { c.Operation = nil }

type environmentOption func(*v1alpha1.GitOpsDeploymentManagedEnvironment)

func environment(options ...environmentOption) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	cr := &v1alpha1.GitOpsDeploymentManagedEnvironment{
		ObjectMeta: meta("prod", "uid-prod"),
		Spec:       v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{APIURL: apiURL, CredentialsSecret: "access"},
	}
	for _, o := range options {
		o(cr)
	}
	return cr
}

func environmentOf(uid string) environmentOption {
	return func(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) { cr.UID = types.UID(uid) }
}

func environmentDeleted(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) { deleted(&cr.ObjectMeta) }

func manualOnly(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) {
	cr.Spec.AllowAutomatedDeployments = new(false)
}

func ownAccount(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) {
	cr.Spec.CreateNewServiceAccount = true
}

func kubeconfigText() []byte {
	return []byte("apiVersion: v1\nkind: Config\ncurrent-context: c\n" +
		"clusters: [{name: k, cluster: {server: \"" + apiURL + "\"}}]\n" +
		"users: [{name: u, user: {token: " + canary + "}}]\n" +
		"contexts: [{name: c, context: {cluster: k, user: u}}]\n")
}

func accessSecret() *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: meta("access", "uid-secret"), Type: v1alpha1.ManagedEnvironmentSecretType,
		Data: map[string][]byte{"kubeconfig": kubeconfigText()},
	}
}

type environmentChainOption func(*store.EnvironmentChain)

// connectedAs is what the database holds of environment "prod" once connected.
func connectedAs(uid string, options ...environmentChainOption) store.EnvironmentChain {
	c := store.EnvironmentChain{
		Link: store.CRLink{Kind: store.KindEnvironment, UID: uid, Tenant: tenantA, Namespace: team, Name: "prod"},
		Environment: &store.Environment{
			ID: domain.EnvironmentID(uid), Tenant: tenantA, Name: "prod", AllowAutomated: true,
			Credentials: &store.ClusterCredentials{Host: apiURL, SealedAccess: []byte("sealed"), SealedOrigin: []byte("sealed origin"), KeyID: "key", Version: 3},
		},
	}
	for _, o := range options {
		o(&c)
	}
	return c
}

func withAccount(c *store.EnvironmentChain) {
	c.Environment.Credentials.ServiceAccount = "kube-system/weir-" + c.Link.UID
}

func expiring(at time.Time) environmentChainOption {
	return func(c *store.EnvironmentChain) { c.Environment.Credentials.TokenExpires = at }
}

func environmentTenant(t domain.TenantID) environmentChainOption {
	return func(c *store.EnvironmentChain) { c.Link.Tenant, c.Environment.Tenant = t, t }
}

func environmentOperation(s domain.OperationState, message string) environmentChainOption {
	return func(c *store.EnvironmentChain) {
		c.Operation = operationOn(domain.ResourceManagedEnvironment, c.Link.UID, s, message)
	}
}

type credentialOption func(*v1alpha1.GitOpsDeploymentRepositoryCredential)

func credential(options ...credentialOption) *v1alpha1.GitOpsDeploymentRepositoryCredential {
	cr := &v1alpha1.GitOpsDeploymentRepositoryCredential{
		ObjectMeta: meta("git", "uid-git"),
		Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: repo, Secret: "login"},
	}
	for _, o := range options {
		o(cr)
	}
	return cr
}

func credentialUID(uid string) credentialOption {
	return func(cr *v1alpha1.GitOpsDeploymentRepositoryCredential) { cr.UID = types.UID(uid) }
}

func credentialDeleted(cr *v1alpha1.GitOpsDeploymentRepositoryCredential) { deleted(&cr.ObjectMeta) }

func forRepository(url string) credentialOption {
	return func(cr *v1alpha1.GitOpsDeploymentRepositoryCredential) { cr.Spec.Repository = url }
}

func loginSecret(data map[string]string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: meta("login", "uid-login"), Type: v1alpha1.RepositoryCredentialSecretType, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}

func login() *corev1.Secret {
	return loginSecret(map[string]string{"username": "robot", "password": canary})
}

type credentialChainOption func(*store.CredentialChain)

// storedAs is what the database holds of credential "git".
func storedAs(uid string, options ...credentialChainOption) store.CredentialChain {
	c := store.CredentialChain{
		Link: store.CRLink{Kind: store.KindCredential, UID: uid, Tenant: tenantA, Namespace: team, Name: "git"},
		Credential: &store.RepositoryCredential{
			ID: domain.CredentialID(uid), Tenant: tenantA, Instance: engineID, Repository: repo, KeyID: "key", Version: 3,
		},
	}
	for _, o := range options {
		o(&c)
	}
	return c
}

func credentialTenant(t domain.TenantID) credentialChainOption {
	return func(c *store.CredentialChain) { c.Link.Tenant, c.Credential.Tenant = t, t }
}
