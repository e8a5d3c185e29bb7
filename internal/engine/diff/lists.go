// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"
	"strconv"
	"strings"
)

// isNative says whether Kubernetes itself serves the group.
func isNative(group string) bool {
	switch group {
	case "", "apps", "batch", "autoscaling", "policy", "extensions":
		return true
	default:
		return strings.HasSuffix(group, ".k8s.io")
	}
}

// mergeKeys are the fields that tell the elements of a list apart, as the API
// server knows them; nil for a list that is one value.
func (w *walker) mergeKeys(p *path, owned []element) []string {
	// What managedFields say is what the server did with this very list.
	for i := range owned {
		if owned[i].keys != nil {
			return owned[i].keys
		}
	}
	if !w.native {
		return nil
	}
	return w.nativeKeys(p)
}

// nativeKeys is the table for the kinds of Kubernetes. Lists that are not in it
// are values as a whole.
func (w *walker) nativeKeys(p *path) []string {
	switch p.name() {
	case "containers", "initContainers", "ephemeralContainers", "volumes", "env", "webhooks", "resourceClaims":
		return []string{"name"}
	case "imagePullSecrets":
		if w.kind != "ServiceAccount" {
			return []string{"name"}
		}
	case "secrets":
		if w.kind == "ServiceAccount" {
			return []string{"name"}
		}
	case "volumeMounts":
		return []string{"mountPath"}
	case "volumeDevices":
		return []string{"devicePath"}
	case "hostAliases":
		return []string{"ip"}
	case "topologySpreadConstraints":
		return []string{"topologyKey", "whenUnsatisfiable"}
	case "ownerReferences":
		return []string{"uid"}
	case "ports":
		switch outer := p.outer(); {
		case outer == "containers" || outer == "initContainers" || outer == "ephemeralContainers":
			return []string{"containerPort", "protocol"}
		case outer == "spec" && w.kind == "Service":
			return []string{"port", "protocol"}
		}
	}
	return nil
}

// isSet names lists in which only membership counts.
func isSet(p *path) bool { return p.name() == "finalizers" && p.outer() == "metadata" }

// keepsOrder names lists with keys whose order means something all the same.
func keepsOrder(p *path) bool { return p.name() == "initContainers" }

func (w *walker) walkList(p *path, desired, live []any, tree fieldTree) {
	owned := tree.elements()
	if isSet(p) || slices.ContainsFunc(owned, func(e element) bool { return e.keys == nil }) {
		w.walkSet(p, desired, live, owned)
		return
	}
	if keys := w.mergeKeys(p, owned); keys != nil {
		want, have := indexElements(desired, keys), indexElements(live, keys)
		if want != nil && have != nil {
			w.walkKeyed(p, want, have, live, owned)
			return
		}
	}
	if len(desired) != len(live) {
		w.report(p, desired, live)
		return
	}
	for i := range desired {
		w.walk(p.elem(strconv.Itoa(i)), desired[i], live[i], nil)
	}
}

// keyed is an element with its key.
type keyed struct {
	key   string
	value map[string]any
}

// indexElements gives the elements by their keys, in order. Nil if they cannot be
// told apart: then the list is compared as one value, which finds too many
// differences rather than too few.
func indexElements(list []any, keys []string) []keyed {
	elements := make([]keyed, 0, len(list))
	seen := make(map[string]bool, len(list))
	for _, element := range list {
		if isHidden(element) {
			continue
		}
		object, ok := element.(map[string]any)
		if !ok {
			return nil
		}
		e := keyed{value: object}
		e.key = elementKey(object, keys)
		if e.key == "" || seen[e.key] {
			return nil
		}
		seen[e.key] = true
		elements = append(elements, e)
	}
	return elements
}

// elementKey is an element's key, such as name="app", or empty if it has none.
// An absent protocol is TCP, by the server's defaults.
func elementKey(object map[string]any, keys []string) string {
	var text []byte
	for i, key := range keys {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(append(text, key...), '=')
		value := object[key]
		if value == nil && key == "protocol" {
			value = "TCP"
		}
		switch v := value.(type) {
		case string:
			text = strconv.AppendQuote(text, v)
		case bool:
			text = strconv.AppendBool(text, v)
		default:
			n, ok := number(value)
			if !ok {
				return ""
			}
			text = strconv.AppendFloat(text, n, 'f', -1, 64)
		}
	}
	return string(text)
}

func (w *walker) walkKeyed(p *path, want, have []keyed, live []any, owned []element) {
	places := make(map[string]int, len(have))
	for i, e := range have {
		places[e.key] = i
	}
	ours := make(map[string]fieldTree, len(owned))
	for i := range owned {
		ours[owned[i].identity] = owned[i].tree
	}
	kept := make(map[string]bool, len(want))
	last, inOrder := -1, true
	for _, e := range want {
		kept[e.key] = true
		place, found := places[e.key]
		if !found {
			w.report(p.elem(e.key), e.value, nil)
			continue
		}
		inOrder = inOrder && place > last
		last = place
		w.walk(p.elem(e.key), e.value, have[place].value, ours[e.key])
	}
	if !inOrder && keepsOrder(p) {
		w.report(p, order(want), order(have))
	}
	w.removedElements(p, live, kept, owned)
}

// order is what to show of a list whose order is wrong.
func order(list []keyed) []any {
	names := make([]any, len(list))
	for i, e := range list {
		names[i] = e.key
	}
	return names
}

func (w *walker) walkSet(p *path, desired, live []any, owned []element) {
	kept := make(map[string]bool, len(desired))
	for _, want := range desired {
		if isHidden(want) || want == nil {
			continue
		}
		kept[setIdentity(want)] = true
		if !slices.ContainsFunc(live, func(have any) bool { return setIdentity(have) == setIdentity(want) }) {
			w.report(p.elem(show(want)), want, nil)
		}
	}
	w.removedElements(p, live, kept, owned)
}

func setIdentity(value any) string {
	if n, ok := number(value); ok {
		value = n
	}
	return "v:" + show(value)
}
