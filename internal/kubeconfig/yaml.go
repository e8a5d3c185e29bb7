// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"encoding/json"
	"errors"

	"go.yaml.in/yaml/v3"
)

var (
	errAlias = errors.New("alias in YAML")
	errWide  = errors.New("mapping with too many keys")
)

// maxKeys of one mapping. The decoder compares each key with each other to find
// those that are there twice, which with a hundred thousand takes minutes.
const maxKeys = 256

// toJSON turns YAML into JSON of about the same size. An alias makes a copy of
// what it names: half a megabyte of text and a hundred thousand aliases to it fit
// into one kubeconfig and fill the memory of any machine, and the libraries'
// guards count nodes, not bytes. So the tree is read first, in which an alias is
// still one, and a file that has any goes no further.
func toJSON(data []byte) ([]byte, error) {
	var tree yaml.Node
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return nil, err
	}
	if err := plain(&tree); err != nil {
		return nil, err
	}
	// Reports keys that are there twice.
	var value any
	if err := tree.Decode(&value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// plain refuses aliases and wide mappings, and keeps what looks like a date the text that it is.
// The parser has limited the depth.
func plain(node *yaml.Node) error {
	if node.Kind == yaml.AliasNode {
		return errAlias
	}
	if node.Kind == yaml.MappingNode && len(node.Content) > 2*maxKeys {
		return errWide
	}
	if node.Kind == yaml.ScalarNode && node.ShortTag() == "!!timestamp" {
		node.Tag = "!!str"
	}
	for _, child := range node.Content {
		if err := plain(child); err != nil {
			return err
		}
	}
	return nil
}
