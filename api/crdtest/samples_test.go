// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Each file of config/samples applies as it stands, and no field of it is
// misspelt.
func TestSamplesApply(t *testing.T) {
	for path, text := range samples(t) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			ns := namespace(t)
			resources := decode(t, text)
			if len(resources) == 0 {
				t.Fatal("empty")
			}
			for _, u := range resources {
				u.SetNamespace(ns)
				err := server.client.Create(t.Context(), u, client.FieldValidation(metav1.FieldValidationStrict))
				if err != nil {
					t.Errorf("%s %s: %v", u.GetKind(), u.GetName(), err)
				}
			}
		})
	}
}

// The examples of docs/api.md are the files of config/samples, each of them and
// word for word, so that what is read is what was tried.
func TestDocumentedExamplesAreTheSamples(t *testing.T) {
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile(filepath.Join(root, "docs", "api.md"))
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$").FindAllSubmatch(doc, -1) {
		shown[string(block[1])] = true
	}
	for path, text := range samples(t) {
		if !shown[string(text)] {
			t.Errorf("docs/api.md does not show %s as it is", filepath.Base(path))
		}
		delete(shown, string(text))
	}
	for block := range shown {
		first, _, _ := strings.Cut(block, "\n")
		t.Errorf("docs/api.md shows an example that is no file of config/samples: %s…", first)
	}
}

func samples(t *testing.T) map[string][]byte {
	t.Helper()
	root, err := repositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(root, "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(paths) == 0 {
		t.Fatal("no samples found")
	}
	texts := map[string][]byte{}
	for _, path := range paths {
		if texts[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	return texts
}

func decode(t *testing.T, text []byte) []*unstructured.Unstructured {
	t.Helper()
	var resources []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		u := &unstructured.Unstructured{}
		err := decoder.Decode(&u.Object)
		if errors.Is(err, io.EOF) {
			return resources
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(u.Object) > 0 {
			resources = append(resources, u)
		}
	}
}
