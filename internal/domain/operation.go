// SPDX-License-Identifier: Apache-2.0

package domain

// ResourceType says which table an Operation points into.
type ResourceType string

// The resource types of the specification. ManagedEnvironment is what its text
// calls "cluster access".
const (
	ResourceApplication          ResourceType = "Application"
	ResourceManagedEnvironment   ResourceType = "ManagedEnvironment"
	ResourceRepositoryCredential ResourceType = "RepositoryCredential"
	ResourceSyncOperation        ResourceType = "SyncOperation"
	ResourceEngineInstance       ResourceType = "GitOpsEngineInstance"
)

// OperationState is how far the agent is with an Operation.
type OperationState string

// Waiting operations are the outbox. In_Progress ones have been looked at and
// wait for the engine. Completed and Failed are final.
const (
	OperationWaiting    OperationState = "Waiting"
	OperationInProgress OperationState = "In_Progress"
	OperationCompleted  OperationState = "Completed"
	OperationFailed     OperationState = "Failed"
)

// OperationRemoved is the message of a completed operation that found its row
// gone and has seen the end of the engine's object. It tells the end of a removal
// from that of an earlier operation on the same resource.
const OperationRemoved = "removed"

// Final reports whether the agent is done with an operation in this state.
func (s OperationState) Final() bool {
	return s == OperationCompleted || s == OperationFailed
}
