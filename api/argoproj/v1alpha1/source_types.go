// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

// ApplicationSource is a folder of a Git repository at a revision, and how to
// make manifests of it. At most one of directory, kustomize and helm is given;
// with none of them the engine looks at the files.
// +kubebuilder:pruning:PreserveUnknownFields
type ApplicationSource struct {
	RepoURL string `json:"repoURL"`
	// +optional
	Path string `json:"path,omitempty"`
	// +optional
	TargetRevision string `json:"targetRevision,omitempty"`
	// +optional
	Directory *SourceDirectory `json:"directory,omitempty"`
	// +optional
	Kustomize *SourceKustomize `json:"kustomize,omitempty"`
	// +optional
	Helm *SourceHelm `json:"helm,omitempty"`
}

// SourceDirectory reads plain YAML and JSON files.
// +kubebuilder:pruning:PreserveUnknownFields
type SourceDirectory struct {
	// Recurse into folders below.
	// +optional
	Recurse bool `json:"recurse,omitempty"`
	// Include only files that match this glob.
	// +optional
	Include string `json:"include,omitempty"`
	// Exclude files that match this glob.
	// +optional
	Exclude string `json:"exclude,omitempty"`
}

// SourceKustomize adjusts a Kustomize build.
// +kubebuilder:pruning:PreserveUnknownFields
type SourceKustomize struct {
	// +optional
	NamePrefix string `json:"namePrefix,omitempty"`
	// +optional
	NameSuffix string `json:"nameSuffix,omitempty"`
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// Images to replace, written [old=]name[:tag|@digest].
	// +optional
	// +listType=atomic
	Images []string `json:"images,omitempty"`
	// +optional
	CommonLabels map[string]string `json:"commonLabels,omitempty"`
	// +optional
	CommonAnnotations map[string]string `json:"commonAnnotations,omitempty"`
	// +optional
	// +listType=atomic
	Components []string `json:"components,omitempty"`
}

// SourceHelm adjusts a Helm template.
// +kubebuilder:pruning:PreserveUnknownFields
type SourceHelm struct {
	// +optional
	ReleaseName string `json:"releaseName,omitempty"`
	// +optional
	// +listType=atomic
	ValueFiles []string `json:"valueFiles,omitempty"`
	// Values is a values file as text; ValuesObject takes precedence over it.
	// +optional
	Values string `json:"values,omitempty"`
	// +optional
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:pruning:PreserveUnknownFields
	ValuesObject *apiextensionsv1.JSON `json:"valuesObject,omitempty"`
	// +optional
	// +listType=atomic
	Parameters []HelmParameter `json:"parameters,omitempty"`
	// +optional
	IgnoreMissingValueFiles bool `json:"ignoreMissingValueFiles,omitempty"`
	// +optional
	SkipCrds bool `json:"skipCrds,omitempty"`
}

// HelmParameter sets one value.
// +kubebuilder:pruning:PreserveUnknownFields
type HelmParameter struct {
	// +optional
	Name string `json:"name,omitempty"`
	// +optional
	Value string `json:"value,omitempty"`
	// ForceString keeps numbers and booleans text.
	// +optional
	ForceString bool `json:"forceString,omitempty"`
}
