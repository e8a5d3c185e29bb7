// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// What `kubectl get` prints comes from the server as a Table; each row here is
// one resource with its status and what its columns must say.
func TestPrinterColumns(t *testing.T) {
	condition := func(kind, status, reason string) []any {
		return []any{map[string]any{
			"type": kind, "status": status, "reason": reason, "message": "",
			"lastTransitionTime": "2026-01-02T03:04:05Z",
		}}
	}
	for _, c := range []struct {
		plural   string
		resource template
		status   change
		want     map[string]string
	}{
		{"gitopsdeployments", deployment, change{
			"status.sync.status": "Synced", "status.sync.revision": "3b18e51", "status.health.status": "Healthy",
		}, map[string]string{
			"Name": "one", "Sync": "Synced", "Health": "Healthy", "Revision": "3b18e51",
			"Type": "manual", "Repository": "https://git.example.com/team/app.git", "Path": "deploy", "Environment": "",
		}},
		{"gitopsdeploymentsyncruns", syncRun, change{
			"status.syncStatus": "Synced", "status.health": "Degraded", "status.revision": "3b18e51",
			"status.conditions": condition("Succeeded", "True", "Succeeded"),
		}, map[string]string{
			"Name": "one", "Deployment": "app", "Succeeded": "True", "Sync": "Synced",
			"Health": "Degraded", "Revision": "3b18e51",
		}},
		{"gitopsdeploymentmanagedenvironments", environment, change{
			"status.conditions": condition("ConnectionInitializationSucceeded", "False", "InvalidSecretType"),
		}, map[string]string{
			"Name": "one", "API URL": "https://api.cluster.example.com:6443",
			"Connected": "False", "Reason": "InvalidSecretType",
		}},
		{"gitopsdeploymentrepositorycredentials", credential, change{
			"status.conditions": condition("ValidRepositoryCredential", "True", "RepositoryCredentialUpToDate"),
		}, map[string]string{
			"Name": "one", "Repository": "https://git.example.com/team/app.git",
			"Secret": "git-access", "Valid": "True", "Reason": "RepositoryCredentialUpToDate",
		}},
		{
			"operations", operation, nil,
			map[string]string{"Name": "one", "Operation ID": "6f1c4c5e-0a0b-4a55-9c3d-0d6c3f1f2a11"},
		},
		{"applications", application, change{
			"status.sync.status": "OutOfSync", "status.sync.revision": "3b18e51", "status.health.status": "Missing",
		}, map[string]string{
			"Name": "one", "Sync Status": "OutOfSync", "Health Status": "Missing",
			"Revision": "3b18e51", "Project": "team",
		}},
		{"appprojects", appProject, nil, map[string]string{"Name": "one"}},
	} {
		t.Run(c.plural, func(t *testing.T) {
			u := create(t, c.resource(t, nil))
			writeStatus(t, u, c.status)
			got := columns(t, u, c.plural)
			// The age moves on; that it is there is enough.
			if age, ok := got["Age"]; c.plural != "applications" && (!ok || age == "") {
				t.Errorf("no age")
			}
			delete(got, "Age")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// writeStatus writes it where the kind takes it: through the subresource, or
// with the resource for kinds of the engine, which have none.
func writeStatus(t *testing.T, u *unstructured.Unstructured, status change) {
	t.Helper()
	if len(status) == 0 {
		return
	}
	set(t, u, status)
	var err error
	if u.GroupVersionKind().Group == "argoproj.io" {
		err = server.client.Update(t.Context(), u)
	} else {
		err = server.client.Status().Update(t.Context(), u)
	}
	if err != nil {
		t.Fatalf("writing the status: %v", err)
	}
}

func columns(t *testing.T, u *unstructured.Unstructured, plural string) map[string]string {
	t.Helper()
	config := rest.CopyConfig(server.config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	gv := u.GroupVersionKind().GroupVersion()
	raw, err := api.Get().
		AbsPath("apis", gv.Group, gv.Version, "namespaces", u.GetNamespace(), plural, u.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").
		Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Rows) != 1 {
		t.Fatalf("%d rows, want 1", len(table.Rows))
	}
	cells := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		if value := table.Rows[0].Cells[i]; value != nil {
			cells[column.Name] = fmt.Sprint(value)
		} else {
			cells[column.Name] = ""
		}
	}
	return cells
}
