// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the four kinds that tenants write, group
// managed-gitops.redhat.com:
//
//   - GitOpsDeployment: what to deploy, from which Git repository, to where;
//   - GitOpsDeploymentSyncRun: one deployment of it, now;
//   - GitOpsDeploymentManagedEnvironment: another cluster to deploy to;
//   - GitOpsDeploymentRepositoryCredential: how to read a private repository.
//
// Field names are those of the published API, so that manifests written for it
// apply unchanged. What Weir adds is optional.
//
// # Where a wrong resource is refused
//
// The markers on the fields become the schema and the CEL rules of the
// CustomResourceDefinitions in config/crd, so the API server itself refuses a
// wrong resource and no webhook has to be up for it. Three habits run through
// them:
//
//   - Every text and every list that a tenant writes has an upper bound. That
//     keeps the CEL rules within the API server's cost budget, and keeps a
//     flood of text out of etcd, the database and the logs.
//   - A rule's message says what to do instead. The API server adds the value
//     that it refuses where the rule stands on a text, but not where it stands
//     on the object around it; rules about URLs therefore stand on the object,
//     because a URL may carry a password. (There they are written without an
//     empty text in single quotes, of which gofmt would make a typographic one.)
//   - An optional text may also be given as "", because clients in Go write it
//     so.
//
// What a schema cannot say (a path that climbs out of the repository, a
// namespace that is not the tenant's own) is judged by the service and told in
// a condition.
//
// Status fields have no rules: they are written by the service alone, and a
// status that is refused would hide the very fault that it reports.
//
// +kubebuilder:object:generate=true
// +groupName=managed-gitops.redhat.com
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of the tenant kinds.
var GroupVersion = schema.GroupVersion{Group: "managed-gitops.redhat.com", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that register the tenant kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers the tenant kinds in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&GitOpsDeployment{}, &GitOpsDeploymentList{},
		&GitOpsDeploymentSyncRun{}, &GitOpsDeploymentSyncRunList{},
		&GitOpsDeploymentManagedEnvironment{}, &GitOpsDeploymentManagedEnvironmentList{},
		&GitOpsDeploymentRepositoryCredential{}, &GitOpsDeploymentRepositoryCredentialList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
