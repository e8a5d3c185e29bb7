// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/domain"
)

// Namespace is what Weir needs to know of a namespace.
type Namespace struct {
	Name        string
	UID         domain.TenantID
	Terminating bool
	Annotations map[string]string
}

// NamespaceMetadata is the object to watch namespaces by: metadata is all that
// is read of them.
func NamespaceMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return m
}

// ReadNamespace asks the readers in turn, a cache and then the API server,
// because a namespace may reach the cache a moment after a CR inside it did.
func ReadNamespace(ctx context.Context, name string, readers ...client.Reader) (Namespace, error) {
	for _, r := range readers {
		m := NamespaceMetadata()
		err := r.Get(ctx, client.ObjectKey{Name: name}, m)
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return Namespace{}, err
		}
		return Namespace{Name: name, UID: domain.TenantID(m.UID), Terminating: !m.DeletionTimestamp.IsZero(), Annotations: m.Annotations}, nil
	}
	return Namespace{}, fmt.Errorf("namespace %s: %w", name, domain.ErrNotFound)
}
