// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/config/crd"
)

// A real Argo CD writes fields that Weir does not know, at every level. They
// survive.
func TestApplicationKeepsUnknownFields(t *testing.T) {
	text := `{
		"spec": {
			"project": "team",
			"ofSpec": {"a": [1, 2]},
			"source": {"repoURL": "https://git.example.com/app", "ofSource": true,
				"kustomize": {"ofKustomize": [{"a": "b"}]},
				"directory": {"ofDirectory": {"a": "b"}},
				"helm": {"ofHelm": 1, "parameters": [{"name": "a", "ofParameter": 1}], "valuesObject": {"a": {"b": 1}}}},
			"destination": {"server": "https://a.example.com", "ofDestination": 1},
			"syncPolicy": {"ofPolicy": 1, "automated": {"ofAutomated": 1}, "retry": {"ofRetry": 1, "backoff": {"ofBackoff": 1}}},
			"ignoreDifferences": [{"kind": "Deployment", "ofDifference": 1}]
		},
		"status": {
			"ofStatus": 1,
			"sync": {"status": "Synced", "ofSync": 1, "comparedTo": {"ofComparison": 1}},
			"health": {"ofHealth": 1},
			"resources": [{"kind": "Pod", "ofResource": 1}],
			"history": [{"id": 1, "ofHistory": 1}],
			"conditions": [{"type": "a", "message": "b", "ofCondition": 1}],
			"summary": {"ofSummary": 1},
			"operationState": {"ofState": 1, "operation": {"ofOperation": 1}, "syncResult": {"ofResult": 1,
				"resources": [{"kind": "Pod", "ofResourceResult": 1}]}}
		},
		"operation": {"ofOperation": 1, "sync": {"ofSync": 1}, "initiatedBy": {"ofInitiator": 1}, "info": [{"name": "a", "value": "b", "ofInfo": 1}]}
	}`
	var want map[string]any
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	u := application(t, nil)
	u.SetNamespace(namespace(t))
	if err := server.client.Create(t.Context(), u); err != nil {
		t.Fatal(err)
	}
	// As Argo CD's controller does: one plain merge patch of the resource,
	// status and operation included.
	if err := server.client.Patch(t.Context(), u, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
		t.Fatal(err)
	}
	got := read(t, u)
	for _, part := range []string{"status", "operation"} {
		if diff := cmp.Diff(numbers(t, want[part]), numbers(t, got.Object[part])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", part, diff)
		}
	}
	// The merge keeps what the good Application had.
	spec := want["spec"].(map[string]any)
	if err := unstructured.SetNestedField(spec, "deploy", "source", "path"); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(spec, "app", "destination", "namespace"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(numbers(t, spec), numbers(t, got.Object["spec"])); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

// numbers evens out the two ways in which JSON numbers are decoded.
func numbers(t *testing.T, v any) any {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var even any
	if err := json.Unmarshal(text, &even); err != nil {
		t.Fatal(err)
	}
	return even
}

// The same over the schemas, for levels that the test above might miss: each
// object with named properties preserves the unnamed ones.
func TestArgoSchemasPreserveEverywhere(t *testing.T) {
	// metav1.GroupKind comes from Kubernetes and is complete.
	complete := []string{".spec.namespaceResourceWhitelist[]", ".spec.namespaceResourceBlacklist[]"}
	for _, definition := range definitions(t, crd.Argo) {
		for _, part := range []string{"spec", "status", "operation"} {
			property, found := schemaOf(definition).Properties[part]
			if !found {
				continue
			}
			eachObject("."+part, property, func(path string, s apiextensionsv1.JSONSchemaProps) {
				preserves := s.XPreserveUnknownFields != nil && *s.XPreserveUnknownFields
				if !preserves && s.AdditionalProperties == nil && !slices.Contains(complete, path) {
					t.Errorf("%s%s drops unknown fields", definition.Spec.Names.Kind, path)
				}
			})
		}
	}
}

func eachObject(path string, s apiextensionsv1.JSONSchemaProps, visit func(string, apiextensionsv1.JSONSchemaProps)) {
	switch s.Type {
	case "object":
		visit(path, s)
		for name, property := range s.Properties {
			eachObject(path+"."+name, property, visit)
		}
	case "array":
		eachObject(path+"[]", *s.Items.Schema, visit)
	}
}

// Types are checked, so that one malformed Application cannot break decoding of
// the list that it is in.
func TestApplicationFieldTypes(t *testing.T) {
	checkRules(t, application, []rule{
		{name: "as the agent writes it", change: change{"spec.syncPolicy.automated.prune": true}},
		{name: "several sources instead of one", change: change{
			"spec.source": nil, "spec.sources": []any{map[string]any{"repoURL": "https://git.example.com/a"}},
		}},
		{name: "source is text", change: change{"spec.source": "https://git.example.com/a"}, field: "spec.source", remedy: "must be of type object"},
		{name: "status is a list", change: change{"status": []any{}}, field: "status", remedy: "must be of type object"},
		{name: "operation is text", change: change{"operation": "sync"}, field: "operation", remedy: "must be of type object"},
		{name: "time is not one", change: change{"status.reconciledAt": "yesterday"}, field: "status.reconciledAt", remedy: "must be of type date-time"},
		{name: "no project", change: change{"spec.project": nil}, field: "spec.project", remedy: "Required value"},
		{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"},
	})
	checkRules(t, appProject, []rule{
		{name: "with roles", change: change{"spec.roles": []any{map[string]any{"name": "a"}}}},
		{name: "repositories are text", change: change{"spec.sourceRepos": "*"}, field: "spec.sourceRepos", remedy: "must be of type array"},
	})
}
