// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/randfill"

	argoprojv1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/api/v1alpha1"
)

// typedClient knows the Go types, as the service's own clients do.
func typedClient(t *testing.T) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1alpha1.AddToScheme, operationv1alpha1.AddToScheme, argoprojv1alpha1.AddToScheme,
	} {
		if err := add(s); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.config, client.Options{Scheme: s})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// filler fills every field, down to the last, so that one that the schema does
// not know, and the server therefore drops, shows.
func filler() *randfill.Filler {
	return randfill.NewWithSeed(1).NilChance(0).NumElements(1, 3).Funcs(
		func(at *metav1.Time, c randfill.Continue) {
			*at = metav1.NewTime(time.Unix(1_700_000_000+c.Int63n(1_000_000), 0))
		},
		func(j *apiextensionsv1.JSON, _ randfill.Continue) { j.Raw = []byte(`{"a":{"b":1}}`) },
		func(cond *metav1.Condition, c randfill.Continue) {
			c.Fill(&cond.Message)
			c.Fill(&cond.LastTransitionTime)
			cond.ObservedGeneration = 1
			cond.Type, cond.Reason, cond.Status = "Type"+string('A'+rune(c.Intn(26))), "Reason", metav1.ConditionTrue
		},
	)
}

// Whatever the Go types of a status can say is stored and comes back: no status
// is ever refused, and none loses a field.
func TestEveryStatusFieldIsStored(t *testing.T) {
	c := typedClient(t)
	f := filler()

	t.Run("GitOpsDeployment", func(t *testing.T) {
		d := &v1alpha1.GitOpsDeployment{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace(t)}}
		d.Spec.Source.RepoURL = "https://git.example.com/team/app.git"
		stored(t, c, d, &d.Status, func() { f.Fill(&d.Status) })
	})
	t.Run("GitOpsDeploymentSyncRun", func(t *testing.T) {
		r := &v1alpha1.GitOpsDeploymentSyncRun{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace(t)}}
		r.Spec.GitopsDeploymentName = "app"
		stored(t, c, r, &r.Status, func() { f.Fill(&r.Status) })
	})
	t.Run("GitOpsDeploymentManagedEnvironment", func(t *testing.T) {
		e := &v1alpha1.GitOpsDeploymentManagedEnvironment{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace(t)}}
		e.Spec.APIURL, e.Spec.CredentialsSecret = "https://api.example.com", "access"
		stored(t, c, e, &e.Status, func() { f.Fill(&e.Status) })
	})
	t.Run("GitOpsDeploymentRepositoryCredential", func(t *testing.T) {
		r := &v1alpha1.GitOpsDeploymentRepositoryCredential{ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace(t)}}
		r.Spec.Repository, r.Spec.Secret = "https://git.example.com/app", "access"
		stored(t, c, r, &r.Status, func() { f.Fill(&r.Status) })
	})
}

// stored creates the resource with an empty status, writes the filled status,
// reads it back and compares.
func stored[T any](t *testing.T, c client.Client, o client.Object, status *T, fill func()) {
	t.Helper()
	if err := c.Create(t.Context(), o); err != nil {
		t.Fatalf("the Go type's own zero values are refused: %v", err)
	}
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatalf("an empty status is refused: %v", err)
	}
	fill()
	want := *status
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatalf("a full status is refused: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *status); diff != "" {
		t.Errorf("status (-written +read):\n%s", diff)
	}
}

func TestEveryApplicationFieldIsStored(t *testing.T) {
	c := typedClient(t)
	want := &argoprojv1alpha1.Application{}
	filler().Fill(&want.Spec)
	filler().Fill(&want.Status)
	filler().Fill(&want.Operation)
	got := want.DeepCopy()
	got.Name, got.Namespace = "one", namespace(t)
	if err := c.Create(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(want.Status, got.Status); diff != "" {
		t.Errorf("status (-written +read):\n%s", diff)
	}
	if diff := cmp.Diff(want.Operation, got.Operation); diff != "" {
		t.Errorf("operation (-written +read):\n%s", diff)
	}
}

func TestEveryAppProjectFieldIsStored(t *testing.T) {
	c := typedClient(t)
	want := &argoprojv1alpha1.AppProject{}
	filler().Fill(&want.Spec)
	got := want.DeepCopy()
	got.Name, got.Namespace = "one", namespace(t)
	if err := c.Create(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(got), got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
		t.Errorf("spec (-written +read):\n%s", diff)
	}
}
