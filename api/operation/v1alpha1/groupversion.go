// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the kind Operation, group managedgitops.io: the note
// by which the backend tells the agent that a row of the database has changed.
//
// An Operation prescribes nothing. It names a row of the operation table, the
// agent reads that row and the row it points to as they are then, and makes the
// engine's resources equal to them. So an Operation that is lost, doubled or
// late does no harm, and one that a stranger writes can at most repeat work.
//
// +kubebuilder:object:generate=true
// +groupName=managedgitops.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of Operation.
var GroupVersion = schema.GroupVersion{Group: "managedgitops.io", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that register Operation.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers Operation in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &Operation{}, &OperationList{})
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
