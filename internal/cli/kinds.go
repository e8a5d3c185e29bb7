// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// kind is a tenant kind as the command line knows it.
type kind struct {
	// name is the API's, resource its plural in URLs.
	name, resource string
	// singular and plural are what tenants type; aliases too.
	singular, plural string
	aliases          []string
	object           func() client.Object
	list             func() client.ObjectList
	columns          columns
}

func (k *kind) gvk() schema.GroupVersionKind { return v1alpha1.GroupVersion.WithKind(k.name) }

// access is a request about objects of the kind.
func (k *kind) access(verb, namespace, name string) access {
	return access{verb: verb, group: v1alpha1.GroupVersion.Group, resource: k.resource, namespace: namespace, name: name}
}

func deployments() *kind {
	return &kind{
		name: "GitOpsDeployment", resource: "gitopsdeployments",
		singular: "deployment", plural: "deployments", aliases: []string{"deploy", "gd", "gitopsdepl"},
		object:  func() client.Object { return &v1alpha1.GitOpsDeployment{} },
		list:    func() client.ObjectList { return &v1alpha1.GitOpsDeploymentList{} },
		columns: deploymentColumns(),
	}
}

func syncRuns() *kind {
	return &kind{
		name: "GitOpsDeploymentSyncRun", resource: "gitopsdeploymentsyncruns",
		singular: "syncrun", plural: "syncruns", aliases: []string{"run", "runs", "sr"},
		object:  func() client.Object { return &v1alpha1.GitOpsDeploymentSyncRun{} },
		list:    func() client.ObjectList { return &v1alpha1.GitOpsDeploymentSyncRunList{} },
		columns: syncRunColumns(),
	}
}

func environments() *kind {
	return &kind{
		name: "GitOpsDeploymentManagedEnvironment", resource: "gitopsdeploymentmanagedenvironments",
		singular: "environment", plural: "environments", aliases: []string{"env", "envs", "managedenv", "managedenvs"},
		object:  func() client.Object { return &v1alpha1.GitOpsDeploymentManagedEnvironment{} },
		list:    func() client.ObjectList { return &v1alpha1.GitOpsDeploymentManagedEnvironmentList{} },
		columns: environmentColumns(),
	}
}

func credentials() *kind {
	return &kind{
		name: "GitOpsDeploymentRepositoryCredential", resource: "gitopsdeploymentrepositorycredentials",
		singular: "credential", plural: "credentials", aliases: []string{"cred", "creds", "repo", "repos", "repocred", "repocreds"},
		object:  func() client.Object { return &v1alpha1.GitOpsDeploymentRepositoryCredential{} },
		list:    func() client.ObjectList { return &v1alpha1.GitOpsDeploymentRepositoryCredentialList{} },
		columns: credentialColumns(),
	}
}

func kinds() []*kind { return []*kind{deployments(), syncRuns(), environments(), credentials()} }

// findKind finds a kind by whatever a tenant may call it; nil where there is none.
func findKind(word string) *kind {
	word = strings.ToLower(word)
	for _, k := range kinds() {
		if word == k.singular || word == k.plural || slices.Contains(k.aliases, word) || word == strings.ToLower(k.name) || word == k.resource {
			return k
		}
	}
	return nil
}

func kindNames() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.plural)
	}
	return names
}

// itemsOf gives the objects of a list, with their kind filled in, which a typed
// client leaves out.
func itemsOf(list client.ObjectList, k *kind) ([]client.Object, error) {
	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	var all []client.Object
	for _, item := range items {
		o, ok := item.(client.Object)
		if !ok {
			continue
		}
		o.GetObjectKind().SetGroupVersionKind(k.gvk())
		all = append(all, o)
	}
	return all, nil
}
