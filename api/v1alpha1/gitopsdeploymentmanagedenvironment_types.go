// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// ManagedEnvironmentSecretType is the type of the Secret that
	// credentialsSecret names.
	ManagedEnvironmentSecretType = "managed-gitops.redhat.com/managed-environment"
	// ManagedEnvironmentSecretKubeconfigKey is the Secret's key that holds the kubeconfig.
	ManagedEnvironmentSecretKubeconfigKey = "kubeconfig"
)

// GitOpsDeploymentManagedEnvironmentSpec says where a cluster is and how to
// reach it.
// +kubebuilder:validation:XValidation:fieldPath=".apiURL",rule="self.apiURL.startsWith('https://')",message="apiURL must begin with https://: give the address of the cluster's API server, such as https://api.cluster.example.com:6443"
// +kubebuilder:validation:XValidation:fieldPath=".apiURL",rule="self.apiURL.matches('^[!-\\\\[\\\\]-~]*$')",message="apiURL may hold only printable ASCII characters, no space and no backslash: percent-encode any other character"
// +kubebuilder:validation:XValidation:fieldPath=".apiURL",rule="!self.apiURL.matches('^[a-z]*://[^/?#]*@')",message="apiURL must not contain credentials: remove the part before '@' and put them in the kubeconfig of the Secret that credentialsSecret names"
// +kubebuilder:validation:XValidation:fieldPath=".apiURL",rule="!self.apiURL.startsWith('https://') || self.apiURL.matches('^https://([^/?#]*@)?([A-Za-z0-9][A-Za-z0-9._-]*|\\\\[[0-9A-Fa-f:.]+\\\\])(:[0-9]{1,5})?([/?#]|$)')",message="apiURL must name a host after 'https://', such as api.cluster.example.com:6443: letters, digits, '.', '-' and '_', not beginning with '-'"
// +kubebuilder:validation:XValidation:fieldPath=".apiURL",rule="!self.apiURL.matches('[?#]')",message="apiURL must not contain '?' or '#': give only scheme, host, port and path"
type GitOpsDeploymentManagedEnvironmentSpec struct {
	// APIURL is the address of the cluster's API server, such as
	// https://api.cluster.example.com:6443. It picks the cluster among those of
	// the kubeconfig.
	// +kubebuilder:validation:MaxLength=2048
	APIURL string `json:"apiURL"`

	// CredentialsSecret is the Secret in the same namespace, of type
	// managed-gitops.redhat.com/managed-environment, whose key "kubeconfig"
	// holds the credentials.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="credentialsSecret must be the name of a Secret in this namespace: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
	CredentialsSecret string `json:"credentialsSecret"`

	// AllowInsecureSkipTLSVerify leaves the cluster's certificate unchecked.
	// Whoever sits between Weir and the cluster can then read the credentials.
	// +optional
	// +kubebuilder:default=false
	AllowInsecureSkipTLSVerify bool `json:"allowInsecureSkipTLSVerify"`

	// CreateNewServiceAccount uses the given credentials only once, to create a
	// service account on the cluster that Weir then uses. Without it, the given
	// credentials are used for everything.
	// +optional
	CreateNewServiceAccount bool `json:"createNewServiceAccount,omitempty"`

	// AllowAutomatedDeployments lets deployments of type automated happen here.
	// With false, only a GitOpsDeploymentSyncRun deploys to this environment.
	// +optional
	// +kubebuilder:default=true
	AllowAutomatedDeployments *bool `json:"allowAutomatedDeployments,omitempty"`

	// Namespaces are the only namespaces of the cluster that Weir may look at
	// and deploy to. Without it: all that the credentials allow.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="namespaces must hold names of namespaces: lower-case letters, digits and '-', beginning and ending with a letter or digit"
	Namespaces []string `json:"namespaces,omitempty"`

	// ClusterResources lets resources without a namespace be deployed. Without it
	// they are denied, whether or not namespaces is given.
	// +optional
	ClusterResources bool `json:"clusterResources,omitempty"`
}

// AutomatedDeploymentsAllowed tells whether deployments of type automated may
// happen on the environment; they may where nothing is said.
func (s *GitOpsDeploymentManagedEnvironmentSpec) AutomatedDeploymentsAllowed() bool {
	return s.AllowAutomatedDeployments == nil || *s.AllowAutomatedDeployments
}

// GitOpsDeploymentManagedEnvironmentStatus is whether the cluster can be used.
type GitOpsDeploymentManagedEnvironmentStatus struct {
	// ObservedGeneration is the generation of the spec that this status speaks of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// Conditions: ConnectionInitializationSucceeded.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// GitOpsDeploymentManagedEnvironment is a cluster to deploy to.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=gitopsdeploymentmanagedenvironments,singular=gitopsdeploymentmanagedenvironment,shortName=managedenv;managedenvs,categories=weir
// +kubebuilder:printcolumn:name="API URL",type=string,JSONPath=`.spec.apiURL`
// +kubebuilder:printcolumn:name="Connected",type=string,JSONPath=`.status.conditions[?(@.type=="ConnectionInitializationSucceeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="ConnectionInitializationSucceeded")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type GitOpsDeploymentManagedEnvironment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec GitOpsDeploymentManagedEnvironmentSpec `json:"spec"`
	// +optional
	Status GitOpsDeploymentManagedEnvironmentStatus `json:"status,omitzero"`
}

// GitOpsDeploymentManagedEnvironmentList is a list of GitOpsDeploymentManagedEnvironments.
// +kubebuilder:object:root=true
type GitOpsDeploymentManagedEnvironmentList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []GitOpsDeploymentManagedEnvironment `json:"items"`
}
