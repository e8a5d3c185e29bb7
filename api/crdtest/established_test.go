// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"slices"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"

	"github.com/weir-gitops/weir/config/crd"
)

func TestDefinitionsAreEstablished(t *testing.T) {
	api, err := apiextensionsclient.NewForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, definition := range definitions(t, crd.All) {
		t.Run(definition.Name, func(t *testing.T) {
			live, err := api.CustomResourceDefinitions().Get(t.Context(), definition.Name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status := map[apiextensionsv1.CustomResourceDefinitionConditionType]apiextensionsv1.ConditionStatus{}
			for _, c := range live.Status.Conditions {
				status[c.Type] = c.Status
			}
			if status[apiextensionsv1.Established] != apiextensionsv1.ConditionTrue {
				t.Errorf("not established: %+v", live.Status.Conditions)
			}
			if status[apiextensionsv1.NamesAccepted] != apiextensionsv1.ConditionTrue {
				t.Errorf("names not accepted: %+v", live.Status.Conditions)
			}
			if status[apiextensionsv1.NonStructuralSchema] == apiextensionsv1.ConditionTrue {
				t.Errorf("schema not structural: %+v", live.Status.Conditions)
			}
		})
	}
}

func TestShortNamesCategoriesAndStatus(t *testing.T) {
	api, err := discovery.NewDiscoveryClientForConfig(server.config)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		groupVersion, plural string
		shortNames           []string
		categories           []string
		statusSubresource    bool
	}{
		{"managed-gitops.redhat.com/v1alpha1", "gitopsdeployments", []string{"gitopsdepl", "gd"}, []string{"weir"}, true},
		{"managed-gitops.redhat.com/v1alpha1", "gitopsdeploymentsyncruns", []string{"syncrun", "syncruns"}, []string{"weir"}, true},
		{"managed-gitops.redhat.com/v1alpha1", "gitopsdeploymentmanagedenvironments", []string{"managedenv", "managedenvs"}, []string{"weir"}, true},
		{"managed-gitops.redhat.com/v1alpha1", "gitopsdeploymentrepositorycredentials", []string{"repocred", "repocreds"}, []string{"weir"}, true},
		{"managedgitops.io/v1alpha1", "operations", []string{"gitopsop", "gitopsops"}, []string{"weir"}, true},
		{"argoproj.io/v1alpha1", "applications", []string{"app", "apps"}, nil, false},
		{"argoproj.io/v1alpha1", "appprojects", []string{"appproj", "appprojs"}, nil, false},
	} {
		t.Run(want.plural, func(t *testing.T) {
			list, err := api.ServerResourcesForGroupVersion(want.groupVersion)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == want.plural })
			if i < 0 {
				t.Fatalf("not served: %+v", list.APIResources)
			}
			got := list.APIResources[i]
			if !got.Namespaced {
				t.Error("not namespaced")
			}
			if !slices.Equal(got.ShortNames, want.shortNames) {
				t.Errorf("short names %v, want %v", got.ShortNames, want.shortNames)
			}
			if !slices.Equal(got.Categories, want.categories) {
				t.Errorf("categories %v, want %v", got.Categories, want.categories)
			}
			hasStatus := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == want.plural+"/status" })
			if hasStatus != want.statusSubresource {
				t.Errorf("status subresource: %t, want %t", hasStatus, want.statusSubresource)
			}
		})
	}
}
