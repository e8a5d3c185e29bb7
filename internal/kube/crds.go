// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/domain"
)

// FieldOwner is the name under which Weir applies objects.
const FieldOwner = "weir"

// MissingCRDs is the error that names the CRDs a role cannot work without.
type MissingCRDs struct{ Names []string }

func (m *MissingCRDs) Error() string {
	return fmt.Sprintf("the cluster lacks %s; install them with: weir crds install", strings.Join(m.Names, ", "))
}

// RequireCRDs checks that CRDs are installed and being served.
func RequireCRDs(ctx context.Context, c client.Reader, crds []*apiextensionsv1.CustomResourceDefinition) error {
	var missing []string
	for _, want := range crds {
		have := &apiextensionsv1.CustomResourceDefinition{}
		err := c.Get(ctx, client.ObjectKeyFromObject(want), have)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, want.Name)
		case err != nil:
			return fmt.Errorf("look for CRD %s: %w", want.Name, err)
		case !established(have):
			missing = append(missing, want.Name+" (installed but not established)")
		}
	}
	if len(missing) > 0 {
		return &MissingCRDs{Names: missing}
	}
	return nil
}

// Install creates or updates objects under Weir's name.
func Install(ctx context.Context, c client.Client, objects ...*unstructured.Unstructured) error {
	for _, o := range objects {
		if err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), client.FieldOwner(FieldOwner), client.ForceOwnership); err != nil {
			return fmt.Errorf("install %s %s: %w", o.GetKind(), o.GetName(), err)
		}
	}
	return nil
}

// InstallCRDs creates or updates CRDs and waits until they are being served.
func InstallCRDs(ctx context.Context, c client.Client, crds []*apiextensionsv1.CustomResourceDefinition) error {
	for _, crd := range crds {
		raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
		if err != nil {
			return err
		}
		delete(raw, "status")
		if err := Install(ctx, c, &unstructured.Unstructured{Object: raw}); err != nil {
			return err
		}
	}
	const look = 50 * time.Millisecond
	return wait.PollUntilContextTimeout(ctx, look, time.Minute, true, func(ctx context.Context) (bool, error) {
		for _, crd := range crds {
			have := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(crd), have); err != nil {
				return false, err
			}
			if !established(have) {
				return false, nil
			}
		}
		return true, nil
	})
}

func established(crd *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// AsConflict makes the API server's "already exists" and "conflict" the domain's.
func AsConflict(err error) error {
	if apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", domain.ErrConflict, err)
	}
	return err
}
