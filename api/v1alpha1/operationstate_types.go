// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// OperationPhase is how far a sync has come.
type OperationPhase string

// Phases, as the engine reports them.
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

// OperationState is a sync that runs or has ended. Its JSON is that of the
// Application's status.operationState, less what is the engine's own business:
// decoding the one into the other is the reduction.
type OperationState struct {
	// Operation is what was asked for.
	// +optional
	Operation RequestedOperation `json:"operation,omitzero"`
	// Phase is Running, Terminating, Succeeded, Failed or Error.
	// +optional
	Phase OperationPhase `json:"phase,omitempty"`
	// Message says why.
	// +optional
	Message string `json:"message,omitempty"`
	// SyncResult is what has been done so far.
	// +optional
	SyncResult *SyncOperationResult `json:"syncResult,omitempty"`
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
	// RetryCount counts the attempts after the first.
	// +optional
	RetryCount int64 `json:"retryCount,omitempty"`
}

// RequestedOperation is a sync that somebody asked for.
type RequestedOperation struct {
	// +optional
	Sync *SyncRequest `json:"sync,omitempty"`
	// +optional
	InitiatedBy OperationInitiator `json:"initiatedBy,omitzero"`
	// +optional
	Retry RetryStrategy `json:"retry,omitzero"`
}

// SyncRequest says what to sync and how.
type SyncRequest struct {
	// Revision is the commit asked for; empty for the source's target revision.
	// +optional
	Revision string `json:"revision,omitempty"`
	// Prune removes what is no longer in Git.
	// +optional
	Prune bool `json:"prune,omitempty"`
	// SyncOptions as they were handed to the engine.
	// +optional
	// +listType=atomic
	SyncOptions []string `json:"syncOptions,omitempty"`
}

// OperationInitiator is who asked for a sync.
type OperationInitiator struct {
	// +optional
	Username string `json:"username,omitempty"`
	// Automated is true for a sync that the engine started itself.
	// +optional
	Automated bool `json:"automated,omitempty"`
}

// RetryStrategy says how often and how fast a failed sync is tried again.
type RetryStrategy struct {
	// +optional
	Limit int64 `json:"limit,omitempty"`
	// +optional
	Backoff *Backoff `json:"backoff,omitempty"`
}

// Backoff is the time between attempts.
type Backoff struct {
	// Duration of the first wait, such as "5s".
	// +optional
	Duration string `json:"duration,omitempty"`
	// Factor by which each wait exceeds the one before.
	// +optional
	Factor *int64 `json:"factor,omitempty"`
	// MaxDuration that no wait exceeds.
	// +optional
	MaxDuration string `json:"maxDuration,omitempty"`
}

// SyncOperationResult is what a sync has done.
type SyncOperationResult struct {
	// Revision is the commit that was synced.
	// +optional
	Revision string `json:"revision,omitempty"`
	// +optional
	Source SyncSource `json:"source,omitzero"`
	// +optional
	// +listType=atomic
	Resources []ResourceResult `json:"resources,omitempty"`
}

// SyncSource is where a past sync took the manifests from. It has the fields of
// ApplicationSource without their rules: the past is not refused.
type SyncSource struct {
	// +optional
	RepoURL string `json:"repoURL,omitempty"`
	// +optional
	Path string `json:"path,omitempty"`
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`
}

// ResourceResult is what a sync did with one resource.
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
	// Status is Synced, SyncFailed, Pruned or PruneSkipped.
	// +optional
	Status string `json:"status,omitempty"`
	// +optional
	Message string `json:"message,omitempty"`
	// HookPhase is how far a hook has come, or the resource's own apply.
	// +optional
	HookPhase OperationPhase `json:"hookPhase,omitempty"`
	// SyncPhase is the phase of the sync it belongs to: PreSync, Sync, PostSync…
	// +optional
	SyncPhase string `json:"syncPhase,omitempty"`
}
