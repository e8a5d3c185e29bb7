// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"fmt"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/weir-gitops/weir/config/crd"
)

// Every text and every list in the spec of a kind that somebody outside the
// service may write has an upper bound: 100 kB in any text, and a list far
// longer than its bound, are refused with the field's path. The fields come
// from the schemas, so a field that is added without a bound fails here.
func TestNoFieldTakesAFlood(t *testing.T) {
	templates := map[string]template{
		"GitOpsDeployment":                     deployment,
		"GitOpsDeploymentSyncRun":              syncRun,
		"GitOpsDeploymentManagedEnvironment":   environment,
		"GitOpsDeploymentRepositoryCredential": credential,
		"Operation":                            operation,
	}
	seen := 0
	for _, definition := range definitions(t, crd.Tenant, crd.Operation) {
		good := templates[definition.Spec.Names.Kind]
		if good == nil {
			t.Fatalf("no good resource of kind %s in this test", definition.Spec.Names.Kind)
		}
		for _, f := range floods("spec", schemaOf(definition).Properties["spec"]) {
			seen++
			t.Run(definition.Spec.Names.Kind+"/"+f.path, func(t *testing.T) {
				u := good(t, change{f.path: f.value})
				u.SetNamespace(namespace(t))
				err := server.client.Create(t.Context(), u)
				checkRefused(t, err, f.field, f.remedy)
			})
		}
	}
	// As many as there are now, so that a walk that finds nothing cannot pass.
	if seen < 15 {
		t.Errorf("only %d fields found in the schemas", seen)
	}
}

// flood is a value that is too large for the field at path, and the refusal
// that it must meet.
type flood struct {
	path   string
	value  any
	field  string
	remedy string
}

func floods(path string, s apiextensionsv1.JSONSchemaProps) []flood {
	const size = 100_000
	switch s.Type {
	case "string":
		remedy := "may not be more than"
		if len(s.Enum) > 0 {
			remedy = "supported values"
		}
		return []flood{{path, strings.Repeat("a", size), path, remedy}}
	case "array":
		items := make([]any, 1000)
		for i := range items {
			items[i] = fmt.Sprintf("item-%d", i)
		}
		found := []flood{{path, items, path, "must have at most"}}
		for _, f := range floods(path, *s.Items.Schema) {
			found = append(found, flood{path, []any{f.value}, path + "[0]", f.remedy})
		}
		return found
	case "object":
		var found []flood
		for name, property := range s.Properties {
			found = append(found, floods(path+"."+name, property)...)
		}
		return found
	default:
		return nil
	}
}

func definitions(t *testing.T, sources ...func() ([]*apiextensionsv1.CustomResourceDefinition, error)) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var all []*apiextensionsv1.CustomResourceDefinition
	for _, source := range sources {
		some, err := source()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func schemaOf(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.JSONSchemaProps {
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema
}
