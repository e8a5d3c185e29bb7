// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argoprojv1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/api/v1alpha1"
)

// change is fields to set, by their dotted path. A nil value removes the field.
type change map[string]any

// rule is one row of a table. With an empty field the server must accept the
// resource; otherwise it must refuse it, naming the field and the remedy.
type rule struct {
	name   string
	change change
	field  string
	remedy string
}

// The good resource of each kind, with only what is required.
var (
	deployment = good(v1alpha1.GroupVersion.WithKind("GitOpsDeployment"), change{
		"spec.source.repoURL": "https://git.example.com/team/app.git",
		"spec.source.path":    "deploy",
	})
	syncRun = good(v1alpha1.GroupVersion.WithKind("GitOpsDeploymentSyncRun"), change{
		"spec.gitopsDeploymentName": "app",
	})
	environment = good(v1alpha1.GroupVersion.WithKind("GitOpsDeploymentManagedEnvironment"), change{
		"spec.apiURL":            "https://api.cluster.example.com:6443",
		"spec.credentialsSecret": "cluster-access",
	})
	credential = good(v1alpha1.GroupVersion.WithKind("GitOpsDeploymentRepositoryCredential"), change{
		"spec.repository": "https://git.example.com/team/app.git",
		"spec.secret":     "git-access",
	})
	operation = good(operationv1alpha1.GroupVersion.WithKind("Operation"), change{
		"spec.operationID": "6f1c4c5e-0a0b-4a55-9c3d-0d6c3f1f2a11",
	})
	application = good(argoprojv1alpha1.GroupVersion.WithKind("Application"), change{
		"spec.project":               "team",
		"spec.source.repoURL":        "https://git.example.com/team/app.git",
		"spec.source.path":           "deploy",
		"spec.destination.server":    "https://kubernetes.default.svc",
		"spec.destination.namespace": "app",
	})
	appProject = good(argoprojv1alpha1.GroupVersion.WithKind("AppProject"), change{
		"spec.sourceRepos": []any{"https://git.example.com/team/app.git"},
	})
)

// template makes a resource of one kind that the server accepts, with changes.
type template func(t *testing.T, c change) *unstructured.Unstructured

func good(kind schema.GroupVersionKind, base change) template {
	return func(t *testing.T, c change) *unstructured.Unstructured {
		t.Helper()
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(kind)
		u.SetName("one")
		set(t, u, base)
		set(t, u, c)
		return u
	}
}

func set(t *testing.T, u *unstructured.Unstructured, c change) {
	t.Helper()
	for path, value := range c {
		fields := strings.Split(path, ".")
		if value == nil {
			unstructured.RemoveNestedField(u.Object, fields...)
			continue
		}
		if err := unstructured.SetNestedField(u.Object, value, fields...); err != nil {
			t.Fatalf("setting %s: %v", path, err)
		}
	}
}

// namespace makes one that no other test uses.
func namespace(t *testing.T) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "case-"}}
	if err := server.client.Create(t.Context(), ns); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	return ns.Name
}

// create creates the resource in a namespace of its own and fails the test
// where the server refuses.
func create(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	u.SetNamespace(namespace(t))
	if err := server.client.Create(t.Context(), u); err != nil {
		t.Fatalf("refused: %v", err)
	}
	return u
}

// update changes a resource as it is now and gives the server's answer.
func update(t *testing.T, u *unstructured.Unstructured, c change) error {
	t.Helper()
	changed := read(t, u)
	set(t, changed, c)
	return server.client.Update(t.Context(), changed)
}

func read(t *testing.T, u *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	got := &unstructured.Unstructured{}
	got.SetGroupVersionKind(u.GroupVersionKind())
	if err := server.client.Get(t.Context(), client.ObjectKeyFromObject(u), got); err != nil {
		t.Fatal(err)
	}
	return got
}

func checkRules(t *testing.T, good template, rules []rule) {
	t.Helper()
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			u := good(t, r.change)
			u.SetNamespace(namespace(t))
			// Strict: a misspelt field in a table row must not pass as accepted.
			err := server.client.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
			if r.field == "" {
				if err != nil {
					t.Fatalf("refused: %v", err)
				}
				return
			}
			checkRefused(t, err, r.field, r.remedy)
		})
	}
}

// checkRefused holds that a resource was refused as invalid in that field, with
// the remedy in the words about that field.
func checkRefused(t *testing.T, err error, field, remedy string) {
	t.Helper()
	if field == "" || remedy == "" {
		t.Fatal("the table row names no field or no remedy")
	}
	if err == nil {
		t.Fatalf("accepted; want a refusal of %s", field)
	}
	if !apierrors.IsInvalid(err) {
		t.Fatalf("refused for another cause: %.2000s", err.Error())
	}
	for _, cause := range causes(err) {
		if cause.Field == field && strings.Contains(cause.Message, remedy) {
			t.Logf("%s: %.300s", cause.Field, cause.Message)
			return
		}
	}
	t.Fatalf("refused, but %s with the remedy %q is not among the causes: %.2000s", field, remedy, err.Error())
}

func causes(err error) []metav1.StatusCause {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	return status.Status().Details.Causes
}
