// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"maps"
	"slices"
	"strings"
)

// walker goes through two objects side by side.
type walker struct {
	group, kind string
	// native: a kind of Kubernetes itself, whose lists and quantities are known.
	native bool
	secret bool
	found  []Difference
}

// hidden stands in place of a value that is not compared.
type hidden struct{}

func isHidden(value any) bool {
	_, ok := value.(hidden)
	return ok
}

func (w *walker) report(p *path, desired, live any) {
	if w.secret {
		switch p.root() {
		case "data", "stringData":
			desired, live = mask(desired), mask(live)
		}
	}
	w.found = append(w.found, Difference{Path: p.String(), Desired: desired, Live: live})
}

// walkMap compares what desired sets, then looks for what we own and desired
// no longer sets. Fields are taken in the order of their names.
func (w *walker) walkMap(p *path, desired, live map[string]any, owned fieldTree) {
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		want := desired[name]
		if want == nil {
			continue
		}
		at, have := p.at(name), live[name]
		if have == nil {
			w.absent(at, want)
			continue
		}
		w.walk(at, want, have, owned["f:"+name])
	}
	for _, key := range slices.Sorted(maps.Keys(owned)) {
		name, isField := strings.CutPrefix(key, "f:")
		if isField && desired[name] == nil && live[name] != nil {
			w.removed(p.at(name), live[name], owned[key])
		}
	}
}

// absent is a value that desired sets and live does not have.
func (w *walker) absent(p *path, want any) {
	if !isHidden(want) && (!isEmpty(want) || presenceMatters(p.field)) {
		w.report(p, want, nil)
	}
}

func (w *walker) walk(p *path, desired, live any, owned fieldTree) {
	if isHidden(desired) || isHidden(live) {
		return
	}
	switch want := desired.(type) {
	case map[string]any:
		if have, ok := live.(map[string]any); ok {
			w.walkMap(p, want, have, owned)
			return
		}
	case []any:
		if have, ok := live.([]any); ok {
			w.walkList(p, want, have, owned)
			return
		}
	default:
		if w.sameScalar(p, desired, live) {
			return
		}
	}
	w.report(p, desired, live)
}

// removed is a value that live has, of which we own something, and which desired
// does not set. Only what we own of it counts.
func (w *walker) removed(p *path, live any, owned fieldTree) {
	if isHidden(live) {
		return
	}
	if owned.isLeaf() {
		if !isEmpty(live) || presenceMatters(p.field) {
			w.report(p, nil, live)
		}
		return
	}
	switch have := live.(type) {
	case map[string]any:
		w.walkMap(p, nil, have, owned)
	case []any:
		w.removedElements(p, have, nil, owned.elements())
	}
}

// removedElements reports the elements of a list that we own and that are not
// among those in kept, by their identity.
func (w *walker) removedElements(p *path, live []any, kept map[string]bool, owned []element) {
	for i := range owned {
		e := &owned[i]
		if kept[e.identity] {
			continue
		}
		for _, value := range live {
			if isHidden(value) || !e.matches(value) {
				continue
			}
			// Who owns the element itself, and not only fields in it, made it.
			if _, itself := e.tree["."]; itself || e.tree.isLeaf() {
				w.report(p.elem(e.text), nil, value)
			} else {
				w.removed(p.elem(e.text), value, e.tree)
			}
		}
	}
}
