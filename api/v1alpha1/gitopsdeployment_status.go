// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// HealthStatusCode says how well something runs.
type HealthStatusCode string

// Health codes, as the engine reports them.
const (
	HealthHealthy     HealthStatusCode = "Healthy"
	HealthProgressing HealthStatusCode = "Progressing"
	HealthDegraded    HealthStatusCode = "Degraded"
	HealthSuspended   HealthStatusCode = "Suspended"
	HealthMissing     HealthStatusCode = "Missing"
	HealthUnknown     HealthStatusCode = "Unknown"
)

// SyncStatusCode says whether the cluster is as Git says.
type SyncStatusCode string

// Sync codes, as the engine reports them.
const (
	SyncSynced    SyncStatusCode = "Synced"
	SyncOutOfSync SyncStatusCode = "OutOfSync"
	SyncUnknown   SyncStatusCode = "Unknown"
)

// GitOpsDeploymentStatus is what became of a GitOpsDeployment.
type GitOpsDeploymentStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions are the errors and warnings, present and resolved.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// Health is how well the deployed resources run, taken together.
	// +optional
	Health HealthStatus `json:"health,omitzero"`

	// Sync is whether the cluster is as Git says.
	// +optional
	Sync SyncStatus `json:"sync,omitzero"`

	// Resources are the deployed resources one by one.
	// +optional
	// +listType=atomic
	Resources []ResourceStatus `json:"resources,omitempty"`

	// ReconciledState is the source and destination that sync and health speak
	// of. Just after an edit it still names the old ones.
	// +optional
	ReconciledState ReconciledState `json:"reconciledState,omitzero"`

	// OperationState is the sync that runs now, or else the last one.
	// +optional
	OperationState *OperationState `json:"operationState,omitempty"`

	// History is the last few deployments, oldest first.
	// +optional
	// +listType=atomic
	History []HistoryEntry `json:"history,omitempty"`
}

// HealthStatus is how well something runs.
type HealthStatus struct {
	// Status is Healthy, Progressing, Degraded, Suspended, Missing or Unknown.
	// +optional
	Status HealthStatusCode `json:"status,omitempty"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
}

// SyncStatus is whether the cluster is as Git says.
type SyncStatus struct {
	// Status is Synced, OutOfSync or Unknown.
	// +optional
	Status SyncStatusCode `json:"status,omitempty"`
	// Revision is the commit that the cluster was compared with.
	// +optional
	Revision string `json:"revision,omitempty"`
}

// ResourceStatus is one deployed resource.
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
	// Status is Synced, OutOfSync or Unknown.
	// +optional
	Status SyncStatusCode `json:"status,omitempty"`
	// Health is absent for kinds that have none.
	// +optional
	Health *HealthStatus `json:"health,omitempty"`
}

// ReconciledState is a source and destination that the engine has compared.
type ReconciledState struct {
	// +optional
	Source ReconciledSource `json:"source,omitzero"`
	// +optional
	Destination ReconciledDestination `json:"destination,omitzero"`
}

// ReconciledSource is the source that the engine has compared.
type ReconciledSource struct {
	// +optional
	RepoURL string `json:"repoURL,omitempty"`
	// +optional
	Path string `json:"path,omitempty"`
	// Branch is the target revision, under the published API's name for it.
	// +optional
	Branch string `json:"branch,omitempty"`
}

// ReconciledDestination is the destination that the engine has compared.
type ReconciledDestination struct {
	// Name is the environment as the tenant named it; empty for the cluster of this resource.
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// HistoryEntry is one past deployment.
type HistoryEntry struct {
	// ID counts the deployments of this resource.
	ID int64 `json:"id"`
	// Revision is the commit that was deployed.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Source is where it came from.
	// +optional
	Source SyncSource `json:"source,omitzero"`
	// Phase is how the sync ended: Succeeded, Failed or Error.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`
	// Message says why it ended so.
	// +optional
	Message string `json:"message,omitempty"`
	// InitiatedBy is who asked for it.
	// +optional
	InitiatedBy OperationInitiator `json:"initiatedBy,omitzero"`
	// +optional
	DeployStartedAt *metav1.Time `json:"deployStartedAt,omitempty"`
	// +optional
	DeployedAt *metav1.Time `json:"deployedAt,omitempty"`
}
