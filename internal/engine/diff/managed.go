// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fieldTree is a set of fields in the notation of managedFields: entries "f:name"
// for a field, "k:{…}" for the element of a list with that key, "v:…" for the
// member of a set, and "." for the thing itself. A tree without entries is a leaf.
type fieldTree map[string]fieldTree

func (t fieldTree) isLeaf() bool { return len(t) == 0 }

// element is an entry that is about elements of a list.
type element struct {
	// identity is as elementKey and setIdentity give it; text is for people.
	identity, text string
	// keys are the names in a "k:" entry.
	keys []string
	tree fieldTree
}

// elements are the entries of a list, read, in order.
func (t fieldTree) elements() []element {
	if len(t) == 0 {
		return nil
	}
	list := make([]element, 0, len(t))
	for _, entry := range slices.Sorted(maps.Keys(t)) {
		e := element{tree: t[entry]}
		if text, found := strings.CutPrefix(entry, "k:"); found {
			var key map[string]any
			if json.Unmarshal([]byte(text), &key) != nil || len(key) == 0 {
				continue
			}
			e.keys = slices.Sorted(maps.Keys(key))
			e.identity = elementKey(key, e.keys)
			e.text = e.identity
		} else if text, found := strings.CutPrefix(entry, "v:"); found {
			var value any
			if json.Unmarshal([]byte(text), &value) != nil {
				continue
			}
			e.identity, e.text = setIdentity(value), show(value)
		}
		if e.identity != "" {
			list = append(list, e)
		}
	}
	return list
}

// matches says whether the entry is about this value in a list.
func (e *element) matches(value any) bool {
	if e.keys == nil {
		return setIdentity(value) == e.identity
	}
	object, ok := value.(map[string]any)
	return ok && elementKey(object, e.keys) == e.identity
}

// add puts a set of fields in, as it is decoded from JSON.
func (t fieldTree) add(fields map[string]any) {
	for entry, value := range fields {
		inner, ok := value.(map[string]any)
		if !ok {
			continue
		}
		if t[entry] == nil {
			t[entry] = make(fieldTree, len(inner))
		}
		t[entry].add(inner)
	}
}

// management is who owns which fields of an object: metadata.managedFields, as
// it is. Decoding it into its Go type would cost more than the whole comparison.
type management []any

func managedFields(live *unstructured.Unstructured) management {
	metadata, _ := live.Object["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	return list
}

// entry is one of managedFields.
type entry struct{ manager, operation, apiVersion, subresource string }

// applied is what a manager owns through server-side apply. Entries of another
// version of the API are left out: their names need not be those of the object.
func (m management) applied(manager, apiVersion string) fieldTree {
	if manager == "" {
		return nil
	}
	return m.collect(func(e entry) bool { return e == entry{manager, "Apply", apiVersion, ""} })
}

// owned is what any of the managers owns, by whatever means.
func (m management) owned(managers []string, apiVersion string) fieldTree {
	return m.collect(func(e entry) bool { return slices.Contains(managers, e.manager) && e.apiVersion == apiVersion })
}

// collect reads the fields of entries. An entry that cannot be read is left out:
// the server writes them, and what it does not say is not ours.
func (m management) collect(wanted func(entry) bool) fieldTree {
	all := fieldTree{}
	for _, item := range m {
		object, _ := item.(map[string]any)
		fields, ok := object["fieldsV1"].(map[string]any)
		if !ok {
			continue
		}
		text := func(name string) string {
			value, _ := object[name].(string)
			return value
		}
		if wanted(entry{text("manager"), text("operation"), text("apiVersion"), text("subresource")}) {
			all.add(fields)
		}
	}
	// Never compared, so never removed.
	delete(all, "f:status")
	if metadata := all["f:metadata"]; metadata != nil {
		keep := []string{"f:labels", "f:annotations", "f:finalizers", "f:ownerReferences"}
		maps.DeleteFunc(metadata, func(entry string, _ fieldTree) bool { return !slices.Contains(keep, entry) })
		delete(metadata["f:annotations"], "f:"+lastApplied)
	}
	return all
}
