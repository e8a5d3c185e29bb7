// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AppProject limits what the Applications that name it may deploy. What a list
// does not name is not allowed, save for the kinds with a namespace, which are
// all allowed unless one of their two lists says otherwise.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=appprojects,singular=appproject,shortName=appproj;appprojs
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type AppProject struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec AppProjectSpec `json:"spec"`
	// +optional
	Status AppProjectStatus `json:"status,omitzero"`
}

// AppProjectList is a list of AppProjects.
// +kubebuilder:object:root=true
type AppProjectList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []AppProject `json:"items"`
}

// AppProjectSpec is the limits.
// +kubebuilder:pruning:PreserveUnknownFields
type AppProjectSpec struct {
	// +optional
	Description string `json:"description,omitempty"`
	// SourceRepos are the repositories to deploy from.
	// +optional
	// +listType=atomic
	SourceRepos []string `json:"sourceRepos,omitempty"`
	// Destinations are the clusters and namespaces to deploy to.
	// +optional
	// +listType=atomic
	Destinations []ApplicationDestination `json:"destinations,omitempty"`
	// ClusterResourceWhitelist are the kinds without a namespace that may be deployed.
	// +optional
	// +listType=atomic
	ClusterResourceWhitelist []ClusterResource `json:"clusterResourceWhitelist,omitempty"`
	// +optional
	// +listType=atomic
	ClusterResourceBlacklist []ClusterResource `json:"clusterResourceBlacklist,omitempty"`
	// NamespaceResourceWhitelist, where given, are the only kinds with a namespace that may be deployed.
	// +optional
	// +listType=atomic
	NamespaceResourceWhitelist []metav1.GroupKind `json:"namespaceResourceWhitelist,omitempty"`
	// NamespaceResourceBlacklist are the kinds with a namespace that may not.
	// +optional
	// +listType=atomic
	NamespaceResourceBlacklist []metav1.GroupKind `json:"namespaceResourceBlacklist,omitempty"`
	// SourceNamespaces are further namespaces whose Applications may name this project.
	// +optional
	// +listType=atomic
	SourceNamespaces []string `json:"sourceNamespaces,omitempty"`
	// DestinationServiceAccounts are the service accounts to deploy as; the first match counts.
	// +optional
	// +listType=atomic
	DestinationServiceAccounts []DestinationServiceAccount `json:"destinationServiceAccounts,omitempty"`
	// PermitOnlyProjectScopedClusters refuses clusters whose Secret does not name this project.
	// +optional
	PermitOnlyProjectScopedClusters bool `json:"permitOnlyProjectScopedClusters,omitempty"`
}

// ClusterResource is a kind without a namespace, or a resource of it.
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterResource struct {
	Group string `json:"group"`
	Kind  string `json:"kind"`
	// Name restricts it to resources whose name matches.
	// +optional
	Name string `json:"name,omitempty"`
}

// DestinationServiceAccount says as whom to deploy to a destination.
// +kubebuilder:pruning:PreserveUnknownFields
type DestinationServiceAccount struct {
	Server string `json:"server"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// DefaultServiceAccount is name or namespace:name.
	DefaultServiceAccount string `json:"defaultServiceAccount"`
}

// AppProjectStatus belongs to the engine.
// +kubebuilder:pruning:PreserveUnknownFields
type AppProjectStatus struct{}
