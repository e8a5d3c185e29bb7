// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// ErrUnsupported is an ignoreDifferences rule that this engine cannot follow.
var ErrUnsupported = errors.New("not supported")

// RuleError is an ignoreDifferences rule with a fault.
type RuleError struct {
	// Field is the path in the application's spec.
	Field   string
	Problem string
	err     error
}

// Error names the field, the problem and the remedy.
func (e *RuleError) Error() string { return e.Field + ": " + e.Problem }

// Unwrap gives ErrUnsupported where that is the problem.
func (e *RuleError) Unwrap() error { return e.err }

// rule is one entry of ignoreDifferences, read.
type rule struct {
	group, kind, namespace, name string
	pointers                     [][]string
	managers                     []string
}

func readRules(list []argo.ResourceIgnoreDifferences) ([]rule, error) {
	var rules []rule
	for i, entry := range list {
		field := fmt.Sprintf("ignoreDifferences[%d]", i)
		if len(entry.JQPathExpressions) > 0 {
			// They are programs, which a tenant could make run for ever.
			return nil, &RuleError{
				Field: field + ".jqPathExpressions", err: ErrUnsupported,
				Problem: "jq expressions are not supported: use jsonPointers or managedFieldsManagers",
			}
		}
		if entry.Kind == "" {
			return nil, &RuleError{Field: field + ".kind", Problem: "is missing: name a kind, or * for all"}
		}
		r := rule{entry.Group, entry.Kind, entry.Namespace, entry.Name, nil, entry.ManagedFieldsManagers}
		for j, text := range entry.JSONPointers {
			pointer, ok := readPointer(text)
			if !ok {
				return nil, &RuleError{
					Field:   fmt.Sprintf("%s.jsonPointers[%d]", field, j),
					Problem: fmt.Sprintf("%q is no JSON pointer: write one such as /spec/replicas", text),
				}
			}
			r.pointers = append(r.pointers, pointer)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func readPointer(text string) ([]string, bool) {
	if !strings.HasPrefix(text, "/") || text == "/" {
		return nil, false
	}
	tokens := strings.Split(text[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
	}
	return tokens, true
}

// covers says whether the rule is about an object. An empty group is the core
// group; * stands for any.
func (r *rule) covers(object *unstructured.Unstructured) bool {
	gk := object.GroupVersionKind().GroupKind()
	return (r.group == "*" || r.group == gk.Group) && (r.kind == "*" || r.kind == gk.Kind) &&
		(r.name == "" || r.name == object.GetName()) && (r.namespace == "" || r.namespace == object.GetNamespace())
}

// hideIgnored puts a placeholder in place of what the rules name, in both
// objects. They are copied first, if there is anything to hide.
func (c *Comparer) hideIgnored(
	w *walker, desired *unstructured.Unstructured, d, l map[string]any, managed management,
) (hiddenDesired, hiddenLive map[string]any) {
	copied := false
	for i := range c.rules {
		r := &c.rules[i]
		if !r.covers(desired) {
			continue
		}
		if !copied {
			d, l = copyMap(d), copyMap(l)
			copied = true
		}
		for _, pointer := range r.pointers {
			if w.secret && pointer[0] == "stringData" {
				pointer = append([]string{"data"}, pointer[1:]...)
			}
			hidePointer(d, pointer)
			hidePointer(l, pointer)
		}
		if len(r.managers) > 0 {
			tree := managed.owned(r.managers, desired.GetAPIVersion())
			hideTree(d, tree)
			hideTree(l, tree)
		}
	}
	return d, l
}

func copyMap(object map[string]any) map[string]any {
	out := make(map[string]any, len(object))
	for name, inner := range object {
		out[name] = copyValue(inner)
	}
	return out
}

// copyValue copies maps and lists, whatever is in them.
func copyValue(value any) any {
	switch v := value.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = copyValue(inner)
		}
		return out
	default:
		return value
	}
}

// hidePointer hides what a JSON pointer points to, if there is something.
func hidePointer(value any, pointer []string) {
	for i, token := range pointer {
		last := i == len(pointer)-1
		switch v := value.(type) {
		case map[string]any:
			next, found := v[token]
			if !found {
				return
			}
			if last {
				v[token] = hidden{}
			}
			value = next
		case []any:
			index, err := strconv.Atoi(token)
			if err != nil || index < 0 || index >= len(v) {
				return
			}
			next := v[index]
			if last {
				v[index] = hidden{}
			}
			value = next
		default:
			return
		}
	}
}

// hideTree hides the leaves of a set of fields.
func hideTree(value any, tree fieldTree) {
	switch v := value.(type) {
	case map[string]any:
		for entry, inner := range tree {
			name, isField := strings.CutPrefix(entry, "f:")
			next, found := v[name]
			switch {
			case !isField || !found:
			case inner.isLeaf():
				v[name] = hidden{}
			default:
				hideTree(next, inner)
			}
		}
	case []any:
		for _, e := range tree.elements() {
			for i, inner := range v {
				switch {
				case isHidden(inner) || !e.matches(inner):
				case e.tree.isLeaf():
					v[i] = hidden{}
				default:
					hideTree(inner, withoutKeys(e.tree, e.keys))
				}
			}
		}
	}
}

// withoutKeys leaves out the fields that are an element's key: with them hidden,
// the element could not be found any more.
func withoutKeys(tree fieldTree, keys []string) fieldTree {
	out := maps.Clone(tree)
	for _, name := range keys {
		delete(out, "f:"+name)
	}
	return out
}
