// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func TestTree(t *testing.T) {
	const (
		deployment = "Deployment.apps shop/web"
		replicas   = "ReplicaSet.apps shop/web-1"
		pod        = "Pod shop/web-1-a"
	)
	for _, test := range []struct {
		name  string
		fill  func(w *world)
		roots []string
		// want in this order.
		want []string
	}{
		{"a chain, children first", func(w *world) {
			w.put(pod, replicas)
			w.put(replicas, deployment)
			w.put(deployment)
		}, []string{deployment}, []string{deployment, replicas, pod}},
		{"from the middle", func(w *world) {
			w.put(deployment)
			w.put(replicas, deployment)
			w.put(pod, replicas)
		}, []string{replicas}, []string{replicas, pod}},
		{"a root in the extensions group is the one in apps", func(w *world) {
			w.put(deployment)
			w.put(replicas, deployment)
		}, []string{"Deployment.extensions shop/web"}, []string{deployment, replicas}},
		{"an OpenShift project is a namespace", func(w *world) {
			w.put("Namespace shop")
		}, []string{"Project.project.openshift.io shop"}, []string{"Namespace shop"}},
		{"roots that are not there are passed over", func(w *world) {
			w.put(deployment)
		}, []string{"Deployment.apps shop/none", "Nothing.example.com x", deployment}, []string{deployment}},
		{"two owners, both first, visited once", func(w *world) {
			w.put("C s/c", "A s/a", "B s/b")
			w.put("A s/a")
			w.put("B s/b", "A s/a")
		}, []string{"A s/a", "B s/b"}, []string{"A s/a", "B s/b", "C s/c"}},
		{"a circle ends", func(w *world) {
			w.put("A s/a", "C s/c")
			w.put("B s/b", "A s/a")
			w.put("C s/c", "B s/b")
		}, []string{"A s/a"}, []string{"A s/a", "B s/b", "C s/c"}},
		{"its own owner", func(w *world) { w.put("A s/a", "A s/a") }, []string{"A s/a"}, []string{"A s/a"}},
		{"an owner in another namespace is none", func(w *world) {
			w.put("A s/a")
			w.put("B other/b", "A s/a")
			w.put("B s/b", "A s/a")
		}, []string{"A s/a"}, []string{"A s/a", "B s/b"}},
		{"a namespaced owner of a cluster object is none", func(w *world) {
			w.put("A s/a")
			w.put("B b", "A s/a")
		}, []string{"A s/a"}, []string{"A s/a"}},
		{"a cluster object owns everywhere", func(w *world) {
			w.put("Node n")
			w.put("Pod s/p", "Node n")
		}, []string{"Node n"}, []string{"Node n", "Pod s/p"}},
		{"children of what is not there", func(w *world) {
			w.put(replicas, deployment)
			w.put(pod, replicas)
			w.drop(replicas)
		}, []string{replicas, deployment}, nil},
		{"an owner that comes back", func(w *world) {
			w.put(replicas)
			w.put(pod, replicas)
			w.drop(replicas)
			w.put(replicas)
		}, []string{replicas}, []string{replicas, pod}},
		{"endpoints of a service", func(w *world) {
			w.put("Endpoints s/web")
			w.put("Endpoints other/web")
			w.put("Service s/web")
		}, []string{"Service s/web"}, []string{"Service s/web", "Endpoints s/web"}},
		{"slices of a service, with and without owner", func(w *world) {
			w.put("Service s/web")
			w.put("EndpointSlice.discovery.k8s.io s/web-1", "Service s/web")
			m := w.meta("EndpointSlice.discovery.k8s.io s/mine")
			m.Labels = map[string]string{sliceService: "web"}
			w.putMeta("EndpointSlice.discovery.k8s.io s/mine", m)
		}, []string{"Service s/web"}, []string{
			"Service s/web", "EndpointSlice.discovery.k8s.io s/web-1", "EndpointSlice.discovery.k8s.io s/mine",
		}},
		{"a slice that changes its service", func(w *world) {
			w.put("Service s/web")
			for _, service := range []string{"web", "other"} {
				m := w.meta("EndpointSlice.discovery.k8s.io s/mine")
				m.Labels = map[string]string{sliceService: service}
				w.putMeta("EndpointSlice.discovery.k8s.io s/mine", m)
			}
		}, []string{"Service s/web"}, []string{"Service s/web"}},
		{"the token of a service account", func(w *world) {
			w.put("ServiceAccount s/robot")
			m := w.meta("Secret s/robot-token")
			m.Annotations = map[string]string{tokenAccount: "robot", tokenUID: w.uidFor("ServiceAccount s/robot")}
			w.putMeta("Secret s/robot-token", m)
			m = w.meta("Secret s/asked-only")
			m.Annotations = map[string]string{tokenAccount: "robot"}
			w.putMeta("Secret s/asked-only", m)
		}, []string{"ServiceAccount s/robot"}, []string{"ServiceAccount s/robot", "Secret s/robot-token"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld()
			test.fill(w)
			if got := w.treeOf(test.roots...); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			checkStore(t, w.store)
		})
	}
}

// A chain as deep as anyone can make it does not need a stack of that depth.
func TestTreeIsDeep(t *testing.T) {
	const depth = 50_000
	w := newWorld()
	for i := range depth {
		w.put(fmt.Sprintf("A s/%d", i), fmt.Sprintf("A s/%d", i-1))
	}
	got := w.treeOf("A s/0")
	if len(got) != depth || got[depth-1] != fmt.Sprintf("A s/%d", depth-1) {
		t.Errorf("%d nodes", len(got))
	}
}

// Whatever is put and dropped, the tree is what a simple model says, owners come
// first unless there is a circle, and no node or edge is left over.
func TestTreeAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		names := []string{"A s/1", "A s/2", "A s/3", "B s/4", "B r/5", "C 6", "C 7"}
		model := map[string][]string{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := rapid.SampledFrom(names).Draw(t, "name")
			if rapid.IntRange(0, 3).Draw(t, "what") == 0 {
				_, there := model[name]
				if w.drop(name) != there {
					t.Fatalf("drop of %q", name)
				}
				delete(model, name)
				continue
			}
			owners := rapid.SliceOfN(rapid.SampledFrom(names), 0, 3).Draw(t, "owners")
			w.put(name, owners...)
			model[name] = owners
		}
		checkStore(t, w.store)
		root := rapid.SampledFrom(names).Draw(t, "root")
		got := w.treeOf(root)
		below := modelTree(model, root)
		var want []string
		for name := range below {
			want = append(want, name)
		}
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Fatalf("below %q: got %q, want %q of %v", root, got, want, model)
		}
		checkOrder(t, model, got)
		for name := range model {
			w.drop(name)
		}
		if w.count != 0 || w.byUID.used != 0 || w.byKey.used != 0 || len(w.nodes.free) != int(w.nodes.last) || len(w.edges.free) != int(w.edges.last) {
			t.Fatalf("left over: %d objects, %d and %d in the indexes", w.count, w.byUID.used, w.byKey.used)
		}
	})
}

func owns(model map[string][]string, owner, child string) bool {
	if owner == child || !slices.Contains(model[child], owner) {
		return false
	}
	a, b := parse(owner), parse(child)
	return a.Namespace == "" || a.Namespace == b.Namespace
}

func modelTree(model map[string][]string, root string) map[string]bool {
	found := map[string]bool{}
	if _, ok := model[root]; !ok {
		return found
	}
	todo := []string{root}
	for len(todo) > 0 {
		at := todo[0]
		todo = todo[1:]
		if found[at] {
			continue
		}
		found[at] = true
		for child := range model {
			if owns(model, at, child) {
				todo = append(todo, child)
			}
		}
	}
	return found
}

// checkOrder sees that an owner comes first, unless the child also owns it.
func checkOrder(t *rapid.T, model map[string][]string, order []string) {
	for i, child := range order {
		for _, owner := range order[i+1:] {
			if owns(model, owner, child) && !modelTree(model, child)[owner] {
				t.Fatalf("%q comes before its owner %q in %q", child, owner, order)
			}
		}
	}
}

// checkStore sees to the invariants that the store's documentation has.
func checkStore(t interface{ Fatalf(string, ...any) }, s *store) {
	objects, ghosts := 0, 0
	for id := nodeID(1); id <= s.nodes.last; id++ {
		n := s.nodes.at(id)
		switch {
		case slices.Contains(s.nodes.free, id):
			continue
		case n.scope == 0:
			ghosts++
			if n.children == 0 || n.owners != 0 {
				t.Fatalf("ghost %d: children %d, owners %d", id, n.children, n.owners)
			}
		default:
			objects++
		}
		before := edgeID(0)
		for e := n.children; e != 0; e = s.edges.at(e).nextChild {
			if s.edges.at(e).owner != id || s.edges.at(e).beforeChild != before {
				t.Fatalf("edge %d is not in order", e)
			}
			before = e
		}
	}
	if objects != s.count || s.byKey.used != objects || s.byUID.used != objects+ghosts {
		t.Fatalf("%d objects and %d ghosts; counted %d, indexed %d and %d", objects, ghosts, s.count, s.byKey.used, s.byUID.used)
	}
}

// An object that two kinds show has one UID; its children stay with the other when
// one goes.
func TestTwins(t *testing.T) {
	w := newWorld()
	w.put("A s/x")
	m := w.meta("B s/x")
	m.UID = w.meta("A s/x").UID
	w.putMeta("B s/x", m)
	w.put("C s/c", "A s/x")
	w.drop("A s/x")
	wantSame(t, "the other one has the child", w.treeOf("B s/x"), []string{"B s/x", "C s/c"})
	checkStore(t, w.store)
}

func TestOddTexts(t *testing.T) {
	w := newWorld()
	for _, text := range []string{"", "x", "-0000000-0000-4000-8000-00000000000a", "00000000-0000-4000-8000-00000000000A", "00000000-0000-4000-8000-00000000000a"} {
		m := w.meta("A s/a")
		m.UID = types.UID(text)
		m.ResourceVersion = "v" + text
		w.putMeta("A s/a", m)
		got, ok := w.get(parse("A s/a"))
		if !ok || got.UID != text || got.ResourceVersion != "v"+text {
			t.Errorf("%q came back as %q, %q", text, got.UID, got.ResourceVersion)
		}
		checkStore(t, w.store)
	}
}
