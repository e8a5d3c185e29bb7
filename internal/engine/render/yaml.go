// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	sigsyaml "sigs.k8s.io/yaml"
)

// maxKeys of one mapping. Readers compare each key with each other, which with a
// hundred thousand takes minutes.
const maxKeys = 10_000

// collector takes manifests in and keeps to the limits.
type collector struct {
	limits  Limits
	bytes   int64
	objects []Object
}

// add reads the documents of one file.
func (c *collector) add(file string, data []byte) error {
	documents := utilyaml.NewYAMLReader(bufio.NewReaderSize(bytes.NewReader(data), 64<<10))
	for index := 1; ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return &Error{Kind: ErrInvalid, File: file, Index: index, Problem: "is not YAML: " + clipped(err.Error())}
		}
		found, err := c.document(file, index, document)
		if err != nil {
			return err
		}
		if found {
			index++
		}
	}
}

// document reads one document; false where there is nothing in it.
func (c *collector) document(file string, index int, data []byte) (bool, error) {
	object, err := toJSON(data, c.limits)
	if err != nil {
		return false, at(err, file, index)
	}
	if string(object) == "null" {
		return false, nil
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(object); err != nil {
		return false, &Error{
			Kind: ErrInvalid, File: file, Index: index, Problem: "is not a Kubernetes object: " + clipped(err.Error()),
			Remedy: "give it apiVersion, kind and metadata.name, or leave the file out",
		}
	}
	return true, c.object(&u, file, index, int64(len(object)))
}

// object takes one object, or those of a list.
func (c *collector) object(u *unstructured.Unstructured, file string, index int, size int64) error {
	if u.IsList() {
		list, err := u.ToList()
		if err != nil {
			return &Error{Kind: ErrInvalid, File: file, Index: index, Problem: "is a list of what are not objects: " + clipped(err.Error())}
		}
		for i := range list.Items {
			// The list's bytes are those of its items, counted with the first.
			if err := c.object(&list.Items[i], file, index, size); err != nil {
				return err
			}
			size = 0
		}
		return nil
	}
	if problem := incomplete(u); problem != "" {
		return &Error{Kind: ErrInvalid, File: file, Index: index, Problem: "is an object " + problem, Remedy: "every object needs apiVersion, kind and metadata.name"}
	}
	if c.bytes += size; c.bytes > c.limits.OutputBytes {
		return fault(ErrTooLarge, "", "split it into several applications", "the manifests have more than %d bytes", c.limits.OutputBytes)
	}
	if len(c.objects) >= c.limits.Objects {
		return fault(ErrTooLarge, "", "split it into several applications", "there are more than %d objects", c.limits.Objects)
	}
	c.objects = append(c.objects, Object{Unstructured: u, File: file, Index: index})
	return nil
}

func incomplete(u *unstructured.Unstructured) string {
	_, isMap := u.Object["metadata"].(map[string]any)
	switch {
	case u.GetAPIVersion() == "":
		return "without an apiVersion"
	case u.GetKind() == "":
		return "without a kind"
	case !isMap:
		return "without metadata"
	case u.GetName() == "" && u.GetGenerateName() == "":
		return "without a name"
	}
	return ""
}

// toJSON turns one YAML document into JSON, as Kubernetes' own tools do, after
// the guard has let it pass.
func toJSON(data []byte, limits Limits) ([]byte, error) {
	if err := guard(data, limits); err != nil {
		return nil, err
	}
	out, err := sigsyaml.YAMLToJSON(data)
	if err != nil {
		return nil, &Error{Kind: ErrInvalid, Problem: "is not YAML: " + clipped(err.Error())}
	}
	return out, nil
}

// guard reads a document as a tree in which an alias is still one. An alias is a
// copy of what it names, and of what is aliased in there: a few lines can stand
// for more bytes than there are. So it is counted first what would come of them.
func guard(data []byte, limits Limits) error {
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return &Error{Kind: ErrInvalid, Problem: "is not YAML: " + clipped(err.Error())}
	}
	w := weigher{limits: limits, known: map[*yaml.Node]int64{}}
	_, err := w.weigh(&tree, 0)
	return err
}

type weigher struct {
	limits Limits
	// known has what was weighed; a node that is being weighed has -1.
	known map[*yaml.Node]int64
}

func (w *weigher) weigh(node *yaml.Node, depth int) (int64, error) {
	if depth > w.limits.Depth {
		return 0, &Error{Kind: ErrTooLarge, Problem: "is nested too deeply", Remedy: "make it flatter"}
	}
	if node.Kind == yaml.AliasNode {
		// Deeper than where it stands is what it names.
		return w.weigh(node.Alias, depth+1)
	}
	if weight, ok := w.known[node]; ok {
		if weight < 0 {
			return 0, &Error{Kind: ErrInvalid, Problem: "has an alias inside of what it names", Remedy: "write it out"}
		}
		return weight, nil
	}
	if node.Kind == yaml.MappingNode && len(node.Content) > 2*maxKeys {
		return 0, &Error{Kind: ErrTooLarge, Problem: "has a mapping with too many keys", Remedy: "split it"}
	}
	w.known[node] = -1
	total := int64(len(node.Value)) + 1
	for _, child := range node.Content {
		weight, err := w.weigh(child, depth+1)
		if err != nil {
			return 0, err
		}
		if total += weight; total > w.limits.OutputBytes {
			return 0, &Error{Kind: ErrTooLarge, Problem: "has aliases that stand for more than is allowed", Remedy: "write out what is needed"}
		}
	}
	w.known[node] = total
	return total, nil
}

// at adds the place to an error that has none.
func at(err error, file string, index int) error {
	var own *Error
	if errors.As(err, &own) && own.File == "" {
		own.File, own.Index = file, index
	}
	return err
}
