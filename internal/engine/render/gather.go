// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"

	"github.com/weir-gitops/weir/internal/engine/source"
)

// version is part of each key: to be raised when the same files come to give
// other manifests.
const version = "1"

// Gather decides what kind of source a folder is and which files rendering needs.
// It reads only those that refer to others.
// Errors are an *Error of this package or of package source.
func Gather(ctx context.Context, tree *source.Tree, spec Spec, limits Limits) (*Request, error) {
	cleaned, err := source.CleanPath(spec.Path)
	if err != nil {
		return nil, err
	}
	spec.Path = cleaned
	if _, err := tree.Hash(cleaned); err != nil {
		return nil, err
	}
	g := &gatherer{tree: tree, limits: limits.withDefaults(), wanted: map[string]source.Entry{}}
	kind, err := detect(tree, spec)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Kustomize:
		err = g.kustomization(ctx, spec)
	case Helm:
		err = g.chart(spec)
	default:
		err = g.directory(spec)
	}
	if err != nil {
		return nil, err
	}
	return g.request(kind, spec)
}

// detect is Argo CD's rule: what the application says, else what is in the folder.
func detect(tree *source.Tree, spec Spec) (Type, error) {
	var said []Type
	if spec.Helm != nil {
		said = append(said, Helm)
	}
	if spec.Kustomize != nil {
		said = append(said, Kustomize)
	}
	if spec.Directory != nil {
		said = append(said, Directory)
	}
	if len(said) > 1 {
		return "", fault(ErrInvalid, "", "leave all but one out", "the source is said to be %s and %s at once", said[0], said[1])
	}
	_, chart := tree.Lookup(path.Join(spec.Path, "Chart.yaml"))
	_, kustomization := kustomizationIn(tree, spec.Path)
	switch {
	case len(said) == 1:
		return said[0], nil
	case chart:
		return Helm, nil
	case kustomization:
		return Kustomize, nil
	}
	return Directory, nil
}

// gatherer collects entries, and reads them in one go at the end.
type gatherer struct {
	tree   *source.Tree
	limits Limits
	wanted map[string]source.Entry
}

// want takes one file. Links are never followed; one that would have to be is
// refused, where it is in the way of nothing it is passed over.
func (g *gatherer) want(entry source.Entry) error {
	if entry.Kind != source.File {
		return fault(ErrUnsupported, entry.Path, "put the file itself there", "is a %s, which is not followed", entry.Kind)
	}
	g.wanted[entry.Path] = entry
	if len(g.wanted) > g.limits.InputFiles {
		return fault(ErrTooLarge, "", "point the application at a smaller folder", "more than %d files would be read", g.limits.InputFiles)
	}
	return nil
}

// folder takes all files below a folder and leaves links and submodules out.
func (g *gatherer) folder(name string) error {
	for entry := range g.tree.Walk(name) {
		if entry.Kind != source.File {
			continue
		}
		if err := g.want(entry); err != nil {
			return err
		}
	}
	return nil
}

// directory takes the manifests of a folder.
func (g *gatherer) directory(spec Spec) error {
	options := spec.Directory
	include, exclude := glob(nil), glob(nil)
	recurse := false
	if options != nil {
		recurse = options.Recurse
		for field, parsed := range map[string]struct {
			text string
			into *glob
		}{"include": {options.Include, &include}, "exclude": {options.Exclude, &exclude}} {
			if parsed.text == "" {
				continue
			}
			var ok bool
			if *parsed.into, ok = parseGlob(parsed.text); !ok {
				return fault(ErrInvalid, "", "use *, ?, [a-z] and {a,b}", "directory.%s %q is not a pattern", field, clipped(parsed.text))
			}
		}
	}
	manifest := regexp.MustCompile(`\.(ya?ml|json|jsonnet)$`)
	for entry := range g.tree.Walk(spec.Path) {
		name := relative(spec.Path, entry.Path)
		switch {
		case entry.Kind == source.Folder, entry.Kind == source.Submodule, !manifest.MatchString(name),
			!recurse && path.Dir(name) != ".", include != nil && !include.matches(name), exclude.matches(name):
			continue
		case path.Ext(name) == ".jsonnet":
			return fault(ErrUnsupported, entry.Path, "leave it out with directory.exclude", "is Jsonnet, which is not supported")
		}
		if err := g.want(entry); err != nil {
			return err
		}
	}
	return nil
}

func relative(folder, name string) string {
	if folder == "." {
		return name
	}
	return name[len(folder)+1:]
}

// request names the files and computes the key.
func (g *gatherer) request(kind Type, spec Spec) (*Request, error) {
	names := slices.Sorted(maps.Keys(g.wanted))
	entries := make([]source.Entry, len(names))
	for i, name := range names {
		entries[i] = g.wanted[name]
	}
	key, err := keyOf(kind, spec, g.limits, entries)
	if err != nil {
		return nil, err
	}
	return &Request{Type: kind, Spec: spec, Limits: g.limits, Key: key, read: func(ctx context.Context) (map[string][]byte, error) {
		return readFiles(ctx, g.tree, entries, g.limits)
	}}, nil
}

func readFiles(ctx context.Context, tree *source.Tree, entries []source.Entry, limits Limits) (map[string][]byte, error) {
	contents, err := tree.Read(ctx, entries...)
	if err != nil {
		return nil, err
	}
	files := make(map[string][]byte, len(entries))
	var total int64
	for i, entry := range entries {
		files[entry.Path] = contents[i]
		if total += int64(len(contents[i])); total > limits.InputBytes {
			return nil, fault(ErrTooLarge, "", "point the application at a smaller folder", "more than %d bytes would be read", limits.InputBytes)
		}
	}
	return files, nil
}

// keyOf hashes what the result depends on: ids stand for contents.
func keyOf(kind Type, spec Spec, limits Limits, entries []source.Entry) (string, error) {
	h := sha256.New()
	if err := json.NewEncoder(h).Encode([]any{version, kind, spec, limits}); err != nil {
		return "", err
	}
	for _, entry := range entries {
		fmt.Fprintf(h, "%s %q\n", entry.ID, entry.Path)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
