// SPDX-License-Identifier: Apache-2.0

// Package install carries, in the binary, what a cluster needs beside the
// resource definitions before tenants can be let in: roles for them, and the
// API server's priority and fairness for their requests.
package install

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed *.yaml
var files embed.FS

// Objects gives them all, in the order of the files.
func Objects() ([]*unstructured.Unstructured, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, fmt.Errorf("listing the embedded objects: %w", err)
	}
	var all []*unstructured.Unstructured
	for _, entry := range entries {
		text, err := files.ReadFile(entry.Name())
		if err != nil {
			return nil, fmt.Errorf("reading the embedded objects: %w", err)
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), len(text))
		for {
			object := &unstructured.Unstructured{}
			if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, fmt.Errorf("decoding %s: %w", entry.Name(), err)
			}
			if object.Object != nil {
				all = append(all, object)
			}
		}
	}
	return all, nil
}
