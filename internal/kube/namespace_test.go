// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

func namespace(name, uid string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(uid)}}
}

func reader(namespaces ...client.Object) client.Reader {
	return fake.NewClientBuilder().WithScheme(NewScheme()).WithObjects(namespaces...).Build()
}

func failing(err error) client.Reader {
	return fake.NewClientBuilder().WithScheme(NewScheme()).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return err
		},
	}).Build()
}

func TestReadNamespace(t *testing.T) {
	t.Parallel()
	away := errors.New("connection refused")
	going := namespace("a", "uid-a")
	going.DeletionTimestamp, going.Finalizers = &metav1.Time{Time: time.Unix(1, 0)}, []string{"kubernetes"}
	for name, c := range map[string]struct {
		readers []client.Reader
		want    Namespace
		err     error
	}{
		"in the cache":                   {[]client.Reader{reader(namespace("a", "uid-a")), failing(away)}, Namespace{Name: "a", UID: "uid-a"}, nil},
		"not in the cache yet":           {[]client.Reader{reader(), reader(namespace("a", "uid-a"))}, Namespace{Name: "a", UID: "uid-a"}, nil},
		"terminating":                    {[]client.Reader{reader(going)}, Namespace{Name: "a", UID: "uid-a", Terminating: true}, nil},
		"nowhere":                        {[]client.Reader{reader(), reader(namespace("b", "uid-b"))}, Namespace{}, domain.ErrNotFound},
		"the cache cannot be read":       {[]client.Reader{failing(away), reader(namespace("a", "uid-a"))}, Namespace{}, away},
		"the API server does not answer": {[]client.Reader{reader(), failing(away)}, Namespace{}, away},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := ReadNamespace(t.Context(), "a", c.readers...)
			if !errors.Is(err, c.err) {
				t.Errorf("got %v; want %v", err, c.err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheSchemeKnowsWhatTheRolesUse(t *testing.T) {
	t.Parallel()
	s := NewScheme()
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Secret"),
		v1alpha1.GroupVersion.WithKind("GitOpsDeployment"),
		v1alpha1.GroupVersion.WithKind("GitOpsDeploymentList"),
		operationv1alpha1.GroupVersion.WithKind("Operation"),
		argov1alpha1.GroupVersion.WithKind("Application"),
		argov1alpha1.GroupVersion.WithKind("AppProject"),
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	} {
		if !s.Recognizes(kind) {
			t.Errorf("%s is unknown", kind)
		}
	}
}
