// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	instanceLabel      = "app.kubernetes.io/instance"
	trackingAnnotation = "argocd.argoproj.io/tracking-id"
)

// trackingID names an application and one object of it.
func trackingID(app string, kind schema.GroupKind, namespace, name string) string {
	return app + ":" + kind.Group + "/" + kind.Kind + ":" + namespace + "/" + name
}

// track marks a desired object as an application's.
func track(app string, o *unstructured.Unstructured) {
	labels := o.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[instanceLabel] = app
	o.SetLabels(labels)
	annotations := o.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[trackingAnnotation] = trackingID(app, o.GroupVersionKind().GroupKind(), o.GetNamespace(), o.GetName())
	o.SetAnnotations(annotations)
}

// owns says whether a live object is an application's own: its tracking annotation
// names the application and this very object.
func owns(app string, kind schema.GroupKind, o metav1.Object) bool {
	id := o.GetAnnotations()[trackingAnnotation]
	return strings.HasPrefix(id, app+":") && id == trackingID(app, kind, o.GetNamespace(), o.GetName())
}
