// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// settleWithin is how long an API server may take to serve new kinds.
const settleWithin = 30 * time.Second

// Settle waits until the API server takes writes of the kinds that Weir works
// with. A kind that was installed a moment ago is prepared with the first
// requests for it, and one of these may be held for seconds; that one should be
// ours, not the user's first. Nothing is written: the server only goes through
// the motions.
func Settle(ctx context.Context, api client.Client, tenant, engine string) error {
	const name = "weir-settle"
	for _, object := range []client.Object{
		&v1alpha1.GitOpsDeployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
			Spec: v1alpha1.GitOpsDeploymentSpec{
				Source: v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/settle.git", Path: "."},
				Type:   v1alpha1.DeploymentTypeManual,
			},
		},
		&operationv1alpha1.Operation{
			ObjectMeta: metav1.ObjectMeta{Namespace: engine, Name: operationv1alpha1.NamePrefix + name},
			Spec:       operationv1alpha1.OperationSpec{OperationID: name},
		},
		&argov1alpha1.Application{
			ObjectMeta: metav1.ObjectMeta{Namespace: engine, Name: name},
			Spec: argov1alpha1.ApplicationSpec{
				Project: "default",
				Source:  &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/settle.git", Path: "."},
			},
		},
	} {
		if err := settle(ctx, api, object); err != nil {
			return fmt.Errorf("wait until %T is served: %w", object, err)
		}
	}
	return nil
}

func settle(ctx context.Context, api client.Client, object client.Object) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, look, settleWithin, true, func(ctx context.Context) (bool, error) {
		last = api.Create(ctx, object, client.DryRunAll)
		switch {
		case last == nil, apierrors.IsAlreadyExists(last):
			return true, nil
		case apierrors.IsNotFound(last), meta.IsNoMatchError(last), apierrors.IsServiceUnavailable(last), apierrors.IsTooManyRequests(last):
			return false, nil
		default:
			return false, last
		}
	})
	if err != nil && last != nil {
		return last
	}
	return err
}
