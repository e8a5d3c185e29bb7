// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/weir-gitops/weir/internal/engine/source"
)

const (
	// maxLoads is how often folders may be loaded. One that two others refer to is
	// loaded twice, and what it refers to again for each: thirty small files can
	// make a billion.
	maxLoads = 2_000
	// maxLevels of kustomizations below each other.
	maxLevels = 50
)

func kustomizationIn(tree *source.Tree, folder string) (source.Entry, bool) {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if entry, ok := tree.Lookup(path.Join(folder, name)); ok {
			return entry, true
		}
	}
	return source.Entry{}, false
}

// kustomization takes the folders that a kustomization is made of. Whatever it
// refers to has to be in the repository: Kustomize itself would take an address
// for a file to download or a repository to clone, in nearly every field.
func (g *gatherer) kustomization(ctx context.Context, spec Spec) error {
	w := &rootWalk{gatherer: g, loads: map[string]int{}}
	if spec.Kustomize != nil {
		w.extra = spec.Kustomize.Components
	}
	_, err := w.visit(ctx, spec.Path, 1)
	return err
}

// rootWalk goes through kustomizations that refer to each other.
type rootWalk struct {
	*gatherer
	// loads says how many folders are loaded for a folder, itself included; 0 while
	// that is being counted.
	loads map[string]int
	// extra components of the first folder.
	extra []string
}

func (w *rootWalk) visit(ctx context.Context, folder string, level int) (int, error) {
	if loads, seen := w.loads[folder]; seen {
		if loads == 0 {
			return 0, fault(ErrInvalid, folder, "take one of the references out", "refers to itself, in a circle of kustomizations")
		}
		return loads, nil
	}
	if level > maxLevels {
		return 0, fault(ErrTooLarge, folder, "use fewer layers", "is the %dth layer of kustomizations", level)
	}
	w.loads[folder] = 0
	entry, ok := kustomizationIn(w.tree, folder)
	if !ok {
		return 0, fault(ErrInvalid, folder, "add a kustomization.yaml", "has no kustomization in it")
	}
	k, err := w.parse(ctx, entry)
	if err != nil {
		return 0, err
	}
	if err := w.folder(folder); err != nil {
		return 0, err
	}
	if level == 1 {
		k.Components = append(k.Components, w.extra...)
	}
	total := 1
	folders, err := w.references(folder, entry.Path, k)
	if err != nil {
		return 0, err
	}
	for _, below := range folders {
		loads, err := w.visit(ctx, below, level+1)
		if err != nil {
			return 0, err
		}
		if total += loads; total > maxLoads {
			return 0, fault(ErrTooLarge, folder, "refer to each folder once", "makes more than %d folders be loaded", maxLoads)
		}
	}
	w.loads[folder] = total
	return total, nil
}

func (w *rootWalk) parse(ctx context.Context, entry source.Entry) (*types.Kustomization, error) {
	contents, err := w.tree.Read(ctx, entry)
	if err != nil {
		return nil, err
	}
	data, err := toJSON(contents[0], w.limits)
	if err != nil {
		return nil, at(err, entry.Path, 1)
	}
	k := &types.Kustomization{}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, foreign(entry.Path, "is not a kustomization", err)
	}
	return k, nil
}

// references gives the folders that a kustomization refers to, once it is clear
// that everything it refers to is in the repository.
func (w *rootWalk) references(folder, file string, k *types.Kustomization) ([]string, error) {
	if len(k.HelmCharts) > 0 || len(k.HelmChartInflationGenerator) > 0 {
		return nil, fault(ErrUnsupported, file, "point the application at the chart itself", "inflates Helm charts, which is switched off")
	}
	if len(k.Generators) > 0 || len(k.Transformers) > 0 || len(k.Validators) > 0 {
		// Their configuration can name files in ways of its own.
		return nil, fault(ErrUnsupported, file, "use the fields of the kustomization: patches, replacements, labels and so on", "has generators, transformers or validators, which are plugins and switched off")
	}
	var folders []string
	bases, _ := older(k)
	for _, name := range slices.Concat(k.Resources, bases, k.Components) {
		below, err := w.inside(folder, file, name)
		if err != nil {
			return nil, err
		}
		if entry, _ := w.tree.Lookup(below); entry.Kind == source.Folder {
			folders = append(folders, below)
		}
	}
	for _, name := range paths(k) {
		if _, err := w.inside(folder, file, name); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// paths lists all other fields that name files.
func paths(k *types.Kustomization) []string {
	_, patches := older(k)
	names := slices.Concat(k.Crds, k.Configurations, patches)
	for _, patch := range k.Patches {
		names = append(names, patch.Path)
	}
	for _, replacement := range k.Replacements {
		names = append(names, replacement.Path)
	}
	sources := []types.KvPairSources{}
	for i := range k.ConfigMapGenerator {
		sources = append(sources, k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		sources = append(sources, k.SecretGenerator[i].KvPairSources)
	}
	for _, from := range sources {
		names = append(names, from.EnvSource)
		names = append(names, from.EnvSources...)
		for _, file := range from.FileSources {
			// key=path
			if _, name, ok := strings.Cut(file, "="); ok {
				file = name
			}
			names = append(names, file)
		}
	}
	return append(names, k.OpenAPI["path"])
}

// older gives the folders and files of fields that have successors.
//
//nolint:staticcheck // they are in many repositories, and Kustomize reads them
func older(k *types.Kustomization) (bases, patches []string) {
	for _, patch := range k.PatchesJson6902 {
		patches = append(patches, patch.Path)
	}
	for _, patch := range k.PatchesStrategicMerge {
		// Either a path or the patch itself.
		if !strings.Contains(string(patch), "\n") {
			patches = append(patches, string(patch))
		}
	}
	return k.Bases, patches
}

// inside gives the path from the repository's root of what a kustomization
// names. Names that Kustomize could take for an address are refused whether or
// not there is something under them, since it asks that question first.
func (w *rootWalk) inside(folder, file, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	if regexp.MustCompile(`(?i)^(github\.com|gh:|git::|[^/]*@|[a-z][a-z0-9+.-]*:)`).MatchString(name) || strings.Contains(name, "://") {
		return "", fault(ErrRemote, file, "copy it into the repository", "refers to %q, and only what is in the repository is rendered", clipped(name))
	}
	joined := path.Join(folder, name)
	if path.IsAbs(name) || joined == ".." || strings.HasPrefix(joined, "../") {
		return "", fault(ErrRemote, file, "use a path inside the repository", "refers to %q, which is outside of the repository", clipped(name))
	}
	entry, ok := w.tree.Lookup(joined)
	switch {
	case !ok:
		return "", fault(ErrRemote, file, "check the path; remote bases are not allowed", "refers to %q, which is not in the repository", clipped(name))
	case entry.Kind == source.Symlink || entry.Kind == source.Submodule:
		return "", fault(ErrUnsupported, file, "put the file itself there", "refers to %q, which is a %s and is not followed", clipped(name), entry.Kind)
	}
	return joined, nil
}
