// SPDX-License-Identifier: Apache-2.0

package crdtest

import "testing"

func TestSyncRunDeploymentName(t *testing.T) {
	const remedy = "must be the name of a GitOpsDeployment in this namespace"
	checkRules(t, syncRun, required(subdomainRules("spec.gitopsDeploymentName", remedy), remedy))
}

func TestSyncRunRevisionID(t *testing.T) {
	checkRules(t, syncRun, revisionRules("spec.revisionID"))
}

func TestSyncRunShape(t *testing.T) {
	checkRules(t, syncRun, []rule{
		{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"},
	})
}

func TestSyncRunSpecIsImmutable(t *testing.T) {
	const remedy = "create another one instead"
	u := create(t, syncRun(t, change{"spec.revisionID": "main"}))
	for name, c := range map[string]change{
		"other deployment":    {"spec.gitopsDeploymentName": "other"},
		"other revision":      {"spec.revisionID": "v2"},
		"revision taken away": {"spec.revisionID": nil},
	} {
		t.Run(name, func(t *testing.T) {
			checkRefused(t, update(t, u, c), "spec", remedy)
		})
	}
	t.Run("revision added", func(t *testing.T) {
		bare := create(t, syncRun(t, nil))
		checkRefused(t, update(t, bare, change{"spec.revisionID": "v2"}), "spec", remedy)
	})
	t.Run("spec taken away", func(t *testing.T) {
		checkRefused(t, update(t, u, change{"spec": nil}), "spec", "Required value")
	})
	t.Run("labels may change", func(t *testing.T) {
		if err := update(t, u, change{"metadata.labels": map[string]any{"a": "b"}}); err != nil {
			t.Errorf("refused: %v", err)
		}
	})
}
