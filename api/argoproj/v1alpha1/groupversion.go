// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds Weir's own, compact view of two kinds of Argo CD,
// Application and AppProject, group argoproj.io. They are the contract between
// the agent and the engine, whichever engine that is.
//
// # A view, not the whole
//
// Only the fields that Weir and its built-in engine rely on are written down.
// The CustomResourceDefinitions preserve all others at every level (each type
// below carries the marker for it), so a real Argo CD works on them.
//
// The Go types do not preserve: decoding into them and writing the result back
// with an update would drop what they do not know. Hence the rule for every
// caller: read with these types, write with a patch (server-side apply, or a
// merge patch of what changed), never with an update.
//
// # No status subresource
//
// Argo CD's controller writes an Application's status, and clears its operation,
// with plain patches of the resource. The definition therefore has no status
// subresource; with one, those writes would be silently ignored.
//
// # Little validation
//
// Field types are checked, so that one malformed resource cannot break decoding
// of a whole list, and beyond that nothing: what one engine writes, the other
// must be able to store.
//
// +kubebuilder:object:generate=true
// +groupName=argoproj.io
package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of Application and AppProject.
var GroupVersion = schema.GroupVersion{Group: "argoproj.io", Version: "v1alpha1"}

var (
	// SchemeBuilder collects the functions that register Application and AppProject.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers Application and AppProject in a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

func addKnownTypes(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion,
		&Application{}, &ApplicationList{},
		&AppProject{}, &AppProjectList{},
	)
	metav1.AddToGroupVersion(s, GroupVersion)
	return nil
}
