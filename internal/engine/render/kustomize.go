// SPDX-License-Identifier: Apache-2.0

package render

import (
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	sigsyaml "sigs.k8s.io/yaml"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// renderKustomize builds a kustomization in memory. The default options are the
// strict ones: no plugins, and files only below the folder that names them.
func renderKustomize(request *Request) (*collector, error) {
	// Kustomize reads all of these without a guard.
	for name, data := range request.Files {
		if ext := path.Ext(name); ext == ".yaml" || ext == ".yml" || slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name)) {
			if err := guardAll(name, data, request.Limits); err != nil {
				return nil, err
			}
		}
	}
	// The request stays what it was: it may be rendered again.
	own := *request
	own.Files = maps.Clone(request.Files)
	request = &own
	file, err := adjustKustomization(request)
	if err != nil {
		return nil, err
	}
	memory := filesys.MakeFsInMemory()
	for name, data := range request.Files {
		if err := memory.WriteFile("/"+name, data); err != nil {
			return nil, foreign(name, "cannot be put in place", err)
		}
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(memory, path.Join("/", request.Spec.Path))
	if err != nil {
		return nil, foreign(file, "kustomize", err)
	}
	if count := built.Size(); count > request.Limits.Objects {
		return nil, fault(ErrTooLarge, "", "split it into several applications", "there are more than %d objects", request.Limits.Objects)
	}
	out := &collector{limits: request.Limits}
	for i, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return nil, foreign(file, "kustomize", err)
		}
		if _, err := out.document(file, i+1, text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// adjustKustomization writes what the application says into its kustomization,
// as Argo CD does with "kustomize edit": names replace, labels are added, images
// replace those of the same name.
func adjustKustomization(request *Request) (string, error) {
	file := ""
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		if _, ok := request.Files[path.Join(request.Spec.Path, name)]; ok {
			file = path.Join(request.Spec.Path, name)
			break
		}
	}
	o := request.Spec.Kustomize
	if o == nil || file == "" {
		return file, nil
	}
	data, err := toJSON(request.Files[file], request.Limits)
	if err != nil {
		return "", at(err, file, 1)
	}
	k := map[string]any{}
	if err := json.Unmarshal(data, &k); err != nil {
		return "", foreign(file, "is not a kustomization", err)
	}
	for field, value := range map[string]string{"namePrefix": o.NamePrefix, "nameSuffix": o.NameSuffix, "namespace": o.Namespace} {
		if value != "" {
			k[field] = value
		}
	}
	merge(k, "commonLabels", o.CommonLabels)
	merge(k, "commonAnnotations", o.CommonAnnotations)
	if len(o.Components) > 0 {
		list, _ := k["components"].([]any)
		for _, component := range o.Components {
			list = append(list, component)
		}
		k["components"] = list
	}
	if err := setImages(k, o); err != nil {
		return "", err
	}
	out, err := sigsyaml.Marshal(k)
	if err != nil {
		return "", foreign(file, "kustomize", err)
	}
	request.Files[file] = out
	return file, nil
}

func merge(k map[string]any, field string, values map[string]string) {
	if len(values) == 0 {
		return
	}
	all, _ := k[field].(map[string]any)
	if all == nil {
		all = map[string]any{}
	}
	for name, value := range values {
		all[name] = value
	}
	k[field] = all
}

func setImages(k map[string]any, o *argo.SourceKustomize) error {
	if len(o.Images) == 0 {
		return nil
	}
	list, _ := k["images"].([]any)
	for _, text := range o.Images {
		image, ok := parseImage(text)
		if !ok {
			return fault(ErrInvalid, "", "write it as [old=]name[:tag|@digest]", "kustomize.images has %q", clipped(text))
		}
		list = slices.DeleteFunc(list, func(other any) bool {
			fields, _ := other.(map[string]any)
			return fields["name"] == image["name"]
		})
		list = append(list, image)
	}
	k["images"] = list
	return nil
}

// parseImage reads [old=]name[:tag|@digest].
func parseImage(text string) (map[string]any, bool) {
	name, image, replaced := strings.Cut(text, "=")
	if !replaced {
		image = text
	}
	out := map[string]any{}
	rest, digest, hasDigest := strings.Cut(image, "@")
	if hasDigest {
		out["digest"] = digest
	} else if i := strings.LastIndexByte(rest, ':'); i > strings.LastIndexByte(rest, '/') {
		rest, out["newTag"] = rest[:i], rest[i+1:]
	}
	if replaced {
		out["newName"] = rest
	} else {
		name = rest
	}
	out["name"] = name
	return out, name != "" && rest != ""
}

// guardAll looks at each document of a file. What is not YAML passes: it may be
// there for another purpose, and if it is not, Kustomize will say so.
func guardAll(name string, data []byte, limits Limits) error {
	for i, document := range strings.Split("\n"+string(data), "\n---") {
		// What follows the dashes in their line belongs to the document.
		if err := guard([]byte(document), limits); errors.Is(err, ErrTooLarge) {
			return at(err, name, i+1)
		}
	}
	return nil
}
