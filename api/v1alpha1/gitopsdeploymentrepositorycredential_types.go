// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// RepositoryCredentialSecretType is the type of the Secret that secret names.
	RepositoryCredentialSecretType = "managed-gitops.redhat.com/repository-credential"
	// RepositoryCredentialSecretUsernameKey is the Secret's key for the user name.
	RepositoryCredentialSecretUsernameKey = "username"
	// RepositoryCredentialSecretPasswordKey is the Secret's key for the password or token.
	RepositoryCredentialSecretPasswordKey = "password"
	// RepositoryCredentialSecretSSHKeyKey is the Secret's key for the private SSH key.
	RepositoryCredentialSecretSSHKeyKey = "sshPrivateKey"
)

// GitOpsDeploymentRepositoryCredentialSpec says which credentials belong to
// which repository.
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="self.repository.size() > 0",message="repository is empty: give the URL of a Git repository, such as https://git.example.com/team/app"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="self.repository.matches('^[!-\\\\[\\\\]-~]*$')",message="repository may hold only printable ASCII characters, no space and no backslash: percent-encode any other character"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="self.repository.size() == 0 || self.repository.matches('^((https|ssh)://|[^-:/@][^:/@]*@[^:/@]+:)')",message="repository must begin with https:// or ssh://, or be of the form git@host:path: credentials are not sent over http:// or any other protocol"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="!self.repository.matches('^https?://[^/?#]*@') && !self.repository.matches('^ssh://[^/?#@]*:[^/?#]*@') && !self.repository.matches('^[^:/@]*:[^/]*@')",message="repository must not contain credentials: remove the part before '@' and put them in the Secret that the field secret names"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="!self.repository.matches('^(https|ssh)://') || self.repository.matches('^(https://([^/?#]*@)?|ssh://([A-Za-z0-9_][A-Za-z0-9._-]*(:[^/?#]*)?@)?)([A-Za-z0-9][A-Za-z0-9._-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?#]|$)')",message="repository must name a host after '://', such as git.example.com or git.example.com:8443, and with ssh:// at most a user name before it: letters, digits, '.', '-' and '_', not beginning with '-'"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="!self.repository.matches('^[^-:/@][^:/@]*@[^:/@]+:') || self.repository.matches('^[A-Za-z0-9_][A-Za-z0-9._-]*@[A-Za-z0-9][A-Za-z0-9._-]*:[^-:]')",message="repository must be user@host:path with no part beginning with '-': write it as an ssh:// URL instead"
// +kubebuilder:validation:XValidation:fieldPath=".repository",rule="!self.repository.matches('[?#]')",message="repository must not contain '?' or '#': give only the URL that git clones from"
type GitOpsDeploymentRepositoryCredentialSpec struct {
	// Repository is the repository that the credentials are for: https:// or
	// ssh:// URL, or git@host:path. Plain http:// is refused: it would show the
	// credentials to everybody on the way.
	// +kubebuilder:validation:MaxLength=2048
	Repository string `json:"repository"`

	// Secret is the Secret in the same namespace, of type
	// managed-gitops.redhat.com/repository-credential, with the keys username
	// and password, or sshPrivateKey.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="secret must be the name of a Secret in this namespace: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	Secret string `json:"secret"`
}

// GitOpsDeploymentRepositoryCredentialStatus is whether the credentials can be used.
type GitOpsDeploymentRepositoryCredentialStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: ErrorOccurred, ValidRepositoryURL and ValidRepositoryCredential.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GitOpsDeploymentRepositoryCredential gives the credentials of a private Git
// repository.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitopsdeploymentrepositorycredentials,singular=gitopsdeploymentrepositorycredential,shortName=repocred;repocreds,categories=weir
// +kubebuilder:printcolumn:name="Repository",type=string,JSONPath=`.spec.repository`
// +kubebuilder:printcolumn:name="Secret",type=string,JSONPath=`.spec.secret`
// +kubebuilder:printcolumn:name="Valid",type=string,JSONPath=`.status.conditions[?(@.type=="ValidRepositoryCredential")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="ValidRepositoryCredential")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GitOpsDeploymentRepositoryCredential struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitOpsDeploymentRepositoryCredentialSpec `json:"spec"`
	// +optional
	Status GitOpsDeploymentRepositoryCredentialStatus `json:"status,omitzero"`
}

// GitOpsDeploymentRepositoryCredentialList is a list of GitOpsDeploymentRepositoryCredentials.
// +kubebuilder:object:root=true
type GitOpsDeploymentRepositoryCredentialList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitOpsDeploymentRepositoryCredential `json:"items"`
}
