// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// NamePrefix precedes the operation's id in the name of its resource.
const NamePrefix = "operation-"

// OperationSpec names a row of the operation table.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: create another Operation instead"
type OperationSpec struct {
	// OperationID is the id of the row. The resource is named operation-<id>,
	// so the id keeps to what a name may hold.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="operationID must be the id of an operation row: lower-case letters, digits and '-', beginning and ending with a letter or digit"
	OperationID string `json:"operationID"`
}

// OperationStatus is empty: how an operation stands is in its row, and the row
// alone.
type OperationStatus struct{}

// Operation asks the agent to look at a row. It lives in the namespaces of
// engine instances only and is removed once it is done.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:path=operations,singular=operation,shortName=gitopsop;gitopsops,categories=weir
// +kubebuilder:printcolumn:name="Operation ID",type=string,JSONPath=`.spec.operationID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Operation struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OperationSpec `json:"spec"`
	// +optional
	Status OperationStatus `json:"status,omitzero"`
}

// OperationList is a list of Operations.
// +kubebuilder:object:root=true
type OperationList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Operation `json:"items"`
}
