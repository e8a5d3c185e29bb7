// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
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
	f.application = floorApplication("status")
	if err := f.create(ctx, f.application); err != nil {
		return err
	}
	f.credential = &v1alpha1.GitOpsDeploymentRepositoryCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: floorNamespace, Name: "status"},
		Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: "https://git.example.com/bench/floor.git", Secret: "floor"},
	}
	return f.create(ctx, f.credential)
}

// floorSight names an object of the bare client in its present version.
func floorSight(o client.Object) Sight {
	switch o := o.(type) {
	case *argov1alpha1.Application:
		return FloorObject("Application " + o.Name + " " + o.Status.Sync.Revision)
	case *v1alpha1.GitOpsDeploymentRepositoryCredential:
		if len(o.Status.Conditions) > 0 {
			return FloorObject("credential " + o.Name + " " + o.Status.Conditions[0].Message)
		}
		return FloorObject("credential " + o.Name)
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
	f.credential.Status.Conditions = []metav1.Condition{{
		Type: "ErrorOccurred", Status: metav1.ConditionFalse, Reason: "Benchmark", LastTransitionTime: metav1.Now(),
		Message: revision + strings.Repeat(" and so on", 100),
	}}
	return f.delivered(ctx, f.credential, func() error { return f.client.Status().Update(ctx, f.credential) })
}
