// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/engine/livestate"
)

// bed is a running cache of the real API server, with a namespace of its own.
type bed struct {
	t      testing.TB
	ns     string
	client dynamic.Interface
	proxy  *proxy
	config *rest.Config // of the cache
	cache  *livestate.ClusterCache
	log    *log
}

// log has what handlers were told, for each object in order.
type log struct {
	mu   sync.Mutex
	told map[livestate.ResourceID][]string
}

func (l *log) add(id livestate.ResourceID, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[id] = append(l.told[id], what)
}

func (l *log) of(id livestate.ResourceID) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.told[id])
}

func (l *log) handlers() livestate.ResourceEventHandlers {
	id := func(o *unstructured.Unstructured) livestate.ResourceID {
		gvk := o.GroupVersionKind()
		return livestate.ResourceID{Namespace: o.GetNamespace(), Name: o.GetName(), Group: gvk.Group, Kind: gvk.Kind}
	}
	return livestate.ResourceEventHandlers{
		OnCreated: func(o *unstructured.Unstructured) { l.add(id(o), "created "+o.GetLabels()["step"]) },
		OnUpdated: func(o *unstructured.Unstructured) { l.add(id(o), "updated "+o.GetLabels()["step"]) },
		OnDeleted: func(id livestate.ResourceID) { l.add(id, "deleted") },
	}
}

// newBed has a namespace and no cache yet.
func newBed(t testing.TB) *bed {
	t.Helper()
	c := startCluster(t)
	b := &bed{t: t, log: &log{told: map[livestate.ResourceID][]string{}}}
	client, err := dynamic.NewForConfig(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	b.client = client
	b.ns = b.namespace()
	b.proxy, b.config = newProxy(t, c.Config)
	return b
}

func (b *bed) namespace() string {
	b.t.Helper()
	ns, err := b.client.Resource(gvr("v1", "namespaces")).Create(b.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"generateName": "livestate-"},
	}}, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return ns.GetName()
}

// run starts the cache; it stops with the test, and leaves no goroutine.
func (b *bed) run(settings livestate.Settings) {
	b.t.Helper()
	settings.EventHandlers = b.log.handlers()
	before := goleak.IgnoreCurrent()
	cache, err := livestate.NewClusterCache(b.config, settings)
	if err != nil {
		b.t.Fatal(err)
	}
	b.cache = cache
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	b.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			b.t.Error(err)
		}
		b.proxy.cut()
		goleak.VerifyNone(b.t, before)
	})
	b.sync()
}

func (b *bed) sync() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	if err := b.cache.WaitForSync(ctx); err != nil {
		b.t.Fatal(err)
	}
}

func gvr(version, resource string) schema.GroupVersionResource {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil {
		panic(err)
	}
	return gv.WithResource(resource)
}

// create makes an object in the namespace, or in the cluster if it says so.
func (b *bed) create(version, kind, resource, name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	b.t.Helper()
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(b.ns)
	for _, f := range change {
		f(o)
	}
	made, err := b.client.Resource(gvr(version, resource)).Namespace(o.GetNamespace()).Create(b.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	return made
}

func (b *bed) configMap(name string, change ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	b.t.Helper()
	return b.create("v1", "ConfigMap", "configmaps", name, change...)
}

// label updates the step of a config map.
func (b *bed) label(name, step string) {
	b.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{"step":%q}}}`, step)
	if _, err := b.client.Resource(gvr("v1", "configmaps")).Namespace(b.ns).Patch(b.t.Context(), name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) delete(version, resource, ns, name string) {
	b.t.Helper()
	if err := b.client.Resource(gvr(version, resource)).Namespace(ns).Delete(b.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) id(kind, name string) livestate.ResourceID {
	gk := schema.ParseGroupKind(kind)
	return livestate.ResourceID{Namespace: b.ns, Name: name, Group: gk.Group, Kind: gk.Kind}
}

func (b *bed) has(id livestate.ResourceID) bool { _, ok := b.cache.Get(id); return ok }

// treeOf gives the kinds below a root, in order.
func (b *bed) treeOf(root livestate.ResourceID) (kinds []string) {
	b.t.Helper()
	err := b.cache.IterateChildTree([]livestate.ResourceID{root}, func(id livestate.ResourceID) error {
		kinds = append(kinds, id.Kind)
		return nil
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return kinds
}

func withOwner(owner *unstructured.Unstructured) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		o.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
		}})
	}
}

func withField(value any, path ...string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(o.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

// eventually waits for something that a real server does in its own time.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("in a minute not: %s", what)
		}
	}
}
