// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// drawValue makes what a desired object of a custom kind can hold, with at least
// one leaf in every map, so that each has something to say.
func drawValue(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 5).Draw(t, "kind of value")
	if depth == 0 {
		kind %= 4
	}
	switch kind {
	case 0:
		return rapid.SampledFrom([]string{"", "a", "1", "1000m", "x.y"}).Draw(t, "text")
	case 1:
		return int64(rapid.IntRange(-3, 3).Draw(t, "whole"))
	case 2:
		return rapid.SampledFrom([]float64{0.5, 1, -2.25}).Draw(t, "number")
	case 3:
		return rapid.Bool().Draw(t, "flag")
	case 4:
		list := []any{}
		for range rapid.IntRange(1, 3).Draw(t, "length") {
			list = append(list, drawValue(t, depth-1))
		}
		return list
	default:
		return drawMap(t, depth-1)
	}
}

func drawMap(t *rapid.T, depth int) map[string]any {
	out := map[string]any{}
	for range rapid.IntRange(1, 3).Draw(t, "size") {
		out[rapid.SampledFrom([]string{"a", "b.c", "limits", "spec"}).Draw(t, "name")] = drawValue(t, depth)
	}
	return out
}

func drawObject(t *rapid.T) *unstructured.Unstructured {
	native := rapid.Bool().Draw(t, "native")
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Widget", "spec": drawMap(t, 3)}}
	if native {
		var containers []any
		for i := range rapid.IntRange(1, 3).Draw(t, "containers") {
			container := drawMap(t, 1)
			container["name"] = fmt.Sprint("c", i)
			container["env"] = []any{map[string]any{"name": "e", "value": "v"}, map[string]any{"name": "f", "value": "w"}}
			containers = append(containers, container)
		}
		u.Object = map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{
			"template": map[string]any{"spec": map[string]any{"containers": containers}},
		}}
	}
	u.SetName("x")
	u.SetLabels(map[string]string{"l": "m", "n": "o"})
	return u
}

// enrich adds to a live value what servers and controllers add: fields
// everywhere, and elements where lists have keys.
func enrich(t *rapid.T, name string, value any, native bool) any {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			v[name] = enrich(t, name, v[name], native)
		}
		if rapid.Bool().Draw(t, "add a field") {
			v["defaulted"] = "by the server"
		}
		return v
	case []any:
		for i, inner := range v {
			v[i] = enrich(t, "", inner, native)
		}
		if native && (name == "containers" || name == "env") && rapid.Bool().Draw(t, "add an element") {
			v = append([]any{map[string]any{"name": "injected"}}, v...)
		}
		return v
	case int64:
		if rapid.Bool().Draw(t, "decode otherwise") {
			return float64(v)
		}
	}
	return value
}

func enriched(t *rapid.T, desired *unstructured.Unstructured) *unstructured.Unstructured {
	live := desired.DeepCopy()
	live.Object["spec"] = enrich(t, "spec", live.Object["spec"], desired.GetKind() == "Deployment")
	live.SetUID("u")
	live.SetResourceVersion("7")
	live.SetLabels(map[string]string{"n": "o", "l": "m", "p": "q"})
	live.Object["status"] = map[string]any{"phase": "Running"}
	return live
}

func TestEqualWithServerSideAdditions(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		desired := drawObject(rt)
		live := enriched(rt, desired)
		if r := compare(t, comparer(t), desired, live); !r.Equal {
			rt.Fatalf("%v", r)
		}
	})
}

// leaf is a place in an object, and how to put something else there.
type leaf struct {
	path *path
	set  func(any)
	old  any
	key  bool
}

// leaves lists the places, under the names that a difference should have.
func leaves(value any, p *path, keyed bool) []leaf {
	var list []leaf
	visit := func(at *path, inner any, set func(any), key bool) {
		switch inner.(type) {
		case map[string]any, []any:
			list = append(list, leaves(inner, at, keyed)...)
		default:
			list = append(list, leaf{at, set, inner, key})
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			visit(p.at(name), inner, func(x any) { v[name] = x }, keyed && name == "name")
		}
	case []any:
		for i, inner := range v {
			at := p.elem(fmt.Sprint(i))
			if object, ok := inner.(map[string]any); ok && keyed && (p.name() == "containers" || p.name() == "env") {
				at = p.elem(fmt.Sprintf("name=%q", object["name"]))
			}
			visit(at, inner, func(x any) { v[i] = x }, false)
		}
	}
	return list
}

func TestEveryLeafCounts(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		desired := drawObject(rt)
		live := desired.DeepCopy()
		var path *path
		places := leaves(live.Object["spec"], path.at("spec"), desired.GetKind() == "Deployment")
		// The fields of a map come in no order; a property needs one.
		byName := map[string]leaf{}
		for _, place := range places {
			if !place.key {
				byName[place.path.String()] = place
			}
		}
		names := slices.Sorted(maps.Keys(byName))
		chosen := byName[rapid.SampledFrom(names).Draw(rt, "leaf")]
		chosen.set("changed")
		r := compare(t, comparer(t), desired, live)
		if len(r.Differences) != 1 || r.Differences[0].Path != chosen.path.String() || r.Differences[0].Desired != chosen.old {
			rt.Fatalf("changed %s, found %v", chosen.path, r)
		}
	})
}
