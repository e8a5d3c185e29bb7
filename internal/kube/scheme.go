// SPDX-License-Identifier: Apache-2.0

package kube

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// NewScheme knows Kubernetes' own kinds, the tenant kinds, Operation, and the
// engine's.
func NewScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(operationv1alpha1.AddToScheme(s))
	utilruntime.Must(argov1alpha1.AddToScheme(s))
	return s
}
