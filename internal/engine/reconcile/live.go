// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
)

// watches shows the live objects of all applications on one cluster: metadata
// only, of the kinds and namespaces that something is deployed to. A watch begins
// with its first use and lasts as long as the engine.
type watches struct {
	ctx     context.Context //nolint:containedctx // what the watches live for
	client  metadata.Interface
	changed func(app string)

	mu     sync.Mutex
	opened map[watched]cache.SharedIndexInformer
}

type watched struct {
	resource  schema.GroupVersionResource
	namespace string
}

const byApplication = "application"

// open gives the watch over a kind in a namespace, once it has been read.
func (w *watches) open(ctx context.Context, r schema.GroupVersionResource, namespace string) (cache.SharedIndexInformer, error) {
	informer := w.informer(watched{r, namespace})
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return nil, fmt.Errorf("watch %s in %q: %w", r.Resource, namespace, context.Cause(ctx))
	}
	return informer, nil
}

func (w *watches) informer(of watched) cache.SharedIndexInformer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if have := w.opened[of]; have != nil {
		return have
	}
	informer := metadatainformer.NewFilteredMetadataInformer(w.client, of.resource, of.namespace, 0,
		cache.Indexers{byApplication: func(o any) ([]string, error) {
			return []string{o.(*metav1.PartialObjectMetadata).Labels[instanceLabel]}, nil
		}},
		func(o *metav1.ListOptions) { o.LabelSelector = instanceLabel },
	).Informer()
	_ = informer.SetTransform(func(o any) (any, error) {
		if m, is := o.(*metav1.PartialObjectMetadata); is {
			m.ManagedFields = nil
		}
		return o, nil
	})
	tell := func(o any) {
		if gone, is := o.(cache.DeletedFinalStateUnknown); is {
			o = gone.Obj
		}
		if m, is := o.(*metav1.PartialObjectMetadata); is {
			w.changed(m.Labels[instanceLabel])
		}
	}
	_, _ = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: tell, DeleteFunc: tell,
		UpdateFunc: func(before, after any) {
			if before.(*metav1.PartialObjectMetadata).ResourceVersion != after.(*metav1.PartialObjectMetadata).ResourceVersion {
				tell(after)
			}
		},
	})
	if w.opened == nil {
		w.opened = map[watched]cache.SharedIndexInformer{}
	}
	w.opened[of] = informer
	go informer.Run(w.ctx.Done())
	return informer
}
