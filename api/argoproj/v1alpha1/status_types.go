// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// SyncStatusCode says whether the cluster is as Git says.
type SyncStatusCode string

// Sync codes.
const (
	SyncStatusSynced    SyncStatusCode = "Synced"
	SyncStatusOutOfSync SyncStatusCode = "OutOfSync"
	SyncStatusUnknown   SyncStatusCode = "Unknown"
)

// HealthStatusCode says how well something runs.
type HealthStatusCode string

// Health codes.
const (
	HealthStatusHealthy     HealthStatusCode = "Healthy"
	HealthStatusProgressing HealthStatusCode = "Progressing"
	HealthStatusDegraded    HealthStatusCode = "Degraded"
	HealthStatusSuspended   HealthStatusCode = "Suspended"
	HealthStatusMissing     HealthStatusCode = "Missing"
	HealthStatusUnknown     HealthStatusCode = "Unknown"
)

// Condition types of an Application. Names that end in Error or Warning say
// how bad it is.
const (
	ConditionComparisonError         = "ComparisonError"
	ConditionSyncError               = "SyncError"
	ConditionInvalidSpecError        = "InvalidSpecError"
	ConditionDeletionError           = "DeletionError"
	ConditionUnknownError            = "UnknownError"
	ConditionSharedResourceWarning   = "SharedResourceWarning"
	ConditionRepeatedResourceWarning = "RepeatedResourceWarning"
	ConditionExcludedResourceWarning = "ExcludedResourceWarning"
	ConditionOrphanedResourceWarning = "OrphanedResourceWarning"
)

// ApplicationStatus is what became of an Application.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationStatus struct {
	// +optional
	Sync SyncStatus `json:"sync,omitzero"`
	// +optional
	Health HealthStatus `json:"health,omitzero"`
	// +optional
	// +listType=atomic
	Resources []ResourceStatus `json:"resources,omitempty"`
	// +optional
	OperationState *OperationState `json:"operationState,omitempty"`
	// +optional
	// +listType=atomic
	History []RevisionHistory `json:"history,omitempty"`
	// +optional
	// +listType=atomic
	Conditions []ApplicationCondition `json:"conditions,omitempty"`
	// ReconciledAt is when Git and the cluster were last compared.
	// +optional
	ReconciledAt *metav1.Time `json:"reconciledAt,omitempty"`
	// SourceType is Directory, Kustomize, Helm or Plugin.
	// +optional
	SourceType string `json:"sourceType,omitempty"`
	// +optional
	Summary ApplicationSummary `json:"summary,omitzero"`
	// ControllerNamespace is where the engine runs that wrote this.
	// +optional
	ControllerNamespace string `json:"controllerNamespace,omitempty"`
}

// SyncStatus is whether the cluster is as Git says.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncStatus struct {
	// +optional
	Status SyncStatusCode `json:"status,omitempty"`
	// Revision is the commit that the cluster was compared with.
	// +optional
	Revision string `json:"revision,omitempty"`
	// ComparedTo is what the spec was at that time.
	// +optional
	ComparedTo ComparedTo `json:"comparedTo,omitzero"`
}

// ComparedTo is the part of a spec that a comparison used.
// +kubebuilder:pruning:PreserveUnknownFields
type ComparedTo struct {
	// +optional
	Source *ApplicationSource `json:"source,omitempty"`
	// +optional
	Destination ApplicationDestination `json:"destination,omitzero"`
	// +optional
	// +listType=atomic
	IgnoreDifferences []ResourceIgnoreDifferences `json:"ignoreDifferences,omitempty"`
}

// HealthStatus is how well something runs.
// +kubebuilder:pruning:PreserveUnknownFields
type HealthStatus struct {
	// +optional
	Status HealthStatusCode `json:"status,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// ResourceStatus is one resource of an Application.
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceStatus struct {
	// +optional
	Group string `json:"group,omitempty"`
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	Kind string `json:"kind,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Status SyncStatusCode `json:"status,omitempty"`
	// +optional
	Health *HealthStatus `json:"health,omitempty"`
	// +optional
	Hook bool `json:"hook,omitempty"`
	// RequiresPruning: it is in the cluster and no longer in Git.
	// +optional
	RequiresPruning bool `json:"requiresPruning,omitempty"`
	// +optional
	SyncWave int64 `json:"syncWave,omitempty"`
}

// ApplicationCondition is an error or a warning that holds now.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationCondition struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// RevisionHistory is one past deployment.
// +kubebuilder:pruning:PreserveUnknownFields
type RevisionHistory struct {
	// ID counts the deployments of the Application.
	ID int64 `json:"id"`
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	Source *ApplicationSource `json:"source,omitempty"`
	// +optional
	DeployStartedAt *metav1.Time `json:"deployStartedAt,omitempty"`
	// +optional
	DeployedAt *metav1.Time `json:"deployedAt,omitempty"`
	// +optional
	InitiatedBy OperationInitiator `json:"initiatedBy,omitzero"`
}

// ApplicationSummary is what people want to see at a glance.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationSummary struct {
	// +optional
	// +listType=atomic
	ExternalURLs []string `json:"externalURLs,omitempty"`
	// +optional
	// +listType=atomic
	Images []string `json:"images,omitempty"`
}
