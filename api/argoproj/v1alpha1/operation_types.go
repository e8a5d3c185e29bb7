// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationPhase is how far an operation, or a hook, has come.
type OperationPhase string

// Phases. To end a running operation early, set its phase to Terminating.
const (
	OperationRunning     OperationPhase = "Running"
	OperationTerminating OperationPhase = "Terminating"
	OperationSucceeded   OperationPhase = "Succeeded"
	OperationFailed      OperationPhase = "Failed"
	OperationError       OperationPhase = "Error"
)

// Completed tells whether the phase is a final one.
func (p OperationPhase) Completed() bool {
	switch p {
	case OperationSucceeded, OperationFailed, OperationError:
		return true
	default:
		return false
	}
}

// Results of a sync for one resource.
const (
	ResultSynced       = "Synced"
	ResultSyncFailed   = "SyncFailed"
	ResultPruned       = "Pruned"
	ResultPruneSkipped = "PruneSkipped"
)

// Operation is a sync that somebody asks for.
// +kubebuilder:pruning:PreserveUnknownFields
type Operation struct {
	// +optional
	Sync *SyncOperation `json:"sync,omitempty"`
	// +optional
	InitiatedBy OperationInitiator `json:"initiatedBy,omitzero"`
	// Info is passed on untouched, for whoever asked to find again.
	// +optional
	// +listType=atomic
	Info []Info `json:"info,omitempty"`
	// +optional
	Retry RetryStrategy `json:"retry,omitzero"`
}

// SyncOperation says what to sync and how.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncOperation struct {
	// Revision to sync to; empty for the source's target revision.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Prune removes what is no longer in Git.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// DryRun only tells what would be done.
	// +optional
	DryRun bool `json:"dryRun,omitempty"`
	// +optional
	// +listType=atomic
	SyncOptions []string `json:"syncOptions,omitempty"`
	// Resources restricts the sync to these.
	// +optional
	// +listType=atomic
	Resources []SyncOperationResource `json:"resources,omitempty"`
	// Source instead of the spec's.
	// +optional
	Source *ApplicationSource `json:"source,omitempty"`
}

// SyncOperationResource names one resource to sync.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncOperationResource struct {
	// +optional
	Group string `json:"group,omitempty"`
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
}

// OperationInitiator is who asked for an operation.
// +kubebuilder:pruning:PreserveUnknownFields
type OperationInitiator struct {
	// +optional
	Username string `json:"username,omitempty"`
	// Automated is true where the engine itself did.
	// +optional
	Automated bool `json:"automated,omitempty"`
}

// Info is a name and a value.
// +kubebuilder:pruning:PreserveUnknownFields
type Info struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// OperationState is an operation that runs or has ended.
// +kubebuilder:pruning:PreserveUnknownFields
type OperationState struct {
	// +optional
	Operation Operation `json:"operation,omitzero"`
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	SyncResult *SyncOperationResult `json:"syncResult,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// +optional
	RetryCount int64 `json:"retryCount,omitempty"`
}

// SyncOperationResult is what a sync has done so far.
// +kubebuilder:pruning:PreserveUnknownFields
type SyncOperationResult struct {
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	Source *ApplicationSource `json:"source,omitempty"`
	// +optional
	// +listType=atomic
	Resources []ResourceResult `json:"resources,omitempty"`
}

// ResourceResult is what a sync did with one resource.
// +kubebuilder:pruning:PreserveUnknownFields
type ResourceResult struct {
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
	Status string `json:"status,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// +optional
	HookType string `json:"hookType,omitempty"`
	// +optional
	HookPhase OperationPhase `json:"hookPhase,omitempty"`
	// +optional
	SyncPhase string `json:"syncPhase,omitempty"`
}
