// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// scopeFeed puts what a watcher sees into the store and tells the handlers.
type scopeFeed struct {
	store    *store
	scope    *scope
	version  schema.GroupVersion
	handlers ResourceEventHandlers
}

func (f *scopeFeed) begin() { f.store.begin(f.scope) }

func (f *scopeFeed) complete() { f.deleted(f.store.complete(f.scope)) }

// close removes everything.
func (f *scopeFeed) close() { f.deleted(f.store.close(f.scope)) }

func (f *scopeFeed) observe(obj *metav1.PartialObjectMetadata) {
	did := f.store.upsert(f.scope, obj)
	if did.replaced {
		f.deleted([]ResourceID{f.id(obj)})
	}
	switch {
	case did.created && f.handlers.OnCreated != nil:
		f.handlers.OnCreated(f.convert(obj))
	case did.updated && f.handlers.OnUpdated != nil:
		f.handlers.OnUpdated(f.convert(obj))
	}
}

func (f *scopeFeed) forget(obj *metav1.PartialObjectMetadata) {
	if f.store.forget(f.scope, obj) {
		f.deleted([]ResourceID{f.id(obj)})
	}
}

func (f *scopeFeed) deleted(ids []ResourceID) {
	if f.handlers.OnDeleted == nil {
		return
	}
	for _, id := range ids {
		f.handlers.OnDeleted(id)
	}
}

func (f *scopeFeed) id(obj *metav1.PartialObjectMetadata) ResourceID {
	gk := f.scope.kind.GroupKind
	return ResourceID{Namespace: obj.Namespace, Name: obj.Name, Group: gk.Group, Kind: gk.Kind}
}

// convert makes an object for a handler. The watcher has no further use for obj,
// so its parts may move.
func (f *scopeFeed) convert(obj *metav1.PartialObjectMetadata) *unstructured.Unstructured {
	obj.ManagedFields = nil
	obj.TypeMeta = metav1.TypeMeta{APIVersion: f.version.String(), Kind: f.scope.kind.Kind}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		// It came through a decoder of the same type; there is no value that only one
		// of them takes. Still, an event is worth more than its details.
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(f.version.WithKind(f.scope.kind.Kind))
		u.SetNamespace(obj.Namespace)
		u.SetName(obj.Name)
		u.SetUID(obj.UID)
		u.SetResourceVersion(obj.ResourceVersion)
		return u
	}
	return &unstructured.Unstructured{Object: content}
}

// definitionsFeed says when discovery should be asked again, and passes everything on.
type definitionsFeed struct {
	feed
	listing bool
	changed func()
}

func (f *definitionsFeed) begin() {
	f.listing = true
	f.feed.begin()
}

func (f *definitionsFeed) complete() {
	f.listing = false
	f.feed.complete()
	f.changed()
}

func (f *definitionsFeed) observe(obj *metav1.PartialObjectMetadata) {
	f.feed.observe(obj)
	if !f.listing {
		f.changed()
	}
}

func (f *definitionsFeed) forget(obj *metav1.PartialObjectMetadata) {
	f.feed.forget(obj)
	f.changed()
}

// noFeed takes everything and keeps nothing.
type noFeed struct{}

func (noFeed) begin()                                {}
func (noFeed) complete()                             {}
func (noFeed) observe(*metav1.PartialObjectMetadata) {}
func (noFeed) forget(*metav1.PartialObjectMetadata)  {}
