// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	"helm.sh/helm/v4/pkg/ignore"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/source"
)

// maxRelease is Helm's own limit for the name of a release.
const maxRelease = 53

// chart takes the folder of a chart, and its values files, which may be elsewhere
// in the repository.
func (g *gatherer) chart(spec Spec) error {
	if entry, ok := g.tree.Lookup(path.Join(spec.Path, "Chart.yaml")); !ok || entry.Kind != source.File {
		return fault(ErrInvalid, spec.Path, "point the application at a chart", "has no Chart.yaml in it")
	}
	if err := g.folder(spec.Path); err != nil {
		return err
	}
	if spec.Helm == nil {
		return nil
	}
	for _, name := range spec.Helm.ValueFiles {
		file, err := valuesFile(spec, name)
		if err != nil {
			return err
		}
		entry, ok := g.tree.Lookup(file)
		if !ok && spec.Helm.IgnoreMissingValueFiles {
			continue
		}
		if !ok {
			return fault(ErrInvalid, file, "check helm.valueFiles", "is not in the repository")
		}
		if err := g.want(entry); err != nil {
			return err
		}
	}
	return nil
}

// valuesFile gives the path from the repository's root: one with a slash at its
// beginning is from there, others are from the chart.
func valuesFile(spec Spec, name string) (string, error) {
	file := path.Join(spec.Path, name)
	if strings.HasPrefix(name, "/") {
		file = strings.TrimPrefix(path.Clean(name), "/")
	}
	if strings.Contains(name, "://") || strings.HasPrefix(name, "$") || !fs.ValidPath(file) || file == "." {
		return "", fault(ErrRemote, "", "use a path inside the repository", "helm.valueFiles has %q, and only what is in the repository is read", clipped(name))
	}
	return file, nil
}

// renderHelm renders a chart as "helm template" does, without a cluster: lookup
// finds nothing, names are not resolved, dependencies are those in charts/.
func renderHelm(ctx context.Context, request *Request) (*collector, error) {
	loaded, err := loadChart(request)
	if err != nil {
		return nil, err
	}
	chartFile := path.Join(request.Spec.Path, "Chart.yaml")
	values, err := helmValues(request)
	if err != nil {
		return nil, err
	}
	capabilities, err := capabilitiesOf(request.Spec)
	if err != nil {
		return nil, err
	}
	if wanted := loaded.Metadata.KubeVersion; wanted != "" && !chartutil.IsCompatibleRange(wanted, capabilities.KubeVersion.String()) {
		return nil, fault(ErrInvalid, chartFile, "use a chart for this version", "wants Kubernetes %s, and the cluster has %s", wanted, capabilities.KubeVersion.Version)
	}
	if err := chartutil.ProcessDependencies(loaded, values); err != nil {
		return nil, foreign(chartFile, "helm", err)
	}
	if err := localSchemas(loaded, request.Spec.Path); err != nil {
		return nil, err
	}
	release := common.ReleaseOptions{Name: releaseName(request.Spec), Namespace: request.Spec.Namespace, Revision: 1, IsInstall: true}
	if !regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`).MatchString(release.Name) || len(release.Name) > maxRelease {
		return nil, fault(ErrInvalid, "", "set helm.releaseName to at most 53 lower case letters, digits and hyphens", "%q is not a name for a release", clipped(release.Name))
	}
	top, err := util.ToRenderValues(loaded, values, release, capabilities)
	if err != nil {
		return nil, foreign(chartFile, "helm", err)
	}
	rendered, err := engine.Engine{}.RenderWithContext(ctx, loaded, top)
	if err != nil {
		return nil, foreign(request.Spec.Path, "helm", err)
	}
	return collectChart(request, loaded, rendered)
}

func collectChart(request *Request, loaded *chart.Chart, rendered map[string]string) (*collector, error) {
	out := &collector{limits: request.Limits}
	if request.Spec.Helm == nil || !request.Spec.Helm.SkipCrds {
		for _, crd := range loaded.CRDObjects() {
			if err := out.add(place(request, loaded, crd.Filename), crd.File.Data); err != nil {
				return nil, err
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if path.Base(name) == "NOTES.txt" || strings.TrimSpace(rendered[name]) == "" {
			continue
		}
		if err := out.add(place(request, loaded, name), []byte(rendered[name])); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// place turns Helm's name for a file, which begins with that of the chart, into
// a path.
func place(request *Request, loaded *chart.Chart, name string) string {
	return path.Join(request.Spec.Path, strings.TrimPrefix(name, loaded.Name()+"/"))
}

func loadChart(request *Request) (*chart.Chart, error) {
	rules := ignore.Empty()
	if data, ok := request.Files[path.Join(request.Spec.Path, ".helmignore")]; ok {
		parsed, err := ignore.Parse(bytes.NewReader(data))
		if err != nil {
			return nil, foreign(path.Join(request.Spec.Path, ".helmignore"), "helm", err)
		}
		rules = parsed
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	for _, name := range slices.Sorted(maps.Keys(request.Files)) {
		if request.Spec.Path != "." && !strings.HasPrefix(name, request.Spec.Path+"/") {
			continue
		}
		below := relative(request.Spec.Path, name)
		if ignored(rules, below) {
			continue
		}
		if ext := path.Ext(below); !strings.HasPrefix(below, "templates/") && !strings.Contains(below, "/templates/") && (ext == ".yaml" || ext == ".yml") {
			if err := guardAll(name, request.Files[name], request.Limits); err != nil {
				return nil, err
			}
		}
		files = append(files, &archive.BufferedFile{Name: below, Data: request.Files[name]})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, foreign(path.Join(request.Spec.Path, "Chart.yaml"), "helm", err)
	}
	if loaded.Metadata.Type == "library" {
		return nil, fault(ErrInvalid, path.Join(request.Spec.Path, "Chart.yaml"), "use a chart of type application", "is a library chart, of which nothing can be deployed")
	}
	return loaded, missingDependency(request, loaded)
}

func missingDependency(request *Request, loaded *chart.Chart) error {
	there := map[string]bool{}
	for _, dependency := range loaded.Dependencies() {
		there[dependency.Name()] = true
	}
	for _, wanted := range loaded.Metadata.Dependencies {
		if !there[wanted.Name] {
			return fault(ErrRemote, path.Join(request.Spec.Path, "Chart.yaml"), `run "helm dependency update" and commit the folder charts`,
				"depends on the chart %q, which is not in charts/", clipped(wanted.Name))
		}
	}
	return nil
}

// ignored says whether .helmignore leaves a file, or a folder above it, out.
func ignored(rules *ignore.Rules, name string) bool {
	for at := name; at != "."; at = path.Dir(at) {
		if rules.Ignore(at, fileInfo{name: path.Base(at), dir: at != name}) {
			return true
		}
	}
	return false
}

// fileInfo is what the rules want to know about a file.
type fileInfo struct {
	name string
	dir  bool
}

func (f fileInfo) Name() string       { return f.name }
func (f fileInfo) Size() int64        { return 0 }
func (f fileInfo) Mode() fs.FileMode  { return 0 }
func (f fileInfo) ModTime() time.Time { return time.Time{} }
func (f fileInfo) IsDir() bool        { return f.dir }
func (f fileInfo) Sys() any           { return nil }

// localSchemas refuses schemas that refer to others by address: Helm would
// download those.
func localSchemas(loaded *chart.Chart, folder string) error {
	if len(loaded.Schema) > 0 {
		var schema any
		if err := json.Unmarshal(loaded.Schema, &schema); err != nil {
			return foreign(folder, "values.schema.json of the chart "+loaded.Name(), err)
		}
		if reference := remoteReference(schema); reference != "" {
			return fault(ErrRemote, folder, "put what it refers to into the schema", "the schema of the chart %q refers to %q", loaded.Name(), clipped(reference))
		}
	}
	for _, dependency := range loaded.Dependencies() {
		if err := localSchemas(dependency, folder); err != nil {
			return err
		}
	}
	return nil
}

func remoteReference(schema any) string {
	switch s := schema.(type) {
	case map[string]any:
		for key, value := range s {
			text, _ := value.(string)
			known := strings.HasPrefix(text, "http://json-schema.org/") || strings.HasPrefix(text, "https://json-schema.org/")
			switch {
			case text == "":
			case strings.HasSuffix(strings.ToLower(key), "ref") && strings.HasPrefix(key, "$") && !strings.HasPrefix(text, "#"), key == "$schema" && !known:
				return text
			}
			if found := remoteReference(value); found != "" {
				return found
			}
		}
	case []any:
		for _, value := range s {
			if found := remoteReference(value); found != "" {
				return found
			}
		}
	}
	return ""
}

func releaseName(spec Spec) string {
	if spec.Helm != nil && spec.Helm.ReleaseName != "" {
		return spec.Helm.ReleaseName
	}
	return spec.Name
}

// capabilitiesOf says what the cluster can do.
func capabilitiesOf(spec Spec) (*common.Capabilities, error) {
	out := common.DefaultCapabilities.Copy()
	if spec.KubeVersion != "" {
		parsed, err := common.ParseKubeVersion(spec.KubeVersion)
		if err != nil {
			return nil, fault(ErrInvalid, "", "write it as v1.34.0", "%q is not a version of Kubernetes", clipped(spec.KubeVersion))
		}
		out.KubeVersion = *parsed
	}
	if len(spec.APIVersions) > 0 {
		out.APIVersions = append(slices.Clone(out.APIVersions), spec.APIVersions...)
	}
	return out, nil
}

// helmOptions is never nil.
func helmOptions(spec Spec) *argo.SourceHelm {
	if spec.Helm == nil {
		return &argo.SourceHelm{}
	}
	return spec.Helm
}
