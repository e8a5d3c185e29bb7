// SPDX-License-Identifier: Apache-2.0

// Package crd carries the CustomResourceDefinitions of Weir in the binary, so
// that it can install what it needs and say which of them is missing.
//
// The YAML files beside this one are generated from the Go types in api/ by
// `make generate`; edit the types, not the files.
package crd

import (
	"embed"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	argoprojv1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/api/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

// All gives every definition, ordered by group and plural name.
func All() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded definitions: %w", err)
	}
	crds := make([]*apiextensionsv1.CustomResourceDefinition, 0, len(entries))
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded definition: %w", err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, crd); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", entry.Name(), err)
		}
		crds = append(crds, crd)
	}
	return crds, nil
}

// Tenant gives the four kinds that tenants write.
func Tenant() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return ofGroup(v1alpha1.GroupVersion.Group)
}

// Operation gives the kind by which the backend calls the agent.
func Operation() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return ofGroup(operationv1alpha1.GroupVersion.Group)
}

// Argo gives the kinds that the engine works on. Where Argo CD itself is
// installed its own definitions are there already and these are not needed.
func Argo() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return ofGroup(argoprojv1alpha1.GroupVersion.Group)
}

func ofGroup(group string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	all, err := All()
	if err != nil {
		return nil, err
	}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range all {
		if crd.Spec.Group == group {
			crds = append(crds, crd)
		}
	}
	return crds, nil
}
