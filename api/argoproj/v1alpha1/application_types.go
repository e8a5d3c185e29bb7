// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// ResourcesFinalizer makes the engine remove what an Application deployed
	// before the Application itself goes.
	ResourcesFinalizer = "resources-finalizer.argocd.argoproj.io"

	// RefreshAnnotation asks the engine to compare again: RefreshNormal, or
	// RefreshHard to render again as well. The engine removes it when done.
	RefreshAnnotation = "argocd.argoproj.io/refresh"
	// RefreshNormal compares with the newest commit.
	RefreshNormal = "normal"
	// RefreshHard also throws away what was rendered before.
	RefreshHard = "hard"

	// SecretTypeLabel marks a Secret that the engine reads as configuration.
	SecretTypeLabel = "argocd.argoproj.io/secret-type"
	// SecretTypeCluster is its value for a cluster to deploy to.
	SecretTypeCluster = "cluster"
	// SecretTypeRepository is its value for a repository with its credentials.
	SecretTypeRepository = "repository"
)

// Application is what an engine deploys and keeps deployed.
// +kubebuilder:object:root=true
// +kubebuilder:resource:path=applications,singular=application,shortName=app;apps
// +kubebuilder:printcolumn:name="Sync Status",type=string,JSONPath=`.status.sync.status`
// +kubebuilder:printcolumn:name="Health Status",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Revision",type=string,priority=10,JSONPath=`.status.sync.revision`
// +kubebuilder:printcolumn:name="Project",type=string,priority=10,JSONPath=`.spec.project`
type Application struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec ApplicationSpec `json:"spec"`
	// +optional
	Status ApplicationStatus `json:"status,omitzero"`
	// Operation is a sync that is asked for. The engine takes it away when it starts.
	// +optional
	Operation *Operation `json:"operation,omitempty"`
}

// ApplicationList is a list of Applications.
// +kubebuilder:object:root=true
type ApplicationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Application `json:"items"`
}

// ApplicationSpec says what to deploy and to where.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationSpec struct {
	// Project is the AppProject whose limits apply.
	Project string `json:"project"`
	// +optional
	Source *ApplicationSource `json:"source,omitempty"`
	// +optional
	Destination ApplicationDestination `json:"destination,omitzero"`
	// +optional
	SyncPolicy *SyncPolicy `json:"syncPolicy,omitempty"`
	// +optional
	// +listType=atomic
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
	// RevisionHistoryLimit is how many entries status.history keeps.
	// +optional
	RevisionHistoryLimit *int64 `json:"revisionHistoryLimit,omitempty"`
}

// ApplicationDestination is a namespace of a cluster, which is given by its
// address or by the name of its Secret, not by both.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationDestination struct {
	// +optional
	Server string `json:"server,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// SyncPolicy says when and how to sync.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncPolicy struct {
	// Automated syncs without being asked. Absent: only on request.
	// +optional
	Automated *SyncPolicyAutomated `json:"automated,omitempty"`
	// +optional
	// +listType=atomic
	SyncOptions []string `json:"syncOptions,omitempty"`
	// +optional
	Retry *RetryStrategy `json:"retry,omitempty"`
}

// SyncPolicyAutomated says what a sync without a request may do.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncPolicyAutomated struct {
	// Enabled may switch automated syncs off without removing the rest.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// Prune removes what is no longer in Git.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// SelfHeal also syncs when the cluster, not Git, has changed.
	// +optional
	SelfHeal bool `json:"selfHeal,omitempty"`
	// AllowEmpty lets a sync prune everything.
	// +optional
	AllowEmpty bool `json:"allowEmpty,omitempty"`
}

// RetryStrategy says how often and how fast a failed sync is tried again.
// +kubebuilder:pruning:PreserveUnknownFields
type RetryStrategy struct {
	// Limit of attempts after the first; negative for none.
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// +optional
	Backoff *Backoff `json:"backoff,omitempty"`
}

// Backoff is the time between attempts.
// +kubebuilder:pruning:PreserveUnknownFields
type Backoff struct {
	// +optional
	Duration string `json:"duration,omitempty"`
	// +optional
	Factor *int64 `json:"factor,omitempty"`
	// +optional
	MaxDuration string `json:"maxDuration,omitempty"`
}

// ResourceIgnoreDifferences names fields whose difference does not count.
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceIgnoreDifferences struct {
	// +optional
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	// +listType=atomic
	JSONPointers []string `json:"jsonPointers,omitempty"`
	// +optional
	// +listType=atomic
	JQPathExpressions []string `json:"jqPathExpressions,omitempty"`
	// ManagedFieldsManagers own fields that are not compared.
	// +optional
	// +listType=atomic
	ManagedFieldsManagers []string `json:"managedFieldsManagers,omitempty"`
}
