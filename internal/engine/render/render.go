// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// Type of a source, as Argo CD calls it in status.sourceType.
type Type string

// Types of sources.
const (
	Directory Type = "Directory"
	Kustomize Type = "Kustomize"
	Helm      Type = "Helm"
)

// Spec is what an application says about its source, and what templates may know
// about where it goes.
type Spec struct {
	// Path of the folder in the repository.
	Path      string                `json:"path"`
	Directory *argo.SourceDirectory `json:"directory,omitempty"`
	Kustomize *argo.SourceKustomize `json:"kustomize,omitempty"`
	Helm      *argo.SourceHelm      `json:"helm,omitempty"`
	// Name of the application: the release's name, unless Helm has another.
	Name string `json:"name"`
	// Namespace that the application is deployed to.
	Namespace string `json:"namespace"`
	// KubeVersion and APIVersions (group/version and group/version/Kind) of the
	// cluster, for charts that ask. Empty: those of this program's libraries.
	KubeVersion string   `json:"kubeVersion,omitempty"`
	APIVersions []string `json:"apiVersions,omitempty"`
}

// Limits of what may be rendered. Zero is the default that is named.
type Limits struct {
	// InputBytes and InputFiles that are read: 32 MiB, 10,000.
	InputBytes int64 `json:"inputBytes"`
	InputFiles int   `json:"inputFiles"`
	// OutputBytes of all manifests: 32 MiB.
	OutputBytes int64 `json:"outputBytes"`
	// Objects: 5,000.
	Objects int `json:"objects"`
	// Depth of YAML: 100.
	Depth int `json:"depth"`
}

func (l Limits) withDefaults() Limits {
	l.InputBytes = orElse(l.InputBytes, 32<<20)
	l.InputFiles = orElse(l.InputFiles, 10_000)
	l.OutputBytes = orElse(l.OutputBytes, 32<<20)
	l.Objects = orElse(l.Objects, 5_000)
	l.Depth = orElse(l.Depth, 100)
	return l
}

func orElse[T int | int64](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

// Request is everything that rendering depends on. Gather makes them.
type Request struct {
	Type   Type   `json:"type"`
	Spec   Spec   `json:"spec"`
	Limits Limits `json:"limits"`
	// Files by their path from the repository's root; nil until Load.
	Files map[string][]byte `json:"files"`
	// Key is the same for two requests with the same result.
	Key string `json:"-"`

	read func(context.Context) (map[string][]byte, error)
}

// Load reads the files, if they were not yet. Renderers do that; a result that is
// found by its Key needs none of them.
func (r *Request) Load(ctx context.Context) error {
	if r.Files != nil || r.read == nil {
		return nil
	}
	files, err := r.read(ctx)
	if err != nil {
		return err
	}
	r.Files = files
	return nil
}

// Object is one manifest and where it came from.
type Object struct {
	*unstructured.Unstructured
	// File is the path from the repository's root; for Kustomize that of the
	// kustomization. Index counts from 1.
	File  string
	Index int
}

// Source names the place for messages.
func (o Object) Source() string { return fmt.Sprintf("%s #%d", o.File, o.Index) }

// Duplicate is one object that is there more than once.
type Duplicate struct {
	// Object is group, kind, namespace and name.
	Object string
	// Sources are where, in order.
	Sources []string
}

// Result of rendering. It may be shared: it is to be read only.
type Result struct {
	Type       Type
	Objects    []Object
	Duplicates []Duplicate
}

// Renderer renders requests.
type Renderer interface {
	Render(ctx context.Context, request *Request) (*Result, error)
}

// InProcess is the Renderer without a child, for files that are trusted. Nothing
// limits the time and the memory that a template takes.
type InProcess struct {
	// Kustomize keeps the schema of what it builds in a global variable.
	kustomize sync.Mutex
}

// Render implements Renderer.
func (p *InProcess) Render(ctx context.Context, request *Request) (*Result, error) {
	if err := request.Load(ctx); err != nil {
		return nil, err
	}
	request.Limits = request.Limits.withDefaults()
	var out *collector
	var err error
	switch request.Type {
	case Directory:
		out, err = renderDirectory(request)
	case Kustomize:
		p.kustomize.Lock()
		defer p.kustomize.Unlock()
		out, err = renderKustomize(request)
	case Helm:
		out, err = renderHelm(ctx, request)
	default:
		return nil, fault(ErrUnsupported, "", "", "a source of type %q is not known", request.Type)
	}
	if err != nil {
		return nil, err
	}
	return &Result{Type: request.Type, Objects: out.objects, Duplicates: duplicates(out.objects, request.Spec.Namespace)}, nil
}

// duplicates finds objects that are there twice. One without a namespace goes to
// the application's, if it is of a kind that has one; what is not known here
// counts as the same, since that only makes a message.
func duplicates(objects []Object, namespace string) []Duplicate {
	at := map[string]int{}
	var found []Duplicate
	first := map[string]string{}
	for _, o := range objects {
		name := o.GetName()
		if name == "" {
			continue
		}
		in := o.GetNamespace()
		if in == "" {
			in = namespace
		}
		key := fmt.Sprintf("%s %s/%s", o.GroupVersionKind().GroupKind(), in, name)
		before, twice := first[key]
		if !twice {
			first[key] = o.Source()
			continue
		}
		i, known := at[key]
		if !known {
			i = len(found)
			at[key] = i
			found = append(found, Duplicate{Object: key, Sources: []string{before}})
		}
		found[i].Sources = append(found[i].Sources, o.Source())
	}
	return found
}
