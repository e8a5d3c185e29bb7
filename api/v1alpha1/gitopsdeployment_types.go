// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// DeletionFinalizer is set by a tenant who wants the GitOpsDeployment to stay
// until everything it deployed is gone.
const DeletionFinalizer = "resources-finalizer.managed-gitops.redhat.com"

// DeploymentType says who starts a deployment.
// +kubebuilder:validation:Enum=automated;manual
type DeploymentType string

const (
	// DeploymentTypeAutomated deploys each new commit, and repairs what was
	// changed by hand in the cluster.
	DeploymentTypeAutomated DeploymentType = "automated"
	// DeploymentTypeManual deploys only when a GitOpsDeploymentSyncRun asks.
	DeploymentTypeManual DeploymentType = "manual"
)

// SyncOption is one switch of a deployment, written name=value.
// +kubebuilder:validation:Enum=CreateNamespace=true;CreateNamespace=false;PruneLast=true;ApplyOutOfSyncOnly=true;ServerSideApply=true;RespectIgnoreDifferences=true
type SyncOption string

const (
	// SyncOptionCreateNamespace creates the destination namespace where it is missing.
	SyncOptionCreateNamespace SyncOption = "CreateNamespace=true"
	// SyncOptionNoCreateNamespace says that it is not created, as without the option.
	SyncOptionNoCreateNamespace SyncOption = "CreateNamespace=false"
	// SyncOptionPruneLast removes what left Git only after all else is healthy.
	SyncOptionPruneLast SyncOption = "PruneLast=true"
	// SyncOptionApplyOutOfSyncOnly applies only what differs.
	SyncOptionApplyOutOfSyncOnly SyncOption = "ApplyOutOfSyncOnly=true"
	// SyncOptionServerSideApply applies on the server, with field ownership.
	SyncOptionServerSideApply SyncOption = "ServerSideApply=true"
	// SyncOptionRespectIgnoreDifferences leaves ignored fields as they are live.
	SyncOptionRespectIgnoreDifferences SyncOption = "RespectIgnoreDifferences=true"
)

// GitOpsDeploymentSpec says what to deploy and to where.
type GitOpsDeploymentSpec struct {
	// Source is the folder of the Git repository that holds the manifests.
	Source ApplicationSource `json:"source"`

	// Destination is where to deploy to. Without it: the namespace of this resource.
	// +optional
	Destination ApplicationDestination `json:"destination,omitzero"`

	// Type is "automated" (each new commit is deployed) or "manual" (only a
	// GitOpsDeploymentSyncRun deploys).
	// ---
	// The published API asks for it always and the specification names no
	// default. Here it may be left out and is then manual, because a cluster
	// should not change by itself unless somebody has said so.
	// +optional
	// +kubebuilder:default=manual
	Type DeploymentType `json:"type,omitempty"`

	// SyncPolicy adjusts how it is deployed.
	// +optional
	SyncPolicy *SyncPolicy `json:"syncPolicy,omitempty"`
}

// ApplicationSource is a folder of a Git repository at a revision.
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="self.repoURL.size() > 0",message="repoURL is empty: give the URL of a Git repository, such as https://git.example.com/team/app"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="self.repoURL.matches('^[!-\\\\[\\\\]-~]*$')",message="repoURL may hold only printable ASCII characters, no space and no backslash: percent-encode any other character"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="self.repoURL.size() == 0 || self.repoURL.matches('^((https?|ssh)://|[^-:/@][^:/@]*@[^:/@]+:)')",message="repoURL must begin with https://, http:// or ssh://, or be of the form git@host:path: file://, git:// and remote helpers such as ext:: are not supported"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="!self.repoURL.matches('^https?://[^/?#]*@') && !self.repoURL.matches('^ssh://[^/?#@]*:[^/?#]*@') && !self.repoURL.matches('^[^:/@]*:[^/]*@')",message="repoURL must not contain credentials: remove the part before '@' and use a GitOpsDeploymentRepositoryCredential"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="!self.repoURL.matches('^(https?|ssh)://') || self.repoURL.matches('^(https?://([^/?#]*@)?|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*(:[^/?#]*)?@)?)([A-Za-z0-9][A-Za-z0-9._-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?#]|$)')",message="repoURL must name a host after '://', such as git.example.com or git.example.com:8443, and with ssh:// at most a user name before it: letters, digits, '.', '-' and '_', not beginning with '-'"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="!self.repoURL.matches('^[^-:/@][^:/@]*@[^:/@]+:') || self.repoURL.matches('^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:[^-:]')",message="repoURL must be user@host:path with no part beginning with '-': write it as an ssh:// URL instead"
// +kubebuilder:validation:XValidation:fieldPath=".repoURL",rule="!self.repoURL.matches('[?#]')",message="repoURL must not contain '?' or '#': give the revision in targetRevision and the folder in path"
type ApplicationSource struct {
	// RepoURL is the repository: https://, http:// or ssh:// URL, or
	// git@host:path. It carries no credentials: those belong in a
	// GitOpsDeploymentRepositoryCredential.
	// +kubebuilder:validation:MaxLength=2048
	RepoURL string `json:"repoURL"`

	// Path is the folder within the repository, relative to its root, such as
	// "deploy/prod". What is no folder to deploy from (empty, "/", absolute,
	// climbing out) is told in a condition.
	// +kubebuilder:validation:MaxLength=1024
	Path string `json:"path"`

	// TargetRevision is a branch, a tag or a commit. Without it: the
	// repository's default branch.
	// +optional
	// +kubebuilder:validation:MaxLength=255
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('-')",message="targetRevision must not begin with '-': give a branch, a tag or a commit"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\\\p{Z}\\\\p{C}]')",message="targetRevision must not contain spaces or control characters: give a branch, a tag or a commit"
	// +kubebuilder:validation:XValidation:rule="!self.contains('..')",message="targetRevision must not contain '..': give one branch, tag or commit, not a range"
	TargetRevision string `json:"targetRevision,omitempty"`
}

// ApplicationDestination is a namespace of an environment.
type ApplicationDestination struct {
	// Environment is the name of a GitOpsDeploymentManagedEnvironment in the
	// same namespace as this resource. Without it: the cluster of this resource.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="environment must be the name of a GitOpsDeploymentManagedEnvironment in this namespace: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Environment string `json:"environment,omitempty"`

	// Namespace is where resources go that name no namespace themselves.
	// Without it: the namespace of this resource. Without an environment it
	// must be the namespace of this resource.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespace must be the name of a namespace: lower-case letters, digits and '-', beginning and ending with a letter or digit"
	Namespace string `json:"namespace,omitempty"`
}

// SyncPolicy adjusts how a deployment is carried out.
type SyncPolicy struct {
	// SyncOptions are switches, each written name=value.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=10
	// +kubebuilder:validation:XValidation:rule="!('CreateNamespace=true' in self && 'CreateNamespace=false' in self)",message="syncOptions says both CreateNamespace=true and CreateNamespace=false: keep one of them"
	SyncOptions []SyncOption `json:"syncOptions,omitempty"`
}

// GitOpsDeployment deploys a folder of a Git repository to a namespace and
// keeps it there.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitopsdeployments,singular=gitopsdeployment,shortName=gitopsdepl;gd,categories=weir
// +kubebuilder:printcolumn:name="Sync",type=string,JSONPath=`.status.sync.status`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health.status`
// +kubebuilder:printcolumn:name="Revision",type=string,JSONPath=`.status.sync.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Type",type=string,priority=1,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Repository",type=string,priority=1,JSONPath=`.spec.source.repoURL`
// +kubebuilder:printcolumn:name="Path",type=string,priority=1,JSONPath=`.spec.source.path`
// +kubebuilder:printcolumn:name="Environment",type=string,priority=1,JSONPath=`.spec.destination.environment`
type GitOpsDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitOpsDeploymentSpec `json:"spec"`
	// +optional
	Status GitOpsDeploymentStatus `json:"status,omitzero"`
}

// GitOpsDeploymentList is a list of GitOpsDeployments.
// +kubebuilder:object:root=true
type GitOpsDeploymentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitOpsDeployment `json:"items"`
}
