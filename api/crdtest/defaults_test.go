// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestDefaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		kind  template
		given change
		want  map[string]any
	}{
		{"a deployment is manual unless it says otherwise", deployment, nil, map[string]any{
			"source": map[string]any{"repoURL": "https://git.example.com/team/app.git", "path": "deploy"},
			"type":   "manual",
		}},
		{"a deployment keeps its type", deployment, change{"spec.type": "automated"}, map[string]any{
			"source": map[string]any{"repoURL": "https://git.example.com/team/app.git", "path": "deploy"},
			"type":   "automated",
		}},
		{"an environment checks certificates and allows automated deployments", environment, nil, map[string]any{
			"apiURL":                     "https://api.cluster.example.com:6443",
			"credentialsSecret":          "cluster-access",
			"allowInsecureSkipTLSVerify": false,
			"allowAutomatedDeployments":  true,
		}},
		{"an environment keeps its switches", environment, change{
			"spec.allowInsecureSkipTLSVerify": true, "spec.allowAutomatedDeployments": false,
		}, map[string]any{
			"apiURL":                     "https://api.cluster.example.com:6443",
			"credentialsSecret":          "cluster-access",
			"allowInsecureSkipTLSVerify": true,
			"allowAutomatedDeployments":  false,
		}},
		{"a run has none", syncRun, nil, map[string]any{"gitopsDeploymentName": "app"}},
		{"a credential has none", credential, nil, map[string]any{
			"repository": "https://git.example.com/team/app.git", "secret": "git-access",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			u := create(t, c.kind(t, c.given))
			got, _, err := unstructured.NestedMap(u.Object, "spec")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}

// A tenant who may write the resource but not its status cannot forge one, and
// the service, writing the status, cannot change what the tenant asked for.
func TestStatusAndSpecAreApart(t *testing.T) {
	u := create(t, deployment(t, change{"status.health.status": "Healthy"}))
	if _, found, _ := unstructured.NestedMap(u.Object, "status"); found {
		t.Error("a status was taken from a create of the resource")
	}
	if err := update(t, u, change{"status.health.status": "Healthy"}); err != nil {
		t.Fatal(err)
	}
	if got := read(t, u); got.Object["status"] != nil {
		t.Errorf("a status was taken from an update of the resource: %v", got.Object["status"])
	}

	forged := read(t, u)
	set(t, forged, change{"status.health.status": "Degraded", "spec.type": "automated"})
	if err := server.client.Status().Update(t.Context(), forged); err != nil {
		t.Fatal(err)
	}
	got := read(t, u)
	if kind, _, _ := unstructured.NestedString(got.Object, "spec", "type"); kind != "manual" {
		t.Errorf("the spec was changed by a write of the status: type %q", kind)
	}
	if code, _, _ := unstructured.NestedString(got.Object, "status", "health", "status"); code != "Degraded" {
		t.Errorf("the status was not written: %q", code)
	}
	if got.GetGeneration() != 1 {
		t.Errorf("generation %d after writes of the status alone, want 1", got.GetGeneration())
	}
}
