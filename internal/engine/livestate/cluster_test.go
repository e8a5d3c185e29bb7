// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/engine/livestate"
)

func TestWorkloads(t *testing.T) {
	b := newBed(t)
	b.run(livestate.Settings{Labels: []string{"app"}, Annotations: []string{"note"}})
	labels := map[string]any{"app": "web"}
	made := b.create("apps/v1", "Deployment", "deployments", "web",
		withField(labels, "metadata", "labels"),
		withField(map[string]any{"note": "hello"}, "metadata", "annotations"),
		withField(map[string]any{
			"replicas": int64(2), "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "example.com/web"}}},
			},
		}, "spec"))
	b.create("v1", "Service", "services", "web", withField(map[string]any{
		"selector": labels, "ports": []any{map[string]any{"port": int64(80)}},
	}, "spec"))

	root := b.id("Deployment.apps", "web")
	eventually(t, "two pods in the tree", func() bool {
		return slices.Equal(b.treeOf(root), []string{"Deployment", "ReplicaSet", "Pod", "Pod"})
	})
	eventually(t, "endpoints and a slice in the tree", func() bool {
		kinds := b.treeOf(b.id("Service", "web"))
		return len(kinds) == 3 && kinds[0] == "Service" && slices.Contains(kinds, "Endpoints") && slices.Contains(kinds, "EndpointSlice")
	})
	got, ok := b.cache.Get(root)
	if !ok || got.UID != string(made.GetUID()) || got.Labels["app"] != "web" || got.Annotations["note"] != "hello" || got.ResourceVersion == "" {
		t.Errorf("got %+v", got)
	}
	found, err := b.cache.List(livestate.ListOptions{
		Namespaces: []string{b.ns}, TopLevelOnly: true, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	})
	if err != nil || len(found) != 1 || found[0] != root {
		t.Errorf("listed %v, %v", found, err)
	}
	b.create("v1", "Secret", "secrets", "token",
		withField(map[string]any{"kubernetes.io/service-account.name": "default"}, "metadata", "annotations"),
		withField("kubernetes.io/service-account-token", "type"))
	eventually(t, "the token in the tree", func() bool {
		return slices.Equal(b.treeOf(b.id("ServiceAccount", "default")), []string{"ServiceAccount", "Secret"})
	})

	api, err := b.cache.GetResourceAPIMetadata(schema.ParseGroupKind("Deployment.apps"))
	if err != nil || api.Name != "deployments" || api.Version != "v1" || !api.Namespaced {
		t.Errorf("got %+v, %v", api, err)
	}
	if _, err := b.cache.GetResourceAPIMetadata(schema.ParseGroupKind("No.example.com")); !errors.Is(err, livestate.ErrUnknownKind) {
		t.Errorf("an unknown kind: %v", err)
	}
	stop := errors.New("enough")
	if err := b.cache.IterateChildTree([]livestate.ResourceID{root}, func(livestate.ResourceID) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("the action's error: %v", err)
	}
	if err := b.cache.Run(t.Context()); !errors.Is(err, livestate.ErrAlreadyRun) {
		t.Errorf("a second run: %v", err)
	}
}

func TestHandlersAreInOrder(t *testing.T) {
	b := newBed(t)
	b.run(livestate.Settings{})
	want := []string{"created 0"}
	b.configMap("x", withField(map[string]any{"step": "0"}, "metadata", "labels"))
	for i := 1; i <= 20; i++ {
		b.label("x", fmt.Sprint(i))
		want = append(want, fmt.Sprintf("updated %d", i))
	}
	b.delete("v1", "configmaps", b.ns, "x")
	b.configMap("x")
	want = append(want, "deleted", "created ")
	id := b.id("ConfigMap", "x")
	eventually(t, "all events", func() bool { return len(b.log.of(id)) >= len(want) })
	if got := b.log.of(id); !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

func TestNamespacesAndFilters(t *testing.T) {
	b := newBed(t)
	second, other := b.namespace(), b.namespace()
	in := func(ns string) func(*unstructured.Unstructured) {
		return func(o *unstructured.Unstructured) { o.SetNamespace(ns) }
	}
	b.configMap("x")
	b.configMap("x", in(second))
	b.configMap("x", in(other))
	b.create("v1", "Secret", "secrets", "hidden")
	b.run(livestate.Settings{
		Namespaces: []string{b.ns, second, b.ns},
		Filter:     livestate.ResourcesAPIFilter{ResourceExclusions: append(livestate.Noise(), livestate.ResourceFilter{APIGroups: []string{""}, Kinds: []string{"Secret"}})},
	})
	all, err := b.cache.List(livestate.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for _, id := range all {
		if id.Kind == "Secret" || id.Kind == "Event" || (id.Namespace != b.ns && id.Namespace != second) {
			t.Errorf("saw %v", id)
		}
		if id.Name == "x" {
			seen[id.Namespace]++
		}
	}
	if len(seen) != 2 || seen[b.ns] != 1 || seen[second] != 1 {
		t.Errorf("saw %v", seen)
	}
	if api, err := b.cache.GetResourceAPIMetadata(schema.ParseGroupKind("Secret")); err != nil || api.Name != "secrets" {
		t.Errorf("an excluded kind is still known: %v, %v", api, err)
	}
	b.configMap("y", in(other))
	b.configMap("y", in(second))
	id := b.id("ConfigMap", "y")
	id.Namespace = second
	eventually(t, "the new one", func() bool { return b.has(id) })
	id.Namespace = other
	if b.has(id) {
		t.Error("an object of another namespace")
	}
}

func TestKindsComeAndGo(t *testing.T) {
	for name, namespaced := range map[string]bool{"cluster": false, "namespaced": true} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			var settings livestate.Settings
			if namespaced {
				settings.Namespaces = []string{b.ns}
			}
			b.run(settings)
			group := b.ns + ".example.com"
			widget := b.id("Widget."+group, "w")
			for range 2 { // the second time it comes back
				b.create("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "widgets."+group, definition(group, "v1beta1", "v1"))
				eventually(t, "the kind is served", func() bool {
					api, err := b.cache.GetResourceAPIMetadata(schema.GroupKind{Group: group, Kind: "Widget"})
					return err == nil && api.Version == "v1"
				})
				b.sync()
				w := b.create(group+"/v1", "Widget", "widgets", "w")
				b.configMap("part", withOwner(w))
				eventually(t, "the widget and its part", func() bool {
					return slices.Equal(b.treeOf(widget), []string{"Widget", "ConfigMap"})
				})
				b.delete("v1", "configmaps", b.ns, "part")
				b.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", "", "widgets."+group)
				eventually(t, "the kind is gone", func() bool {
					_, err := b.cache.GetResourceAPIMetadata(schema.GroupKind{Group: group, Kind: "Widget"})
					return errors.Is(err, livestate.ErrUnknownKind) && !b.has(widget)
				})
			}
			if got := b.log.of(widget); !slices.Equal(got, []string{"created ", "deleted", "created ", "deleted"}) {
				t.Errorf("told %q", got)
			}
		})
	}
}

// A new preferred version of a kind is a new watch of the same objects, and no news
// to anyone.
func TestPreferredVersionChanges(t *testing.T) {
	b := newBed(t)
	group := b.ns + ".example.com"
	gk := schema.GroupKind{Group: group, Kind: "Widget"}
	b.run(livestate.Settings{})
	b.create("apiextensions.k8s.io/v1", "CustomResourceDefinition", "customresourcedefinitions", "widgets."+group, definition(group, "v1beta1"))
	eventually(t, "the kind is served", func() bool { _, err := b.cache.GetResourceAPIMetadata(gk); return err == nil })
	b.create(group+"/v1beta1", "Widget", "widgets", "w")
	widget := b.id("Widget."+group, "w")
	eventually(t, "the widget", func() bool { return b.has(widget) })

	crds := b.client.Resource(gvr("apiextensions.k8s.io/v1", "customresourcedefinitions"))
	crd, err := crds.Get(t.Context(), "widgets."+group, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	definition(group, "v1", "v1beta1")(crd)
	if _, err := crds.Update(t.Context(), crd, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the new version", func() bool { api, err := b.cache.GetResourceAPIMetadata(gk); return err == nil && api.Version == "v1" })
	b.sync()
	b.delete(group+"/v1", "widgets", b.ns, "w")
	eventually(t, "the end of the widget", func() bool { return !b.has(widget) })
	if got := b.log.of(widget); !slices.Equal(got, []string{"created ", "deleted"}) {
		t.Errorf("told %q", got)
	}
	b.delete("apiextensions.k8s.io/v1", "customresourcedefinitions", "", "widgets."+group)
}

// definition is one of a kind with these versions; the last one is stored.
func definition(group string, versions ...string) func(*unstructured.Unstructured) {
	schema := map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}
	var all []any
	for i, name := range versions {
		all = append(all, map[string]any{"name": name, "served": true, "storage": i == len(versions)-1, "schema": schema})
	}
	return func(o *unstructured.Unstructured) {
		o.SetNamespace("")
		o.Object["spec"] = map[string]any{
			"group": group, "scope": "Namespaced",
			"names":    map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": all,
		}
	}
}

// A cut connection loses nothing and makes nothing up, whether it is back at once
// or only later.
func TestCutConnection(t *testing.T) {
	b := newBed(t)
	b.run(livestate.Settings{})
	b.configMap("kept")
	b.configMap("gone")
	b.configMap("changed")
	ids := []livestate.ResourceID{b.id("ConfigMap", "kept"), b.id("ConfigMap", "gone"), b.id("ConfigMap", "changed"), b.id("ConfigMap", "new")}
	eventually(t, "all three", func() bool { return b.has(ids[0]) && b.has(ids[1]) && b.has(ids[2]) })

	b.proxy.setDeaf(true)
	b.proxy.cut()
	b.delete("v1", "configmaps", b.ns, "gone")
	b.label("changed", "1")
	b.configMap("new")
	b.proxy.setDeaf(false)
	eventually(t, "what happened meanwhile", func() bool { return b.has(ids[3]) && !b.has(ids[1]) })
	for range 3 {
		b.proxy.cut()
	}
	b.label("changed", "2")
	eventually(t, "the second change", func() bool { return slices.Contains(b.log.of(ids[2]), "updated 2") })
	for i, want := range [][]string{{"created "}, {"created ", "deleted"}, {"created ", "updated 1", "updated 2"}, {"created "}} {
		if got := b.log.of(ids[i]); !slices.Equal(got, want) {
			t.Errorf("%v: told %q, want %q", ids[i], got, want)
		}
	}
}

// A group whose server is not there does not keep the others back.
func TestSilentGroup(t *testing.T) {
	b := newBed(t)
	group := b.ns + ".example.com"
	b.create("apiregistration.k8s.io/v1", "APIService", "apiservices", "v1."+group, withField(map[string]any{
		"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100), "insecureSkipTLSVerify": true,
		"service": map[string]any{"name": "nobody", "namespace": b.ns},
	}, "spec"), func(o *unstructured.Unstructured) { o.SetNamespace("") })
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = b.client.Resource(gvr("apiregistration.k8s.io/v1", "apiservices")).Delete(ctx, "v1."+group, metav1.DeleteOptions{})
	})
	b.run(livestate.Settings{})
	silent := func() bool {
		return slices.Contains(b.cache.Status().Silent, schema.GroupVersion{Group: group, Version: "v1"})
	}
	eventually(t, "the group is named as silent", silent)
	b.configMap("x")
	eventually(t, "others are seen", func() bool { return b.has(b.id("ConfigMap", "x")) })
	b.delete("apiregistration.k8s.io/v1", "apiservices", "", "v1."+group)
	eventually(t, "the group is forgotten", func() bool { return !silent() })
}

// Who may see only some kinds has those.
func TestRefusedKinds(t *testing.T) {
	b := newBed(t)
	b.configMap("x")
	b.create("v1", "Secret", "secrets", "x")
	b.create("v1", "ServiceAccount", "serviceaccounts", "reader")
	b.create("rbac.authorization.k8s.io/v1", "Role", "roles", "reader",
		withField([]any{map[string]any{"apiGroups": []any{""}, "resources": []any{"configmaps"}, "verbs": []any{"list", "watch"}}}, "rules"))
	b.create("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings", "reader",
		withField(map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}, "roleRef"),
		withField([]any{map[string]any{"kind": "ServiceAccount", "name": "reader", "namespace": b.ns}}, "subjects"))
	b.config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + b.ns + ":reader", Groups: []string{"system:authenticated"}}
	b.run(livestate.Settings{Namespaces: []string{b.ns}})
	eventually(t, "the config map", func() bool { return b.has(b.id("ConfigMap", "x")) })
	if b.has(b.id("Secret", "x")) {
		t.Error("saw a Secret")
	}
	for _, k := range b.cache.Status().Kinds {
		if k.Kind == "Secret" && (k.Synced || k.Err == nil) {
			t.Errorf("Secrets: %+v", k)
		}
	}
}

func TestNotSynced(t *testing.T) {
	cache, err := livestate.NewClusterCache(&rest.Config{Host: "http://127.0.0.1:1"}, livestate.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var not *livestate.NotSyncedError
	if err := cache.WaitForSync(ctx); !errors.As(err, &not) || !errors.Is(err, livestate.ErrNotSynced) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
