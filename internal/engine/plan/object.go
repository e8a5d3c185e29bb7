// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Key is what makes an object that object for a sync. The version is no part of
// it: the same object can be read in several.
type Key struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String gives kind.group namespace/name, without what is empty.
func (k Key) String() string {
	kind := k.Kind
	if k.Group != "" {
		kind += "." + k.Group
	}
	if k.Namespace != "" {
		return kind + " " + k.Namespace + "/" + k.Name
	}
	return kind + " " + k.Name
}

func compareKeys(a, b Key) int {
	return cmp.Or(
		cmp.Compare(a.Group, b.Group),
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace),
		cmp.Compare(a.Name, b.Name),
	)
}

// Object is a Kubernetes object and where it comes from. It prints as its key,
// however it is printed: what it wraps may be a Secret.
type Object struct {
	key     Key
	content *unstructured.Unstructured
	source  string
}

// NewObject wraps an object, which must not be changed afterwards. The source
// says to people where it was found, such as a file; it may be empty.
//
// The caller fills in the namespace of namespaced objects first: only who knows
// the cluster knows which kinds have one, and without it an object in Git and the
// same object in the cluster have different keys.
func NewObject(content *unstructured.Unstructured, source string) *Object {
	gvk := content.GroupVersionKind()
	return &Object{
		key: Key{
			Group:     gvk.Group,
			Kind:      gvk.Kind,
			Namespace: content.GetNamespace(),
			Name:      content.GetName(),
		},
		content: content,
		source:  source,
	}
}

// Key names the object.
func (o *Object) Key() Key { return o.key }

// Unstructured is the object itself. It is not a copy.
func (o *Object) Unstructured() *unstructured.Unstructured { return o.content }

// Source is where the object was found.
func (o *Object) Source() string { return o.source }

// Format prints the key, for every verb.
func (o *Object) Format(f fmt.State, _ rune) {
	if o == nil {
		fmt.Fprint(f, "no object")
		return
	}
	fmt.Fprint(f, o.key.String())
}

// MarshalJSON gives the key.
func (o *Object) MarshalJSON() ([]byte, error) { return json.Marshal(o.key) }

// origin is what to call the object's source in a message.
func (o *Object) origin() string {
	if o.source == "" {
		return "an unnamed source"
	}
	return o.source
}
