// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

func TestSubsetsMakeUpTheWhole(t *testing.T) {
	names := func(source func() ([]*apiextensionsv1.CustomResourceDefinition, error)) []string {
		crds, err := source()
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, crd := range crds {
			names = append(names, crd.Name)
		}
		return names
	}
	wantArgo := []string{"applications.argoproj.io", "appprojects.argoproj.io"}
	wantTenant := []string{
		"gitopsdeploymentmanagedenvironments.managed-gitops.redhat.com",
		"gitopsdeploymentrepositorycredentials.managed-gitops.redhat.com",
		"gitopsdeployments.managed-gitops.redhat.com",
		"gitopsdeploymentsyncruns.managed-gitops.redhat.com",
	}
	wantOperation := []string{"operations.managedgitops.io"}
	for _, c := range []struct {
		name      string
		got, want []string
	}{
		{"Argo", names(Argo), wantArgo},
		{"Tenant", names(Tenant), wantTenant},
		{"Operation", names(Operation), wantOperation},
		{"All", names(All), slices.Concat(wantArgo, wantTenant, wantOperation)},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
