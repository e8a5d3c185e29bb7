// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition is one statement about a GitOpsDeployment or a
// GitOpsDeploymentSyncRun. It differs from metav1.Condition in the published
// API's lastProbeTime and in times that may be absent.
type Condition struct {
	// Type names what the condition is about, such as ErrorOccurred.
	Type ConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// Reason is one word for programs. A condition that no longer holds has
	// status False and the same reason with "Resolved" after it.
	// +optional
	Reason ConditionReason `json:"reason,omitempty"`
	// Message is for people: what is wrong and what to do.
	// +optional
	Message string `json:"message,omitempty"`
	// LastProbeTime is when the condition was last looked at and found changed.
	// +optional
	LastProbeTime *metav1.Time `json:"lastProbeTime,omitempty"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
}

// ConditionType names what a condition is about. The engine's own types (see
// the Application's status.conditions) are passed on under their own names.
type ConditionType string

// Condition types that Weir itself sets.
const (
	// ConditionErrorOccurred: the service could not do what the spec asks.
	ConditionErrorOccurred ConditionType = "ErrorOccurred"
	// ConditionSyncError: the engine could not sync.
	ConditionSyncError ConditionType = "SyncError"
	// ConditionComparisonError: the engine could not compare Git with the cluster.
	ConditionComparisonError ConditionType = "ComparisonError"
	// ConditionSucceeded: the SyncRun ended and the sync succeeded.
	ConditionSucceeded ConditionType = "Succeeded"

	// ConditionConnectionInitializationSucceeded: the environment's cluster
	// answered with the credentials given.
	ConditionConnectionInitializationSucceeded ConditionType = "ConnectionInitializationSucceeded"

	// ConditionValidRepositoryURL: the repository's URL is one Weir can use.
	ConditionValidRepositoryURL ConditionType = "ValidRepositoryURL"
	// ConditionValidRepositoryCredential: the repository answered with the credentials given.
	ConditionValidRepositoryCredential ConditionType = "ValidRepositoryCredential"
)

// ConditionReason is a condition's one word for programs.
type ConditionReason string

// Resolved gives the reason that a condition carries once it no longer holds:
// X becomes XResolved.
func (r ConditionReason) Resolved() ConditionReason {
	return r + "Resolved"
}

// Reasons of a GitOpsDeployment and of a GitOpsDeploymentSyncRun. A condition
// of the engine has its type as its reason.
const (
	ReasonErrorOccurred   ConditionReason = "ErrorOccurred"
	ReasonSyncError       ConditionReason = "SyncError"
	ReasonComparisonError ConditionReason = "ComparisonError"
	ReasonSucceeded       ConditionReason = "Succeeded"
)

// Reasons of a GitOpsDeploymentManagedEnvironment's condition
// ConnectionInitializationSucceeded; ReasonSucceeded is the good one.
const (
	ReasonUnsupportedAPIURL                  ConditionReason = "UnsupportedAPIURL"
	ReasonInvalidSecretType                  ConditionReason = "InvalidSecretType"
	ReasonMissingKubeConfigField             ConditionReason = "MissingKubeConfigField"
	ReasonUnableToParseKubeconfigData        ConditionReason = "UnableToParseKubeconfigData"
	ReasonUnableToLocateContext              ConditionReason = "UnableToLocateContext"
	ReasonUnableToRetrieveRestConfig         ConditionReason = "UnableToRetrieveRestConfig"
	ReasonUnableToCreateClient               ConditionReason = "UnableToCreateClient"
	ReasonUnableToInstallServiceAccount      ConditionReason = "UnableToInstallServiceAccount"
	ReasonUnableToValidateClusterCredentials ConditionReason = "UnableToValidateClusterCredentials"
	ReasonUnableToCreateClusterCredentials   ConditionReason = "UnableToCreateClusterCredentials"
	ReasonInvalidNamespaceList               ConditionReason = "InvalidNamespaceList"
	ReasonKubernetesError                    ConditionReason = "KubernetesError"
	ReasonDatabaseError                      ConditionReason = "DatabaseError"
	ReasonUnknownError                       ConditionReason = "UnknownError"
)

// Reasons of a GitOpsDeploymentRepositoryCredential.
const (
	ReasonRepositoryCredentialUpToDate ConditionReason = "RepositoryCredentialUpToDate"
	ReasonSecretNotSpecified           ConditionReason = "SecretNotSpecified"
	ReasonSecretNotFound               ConditionReason = "SecretNotFound"
	ReasonSecretInvalidType            ConditionReason = "SecretInvalidType"
	ReasonInvalidCredentials           ConditionReason = "InvalidCredentials"
	ReasonInvalidRepositoryURL         ConditionReason = "InvalidRepositoryUrl"
	ReasonValidRepositoryURL           ConditionReason = "ValidRepositoryUrl"
)
