// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
)

// someUID is as long as the ones that names and labels of engine objects hold.
const someUID = "00000000-0000-4000-8000-000000000000"

func floorOperation(name string) *operationv1alpha1.Operation {
	return &operationv1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{Namespace: floorNamespace, Name: name, Labels: map[string]string{
			"bench.managedgitops.io/tenant":        someUID,
			"bench.managedgitops.io/resource-type": "Application",
			"bench.managedgitops.io/resource":      someUID,
		}},
		Spec: operationv1alpha1.OperationSpec{OperationID: someUID},
	}
}

// floorApplication lacks the labels that would make it Weir's.
func floorApplication(name string) *argov1alpha1.Application {
	return &argov1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: floorNamespace, Name: name,
			Labels: map[string]string{"bench.managedgitops.io/tenant": someUID, "bench.managedgitops.io/application": someUID},
		},
		Spec: argov1alpha1.ApplicationSpec{
			Project:     "default",
			Source:      &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/bench/floor.git", Path: "bench/" + name, TargetRevision: "main"},
			Destination: argov1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: floorNamespace},
			SyncPolicy:  &argov1alpha1.SyncPolicy{Automated: &argov1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
		},
	}
}

func (f *Floor) prepareStatus(ctx context.Context) error {
	// Of its own for each bare client: one that failed may have left its behind.
	name := "status-" + strings.ToLower(rand.Text())
	f.application = floorApplication(name)
	if err := f.create(ctx, f.application); err != nil {
		return err
	}
	f.credential = &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"repository": "https://git.example.com/bench/floor.git", "secret": "floor"},
	}}
	f.credential.SetGroupVersionKind(floorKind())
	f.credential.SetNamespace(floorNamespace)
	f.credential.SetName(name)
	return f.create(ctx, f.credential)
}

// floorKind is a tenant kind under a name that nobody serves: with the same schema
// and the same rules, so that writing it costs the API server the same.
func floorKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "bench.managedgitops.io", Version: "v1alpha1", Kind: "FloorCredential"}
}

func floorList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	kind := floorKind()
	kind.Kind += "List"
	list.SetGroupVersionKind(kind)
	return list
}

// floorDefinition is made from the definition of the tenant kind.
func floorDefinition(all []*apiextensionsv1.CustomResourceDefinition) (*apiextensionsv1.CustomResourceDefinition, error) {
	for _, d := range all {
		if d.Spec.Names.Kind != "GitOpsDeploymentRepositoryCredential" {
			continue
		}
		d = d.DeepCopy()
		d.Name = "floorcredentials." + floorKind().Group
		d.Spec.Group = floorKind().Group
		d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
			Kind: floorKind().Kind, ListKind: floorKind().Kind + "List", Plural: "floorcredentials", Singular: "floorcredential",
		}
		return d, nil
	}
	return nil, errNoDefinition
}

var errNoDefinition = errors.New("the definition of GitOpsDeploymentRepositoryCredential is not there")

// floorSight names an object of the bare client in its present version.
func floorSight(o client.Object) Sight {
	switch o := o.(type) {
	case *argov1alpha1.Application:
		return FloorObject("Application " + o.Name + " " + o.Status.Sync.Revision)
	case *unstructured.Unstructured:
		conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
		if len(conditions) > 0 {
			message, _, _ := unstructured.NestedString(conditions[0].(map[string]any), "message")
			return FloorObject("credential " + o.GetName() + " " + message)
		}
		return FloorObject("credential " + o.GetName())
	default:
		return FloorObject("Operation " + o.GetName())
	}
}

// patchStatus writes a status as the engine does.
func (f *Floor) patchStatus(ctx context.Context, revision string, patch client.Patch) error {
	f.application.Status.Sync.Revision = revision
	return f.delivered(ctx, f.application, func() error { return f.client.Patch(ctx, f.application, patch) })
}

// updateStatus writes a tenant's status of about the size that a deployment with
// five resources has.
func (f *Floor) updateStatus(ctx context.Context, revision string) error {
	f.credential.Object["status"] = map[string]any{"conditions": []any{map[string]any{
		"type": "ErrorOccurred", "status": "False", "reason": "Benchmark", "lastTransitionTime": metav1.Now().UTC().Format(time.RFC3339),
		"message": revision + strings.Repeat(" and so on", 100),
	}}}
	return f.delivered(ctx, f.credential, func() error { return f.client.Status().Update(ctx, f.credential) })
}
