// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
)

func TestList(t *testing.T) {
	w := newWorld("team")
	w.put("Namespace s")
	w.put("Deployment.apps s/web")
	w.put("ReplicaSet.apps s/web-1", "Deployment.apps s/web")
	w.put("Pod s/lost", "ReplicaSet.apps s/never-seen")
	w.put("Service r/web")
	w.put("Endpoints r/web")
	w.put("Endpoints r/alone")
	m := w.meta("ConfigMap r/red")
	m.Labels = map[string]string{"team": "red", "other": "x"}
	w.putMeta("ConfigMap r/red", m)

	for _, test := range []struct {
		name    string
		options ListOptions
		want    []string
	}{
		{"namespaces", ListOptions{Namespaces: []string{"s", "none"}}, []string{"Deployment.apps s/web", "ReplicaSet.apps s/web-1", "Pod s/lost"}},
		{"an empty namespace is no cluster-scoped object", ListOptions{Namespaces: []string{""}}, nil},
		{"cluster", ListOptions{ClusterLevelOnly: true}, []string{"Namespace s"}},
		{"both", ListOptions{ClusterLevelOnly: true, NamespacedOnly: true}, nil},
		{"top level", ListOptions{TopLevelOnly: true, NamespacedOnly: true}, []string{
			"Deployment.apps s/web", "Service r/web", "Endpoints r/alone", "ConfigMap r/red",
		}},
		{"selector", ListOptions{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}}, []string{"ConfigMap r/red"}},
		{"selector without", ListOptions{Namespaces: []string{"r"}, Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "team", Operator: metav1.LabelSelectorOpDoesNotExist},
		}}}, []string{"Service r/web", "Endpoints r/web", "Endpoints r/alone"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := w.list(test.options)
			if err != nil {
				t.Fatal(err)
			}
			wantSame(t, "found", texts(got), test.want)
		})
	}
	_, err := w.list(ListOptions{Selector: metav1.LabelSelector{MatchLabels: map[string]string{"other": "x"}}})
	if !errors.Is(err, ErrLabelNotKept) {
		t.Errorf("a label that is not kept: %v", err)
	}
	got, _ := w.get(parse("ConfigMap r/red"))
	if len(got.Labels) != 1 || got.Labels["team"] != "red" {
		t.Errorf("kept %v", got.Labels)
	}
}

// A list gives the events that a gap hid, and no others.
func TestListsAndSweeps(t *testing.T) {
	w := newWorld()
	w.put("A s/same")
	w.put("A s/changed")
	w.put("A s/gone")
	w.put("A s/again")
	w.put("B s/gone")
	sc := w.byKind[schema.GroupKind{Kind: "A"}]
	same, _ := w.get(parse("A s/same"))

	w.begin(sc)
	m := w.meta("A s/same")
	m.ResourceVersion = same.ResourceVersion
	if did := w.putMeta("A s/same", m); did != (change{}) {
		t.Errorf("the same object: %+v", did)
	}
	if did := w.put("A s/changed"); did != (change{updated: true}) {
		t.Errorf("a changed object: %+v", did)
	}
	w.uids["A s/again"] = "00000000-0000-4000-8000-0000000000ff"
	if did := w.put("A s/again"); did != (change{replaced: true, created: true}) {
		t.Errorf("another object of the name: %+v", did)
	}
	wantSame(t, "not named", texts(w.complete(sc)), []string{"A s/gone"})
	wantSame(t, "the rest goes with the kind", texts(w.close(sc)), []string{"A s/same", "A s/changed", "A s/again"})
	if all, _ := w.list(ListOptions{}); len(all) != 1 {
		t.Errorf("left: %v", all)
	}
	if w.put("B s/new") != (change{created: true}) || w.open(schema.GroupKind{Kind: "A"}).number != sc.number {
		t.Error("the scope's number is not used again")
	}
	checkStore(t, w.store)
}

// The index agrees with a map, however hashes collide.
func TestIndex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.Uint64Range(1, 200).Draw(t, "spread")
		x := index{hash: func(id nodeID) uint64 { return uint64(id) % spread }}
		model := map[nodeID]bool{}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			id := nodeID(rapid.IntRange(1, 150).Draw(t, "id"))
			if model[id] {
				x.remove(id)
			} else {
				x.insert(id)
			}
			model[id] = !model[id]
		}
		for id := nodeID(1); id <= 150; id++ {
			found := x.find(x.hash(id), func(other nodeID) bool { return other == id })
			if (found == id) != model[id] {
				t.Fatalf("%d: found %d, want %v", id, found, model[id])
			}
		}
	})
}

func TestFilter(t *testing.T) {
	f := ResourcesAPIFilter{
		ResourceInclusions: []ResourceFilter{{APIGroups: []string{"", "*.example.com"}}, {Kinds: []string{"Deployment"}}},
		ResourceExclusions: slices.Concat(Noise(), []ResourceFilter{{APIGroups: []string{"b.example.com"}, Kinds: []string{"Secret*"}}}),
	}
	for text, want := range map[string]bool{
		"Pod": true, "Deployment.apps": true, "ReplicaSet.apps": false, "Thing.a.example.com": true,
		"SecretThing.b.example.com": false, "Thing.b.example.com": true, "Event": false, "Event.events.k8s.io": false,
	} {
		if got := f.allows(schema.ParseGroupKind(text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, s := range []Settings{
		{Namespaces: []string{"a", ""}},
		{ResyncPeriod: -1},
		{Filter: ResourcesAPIFilter{ResourceExclusions: []ResourceFilter{{Kinds: []string{"["}}}}},
	} {
		if s.check() == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// targets leaves out second views of the same objects, and what cannot be watched.
func TestTargets(t *testing.T) {
	s := served{}
	for _, text := range []string{
		"Deployment.apps", "Deployment.extensions", "Ingress.extensions", "Namespace", "Project.project.openshift.io", "Secret",
		"Role.rbac.authorization.k8s.io", "Role.authorization.openshift.io", "CustomResourceDefinition.apiextensions.k8s.io",
	} {
		gk := schema.ParseGroupKind(text)
		cluster := slices.Contains([]string{"Namespace", "Project", "CustomResourceDefinition"}, gk.Kind)
		s.add(schema.GroupVersion{Group: gk.Group, Version: "v1"}, metav1.APIResource{Name: "x", Kind: gk.Kind, Namespaced: !cluster, Verbs: metav1.Verbs{"list", "watch"}})
	}
	s.add(schema.GroupVersion{Version: "v1"}, metav1.APIResource{Name: "bindings", Kind: "Binding", Namespaced: true, Verbs: metav1.Verbs{"create"}})
	s.add(schema.GroupVersion{Version: "v1"}, metav1.APIResource{Name: "x/status", Kind: "Status", Verbs: metav1.Verbs{"list", "watch"}})
	watched := func(settings Settings) (all []string) {
		for t, p := range s.targets(settings) {
			all = append(all, t.gk.String()+" "+t.namespace+map[bool]string{false: " unstored"}[p.stored])
		}
		return all
	}
	wantSame(t, "a whole cluster", watched(Settings{}), []string{
		"Deployment.apps ", "Ingress.extensions ", "Namespace ", "Secret ", "Role.rbac.authorization.k8s.io ", "CustomResourceDefinition.apiextensions.k8s.io ",
	})
	wantSame(t, "two namespaces and a filter", watched(Settings{
		Namespaces: []string{"a", "b"}, Filter: ResourcesAPIFilter{ResourceExclusions: []ResourceFilter{{Kinds: []string{"Secret", "Role"}}}},
	}), []string{
		"Deployment.apps a", "Deployment.apps b", "Ingress.extensions a", "Ingress.extensions b", "CustomResourceDefinition.apiextensions.k8s.io  unstored",
	})
	if r, ok := s.find(schema.ParseGroupKind("DaemonSet.extensions")); ok {
		t.Errorf("found %v", r)
	}
	if r, ok := s.find(schema.ParseGroupKind("NetworkPolicy.extensions")); ok {
		t.Errorf("found %v", r)
	}
	if r, _ := s.find(schema.ParseGroupKind("Binding")); r.Name != "bindings" || r.Version != "v1" {
		t.Errorf("found %v", r)
	}
}
