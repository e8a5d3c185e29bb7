// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// TTLAnnotation says, on a GitOpsDeploymentSyncRun, how long it stays once it has
// ended, such as "10m" or "48h".
const TTLAnnotation = "managed-gitops.redhat.com/ttl-after-finished"

// GitOpsDeploymentSyncRunSpec says which GitOpsDeployment to deploy now. It
// cannot be changed: a run is one deployment.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable, a GitOpsDeploymentSyncRun is one deployment: create another one instead"
type GitOpsDeploymentSyncRunSpec struct {
	// GitopsDeploymentName is the GitOpsDeployment, in the same namespace. It
	// may be created later than the run, which waits for it.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="gitopsDeploymentName must be the name of a GitOpsDeployment in this namespace: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	GitopsDeploymentName string `json:"gitopsDeploymentName"`

	// RevisionID is the commit, branch or tag to deploy. Without it: the newest
	// commit of the deployment's target revision.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('-')",message="revisionID must not begin with '-': give a commit, a branch or a tag"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Z}\\\\p{C}]')",message="revisionID must not contain spaces or control characters: give a commit, a branch or a tag"
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="revisionID must not contain '..': give one commit, branch or tag, not a range"
	RevisionID string `json:"revisionID,omitempty"`
}

// GitOpsDeploymentSyncRunStatus is what became of a run. It is written for the
// last time when the run ends.
type GitOpsDeploymentSyncRunStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Health of the deployment when this was last written.
	// +optional
	Health HealthStatusCode `json:"health,omitempty"`

	// SyncStatus of the deployment when this was last written.
	// +optional
	SyncStatus SyncStatusCode `json:"syncStatus,omitempty"`

	// Conditions: Succeeded once it has ended, ErrorOccurred where it could not run.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []Condition `json:"conditions,omitempty"`

	// Revision is the commit that was synced.
	// +optional
	Revision string `json:"revision,omitempty"`

	// StartedAt is when the engine began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`

	// FinishedAt is when the run ended, well or not. Some time after it the run is removed.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// GitOpsDeploymentSyncRun deploys a GitOpsDeployment once, now.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitopsdeploymentsyncruns,singular=gitopsdeploymentsyncrun,shortName=syncrun;syncruns,categories=weir
// +kubebuilder:printcolumn:name="Deployment",type=string,JSONPath=`.spec.gitopsDeploymentName`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Sync",type=string,JSONPath=`.status.syncStatus`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GitOpsDeploymentSyncRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitOpsDeploymentSyncRunSpec `json:"spec"`
	// +optional
	Status GitOpsDeploymentSyncRunStatus `json:"status,omitzero"`
}

// GitOpsDeploymentSyncRunList is a list of GitOpsDeploymentSyncRuns.
// +kubebuilder:object:root=true
type GitOpsDeploymentSyncRunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitOpsDeploymentSyncRun `json:"items"`
}
