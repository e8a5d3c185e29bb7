// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/source"
)

func configMap(name string, data ...string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
	if len(data) > 0 {
		text += "data:\n"
	}
	for _, line := range data {
		text += "  " + line + "\n"
	}
	return text
}

// renderFiles gathers and renders in this process.
func renderFiles(ctx context.Context, files map[string]string, spec Spec, links ...string) (*Result, error) {
	request, err := Gather(ctx, source.FromFiles(files, links...), spec, Limits{})
	if err != nil {
		return nil, err
	}
	return new(InProcess).Render(ctx, request)
}

func namesOf(result *Result) []string {
	var out []string
	for _, o := range result.Objects {
		out = append(out, o.GetKind()+"/"+o.GetName())
	}
	return out
}

func TestDirectory(t *testing.T) {
	files := map[string]string{
		"app/a.yaml":        configMap("a") + "---\n# nothing\n---\n" + configMap("b"),
		"app/c.json":        `{"apiVersion":"v1","kind":"List","items":[{"apiVersion":"v1","kind":"Secret","metadata":{"name":"c"}},{"apiVersion":"v1","kind":"Secret","metadata":{"name":"d"}}]}`,
		"app/README.md":     "no: manifest",
		"app/skipped.yaml":  "# +argocd:skip-file-rendering\nnot: an object\n",
		"app/sub/e.yml":     configMap("e", "on: yes", "big: 12345678901", "date: 2026-01-01"),
		"app/sub/x/f.yaml":  configMap("f"),
		"other/broken.yaml": "{",
	}
	for name, test := range map[string]struct {
		options *argo.SourceDirectory
		want    []string
	}{
		"flat":    {nil, []string{"ConfigMap/a", "ConfigMap/b", "Secret/c", "Secret/d"}},
		"recurse": {&argo.SourceDirectory{Recurse: true}, []string{"ConfigMap/a", "ConfigMap/b", "Secret/c", "Secret/d", "ConfigMap/e", "ConfigMap/f"}},
		"include": {&argo.SourceDirectory{Recurse: true, Include: "{sub/*,*.json}"}, []string{"Secret/c", "Secret/d", "ConfigMap/e", "ConfigMap/f"}},
		"exclude": {&argo.SourceDirectory{Recurse: true, Exclude: "{sub/x/*,[ac].*}"}, []string{"ConfigMap/e"}},
	} {
		t.Run(name, func(t *testing.T) {
			result, err := renderFiles(t.Context(), files, Spec{Path: "app", Directory: test.options})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, namesOf(result)); diff != "" || result.Type != Directory {
				t.Error(result.Type, diff)
			}
		})
	}
	result, err := renderFiles(t.Context(), files, Spec{Path: "app/sub"})
	if err != nil {
		t.Fatal(err)
	}
	// As kubectl reads it: YAML 1.1.
	want := map[string]any{"true": true, "big": int64(12345678901), "date": "2026-01-01"}
	if diff := cmp.Diff(want, result.Objects[0].Object["data"]); diff != "" {
		t.Error(diff)
	}
}

func TestMessagesNameThePlace(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		links []string
		spec  Spec
		kind  error
		words string
	}{
		"not YAML":       {files: map[string]string{"a/x.yaml": "a: [\n"}, kind: ErrInvalid, words: "a/x.yaml: is not YAML"},
		"second":         {files: map[string]string{"a/x.yaml": configMap("a") + "---\nkind: X\n"}, kind: ErrInvalid, words: "a/x.yaml (document 2): is an object without an apiVersion"},
		"no name":        {files: map[string]string{"a/x.yaml": "apiVersion: v1\nkind: X\nmetadata: {}\n"}, kind: ErrInvalid, words: "without a name"},
		"a link":         {files: map[string]string{"a/x.yaml": configMap("a")}, links: []string{"a/l.yaml"}, kind: ErrUnsupported, words: "a/l.yaml: is a symbolic link"},
		"jsonnet":        {files: map[string]string{"a/x.jsonnet": "{}"}, kind: ErrUnsupported, words: "Jsonnet"},
		"bad glob":       {files: map[string]string{"a/x.yaml": ""}, spec: Spec{Directory: &argo.SourceDirectory{Include: "{a"}}, kind: ErrInvalid, words: "directory.include"},
		"two types":      {files: map[string]string{"a/x.yaml": ""}, spec: Spec{Directory: &argo.SourceDirectory{}, Helm: &argo.SourceHelm{}}, kind: ErrInvalid, words: "at once"},
		"no such folder": {files: map[string]string{"b/x.yaml": ""}, kind: source.ErrPathNotFound, words: `"a"`},
		"no chart":       {files: map[string]string{"a/x.yaml": ""}, spec: Spec{Helm: &argo.SourceHelm{}}, kind: ErrInvalid, words: "Chart.yaml"},
		"a list of text": {files: map[string]string{"a/x.yaml": "apiVersion: v1\nkind: List\nitems: [a]\n"}, kind: ErrInvalid, words: "a/x.yaml"},
		"deep":           {files: map[string]string{"a/x.yaml": strings.Repeat("[", 200) + strings.Repeat("]", 200)}, kind: ErrTooLarge, words: "nested too deeply"},
		"self":           {files: map[string]string{"a/x.yaml": "a: &a [*a]\n"}, kind: ErrInvalid, words: "a/x.yaml"},
		"alias bomb":     {files: map[string]string{"a/x.yaml": aliasBomb()}, kind: ErrTooLarge, words: "aliases"},
		"a wide mapping": {files: map[string]string{"a/x.yaml": wide()}, kind: ErrTooLarge, words: "too many keys"},
	} {
		t.Run(name, func(t *testing.T) {
			test.spec.Path = "a"
			_, err := renderFiles(t.Context(), test.files, test.spec, test.links...)
			if !errors.Is(err, test.kind) || err == nil || !strings.Contains(err.Error(), test.words) {
				t.Errorf("%v; want %v with %q", err, test.kind, test.words)
			}
		})
	}
}

func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [" + strings.Repeat("x,", 9) + "x]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String()
}

func wide() string {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "k%d: 1\n", i)
	}
	return b.String()
}

func TestAliasesThatAreSmallAreFine(t *testing.T) {
	result, err := renderFiles(t.Context(), map[string]string{"x.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: a, labels: &l {b: c}}\nspec: {<<: *l, m: *l}\n"}, Spec{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"b": "c", "m": map[string]any{"b": "c"}}
	if diff := cmp.Diff(want, result.Objects[0].Object["spec"]); diff != "" {
		t.Error(diff)
	}
}

func TestDuplicatesAreReported(t *testing.T) {
	result, err := renderFiles(t.Context(), map[string]string{"a.yaml": configMap("a") + "---\n" + configMap("b"), "b.yaml": configMap("a")}, Spec{Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Duplicate{{Object: "ConfigMap ns/a", Sources: []string{"a.yaml #1", "b.yaml #1"}}}, result.Duplicates); diff != "" {
		t.Error(diff)
	}
}

func TestKustomize(t *testing.T) {
	files := map[string]string{
		"base/kustomization.yaml":  "resources: [d.yaml]\nconfigMapGenerator: [{name: c, files: [x=conf.txt]}]\n",
		"base/d.yaml":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {template: {spec: {containers: [{name: c, image: nginx:1}]}}}\n",
		"base/conf.txt":            "hello",
		"prod/kustomization.yml":   "namePrefix: prod-\nresources: [../base]\npatches: [{path: p.yaml}]\nimages: [{name: nginx, newTag: '2'}]\n",
		"prod/p.yaml":              "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {replicas: 3}\n",
		"unrelated/something.yaml": configMap("x"),
	}
	spec := Spec{Path: "prod", Kustomize: &argo.SourceKustomize{Images: []string{"nginx=registry.example/n:3"}, Namespace: "ns", CommonAnnotations: map[string]string{"a": "b"}}}
	result, err := renderFiles(t.Context(), files, spec)
	if err != nil {
		t.Fatal(err)
	}
	got := namesOf(result)
	if len(got) != 2 || result.Type != Kustomize || !slices.Contains(got, "Deployment/prod-d") || result.Objects[0].File != "prod/kustomization.yml" {
		t.Fatal(result.Type, got, result.Objects[0].File)
	}
	for _, o := range result.Objects {
		if o.GetNamespace() != "ns" || o.GetAnnotations()["a"] != "b" {
			t.Errorf("%s: namespace %q, annotations %v", o.GetName(), o.GetNamespace(), o.GetAnnotations())
		}
		if o.GetKind() != "Deployment" {
			continue
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		replicas, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		if image := containers[0].(map[string]any)["image"]; image != "registry.example/n:3" || replicas != 3 {
			t.Errorf("image %v, replicas %d", image, replicas)
		}
	}
}

func TestKustomizeStaysInside(t *testing.T) {
	chain := map[string]string{}
	for i := range 200 {
		chain[fmt.Sprintf("%03d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%03d]\n", i+1)
	}
	diamond := map[string]string{"30/kustomization.yaml": "{}"}
	for i := range 30 {
		diamond[fmt.Sprintf("%02d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../%02d, ./../%02d]\n", i+1, i+1)
	}
	for name, test := range map[string]struct {
		files map[string]string
		path  string
		kind  error
	}{
		"chain":   {chain, "000", ErrTooLarge},
		"diamond": {diamond, "00", ErrTooLarge},
		"circle":  {map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]"}, "a", ErrInvalid},
	} {
		if _, err := renderFiles(t.Context(), test.files, Spec{Path: test.path}); !errors.Is(err, test.kind) {
			t.Errorf("%s: %v, want %v", name, err, test.kind)
		}
	}
	for _, remote := range []string{
		"resources: ['https://example.com/x.yaml']", "resources: ['github.com/org/repo']", "resources: ['github.com/org/repo//x?ref=main']",
		"resources: ['git@github.com:org/repo']", "resources: ['ssh://git@host/x']", "resources: ['git::https://host/x']", "resources: ['gh:org/repo']",
		"resources: ['file:///etc']", "resources: [/etc/passwd]", "resources: ['../../x']", "bases: ['https://example.com/x']", "components: ['https://example.com/x']",
		"crds: ['https://example.com/x']", "configurations: ['https://example.com/x']", "openapi: {path: 'https://example.com/x'}",
		"patches: [{path: 'https://example.com/x'}]", "patchesStrategicMerge: ['https://example.com/x']", "patchesJson6902: [{path: 'https://example.com/x'}]",
		"replacements: [{path: 'https://example.com/x'}]", "configMapGenerator: [{name: a, files: ['k=https://example.com/x']}]",
		"secretGenerator: [{name: a, envs: ['https://example.com/x']}]", "resources: [nowhere.yaml]",
	} {
		if _, err := renderFiles(t.Context(), map[string]string{"a/kustomization.yaml": remote, "a/github.com/org/repo/kustomization.yaml": "{}"}, Spec{Path: "a"}); !errors.Is(err, ErrRemote) {
			t.Errorf("%s: %v", remote, err)
		}
	}
	for _, plugin := range []string{"generators: [a.yaml]", "transformers: ['https://example.com/x']", "validators: [a.yaml]", "helmCharts: [{name: x, repo: 'https://example.com'}]"} {
		if _, err := renderFiles(t.Context(), map[string]string{"kustomization.yaml": plugin, "a.yaml": configMap("a")}, Spec{}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", plugin, err)
		}
	}
	// A file of another folder, although it is in the repository: Kustomize's own rule.
	if _, err := renderFiles(t.Context(), map[string]string{"a/kustomization.yaml": "resources: [../b/x.yaml]", "b/x.yaml": configMap("x")}, Spec{Path: "a"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a file of another folder: %v", err)
	}
}

func chartFiles(more map[string]string) map[string]string {
	files := map[string]string{
		"c/Chart.yaml":          "apiVersion: v2\nname: demo\nversion: 1.0.0\n",
		"c/values.yaml":         "count: 100000\ntext: default\nlist: []\n",
		"c/templates/cm.yaml":   "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n  namespace: {{ .Release.Namespace }}\ndata:\n  count: {{ .Values.count | quote }}\n  text: {{ .Values.text | quote }}\n",
		"c/templates/NOTES.txt": "thanks",
		"c/templates/_h.tpl":    `{{ define "x" }}{{ end }}`,
		"c/crds/crd.yaml":       "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x.example.com}\n",
	}
	maps.Copy(files, more)
	return files
}

func TestHelm(t *testing.T) {
	files := chartFiles(map[string]string{
		"common.yaml": "text: from a file\n",
		"c/templates/caps.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: caps}\ndata:\n  kube: {{ .Capabilities.KubeVersion.Version | quote }}\n" +
			"  has: {{ .Capabilities.APIVersions.Has \"example.com/v1\" | quote }}\n  lookup: {{ lookup \"v1\" \"Secret\" \"a\" \"b\" | toJson | quote }}\n  dns: {{ getHostByName \"localhost\" | quote }}\n",
	})
	spec := Spec{Path: "c", Name: "app", Namespace: "ns", KubeVersion: "v1.31.2", APIVersions: []string{"example.com/v1"}, Helm: &argo.SourceHelm{ValueFiles: []string{"../common.yaml"}}}
	data := func(change func(*argo.SourceHelm), index int) map[string]any {
		t.Helper()
		s := spec
		helm := *spec.Helm
		change(&helm)
		s.Helm = &helm
		result, err := renderFiles(t.Context(), files, s)
		if err != nil {
			t.Fatal(err)
		}
		if result.Type != Helm || result.Objects[0].GetKind() != "CustomResourceDefinition" || len(result.Objects) != 3 {
			t.Fatal(result.Type, namesOf(result))
		}
		out, _, _ := unstructured.NestedMap(result.Objects[index].Object, "data")
		return out
	}
	if diff := cmp.Diff(map[string]any{"kube": "v1.31.2", "has": "true", "lookup": "{}", "dns": ""}, data(func(*argo.SourceHelm) {}, 1)); diff != "" {
		t.Error(diff)
	}
	for name, test := range map[string]struct {
		change func(*argo.SourceHelm)
		want   map[string]any
	}{
		"file":   {func(*argo.SourceHelm) {}, map[string]any{"count": "100000", "text": "from a file"}},
		"values": {func(h *argo.SourceHelm) { h.Values = "text: v\n" }, map[string]any{"count": "100000", "text": "v"}},
		"valuesObject": {func(h *argo.SourceHelm) {
			h.Values = "text: v\n"
			h.ValuesObject = &apiextensionsv1.JSON{Raw: []byte(`{"text":"o"}`)}
		}, map[string]any{"count": "100000", "text": "o"}},
		"parameters": {func(h *argo.SourceHelm) {
			h.Values = "text: v\n"
			h.Parameters = []argo.HelmParameter{{Name: "text", Value: "a,b=c"}, {Name: "count", Value: "007", ForceString: true}}
		}, map[string]any{"count": "007", "text": "a,b=c"}},
	} {
		if diff := cmp.Diff(test.want, data(test.change, 2)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	skipped := spec
	skipped.Helm = &argo.SourceHelm{SkipCrds: true, ReleaseName: "other"}
	result, err := renderFiles(t.Context(), files, skipped)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"ConfigMap/caps", "ConfigMap/other"}, namesOf(result)); diff != "" || result.Objects[1].File != "c/templates/cm.yaml" || result.Objects[1].GetNamespace() != "ns" {
		t.Error(diff, result.Objects[1].File)
	}
}

func TestHelmDependencies(t *testing.T) {
	wants := map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ndependencies: [{name: sub, version: 1.0.0, repository: 'https://example.com'}]\n"}
	if _, err := renderFiles(t.Context(), chartFiles(wants), Spec{Path: "c", Name: "app"}); !errors.Is(err, ErrRemote) {
		t.Errorf("a dependency that is not there: %v", err)
	}
	wants["c/charts/sub/Chart.yaml"] = "apiVersion: v2\nname: sub\nversion: 1.0.0\n"
	wants["c/charts/sub/templates/s.yaml"] = configMap("sub")
	result, err := renderFiles(t.Context(), chartFiles(wants), Spec{Path: "c", Name: "app"})
	if err != nil {
		t.Fatal(err)
	}
	if got := namesOf(result); !slices.Contains(got, "ConfigMap/sub") {
		t.Error(got)
	}
}

func TestHelmRefuses(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		helm  argo.SourceHelm
		kind  error
	}{
		"values elsewhere":   {helm: argo.SourceHelm{ValueFiles: []string{"https://example.com/v.yaml"}}, kind: ErrRemote},
		"values outside":     {helm: argo.SourceHelm{ValueFiles: []string{"../../v.yaml"}}, kind: ErrRemote},
		"values missing":     {helm: argo.SourceHelm{ValueFiles: []string{"v.yaml"}}, kind: ErrInvalid},
		"remote schema":      {files: map[string]string{"c/values.schema.json": `{"properties":{"a":{"$ref":"http://127.0.0.1/x"}}}`}, kind: ErrRemote},
		"schema as a file":   {files: map[string]string{"c/values.schema.json": `{"$ref":"file:///etc/passwd"}`}, kind: ErrRemote},
		"schema not met":     {files: map[string]string{"c/values.schema.json": `{"properties":{"text":{"type":"integer"}}}`}, kind: ErrInvalid},
		"a failing template": {files: map[string]string{"c/templates/f.yaml": `{{ fail "no" }}`}, kind: ErrInvalid},
		"another Kubernetes": {files: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: '<1.0'\n"}, kind: ErrInvalid},
		"a bad release name": {helm: argo.SourceHelm{ReleaseName: "A_B"}, kind: ErrInvalid},
		"a values bomb":      {helm: argo.SourceHelm{Values: aliasBomb()}, kind: ErrTooLarge},
		"a library":          {files: map[string]string{"c/Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\ntype: library\n"}, kind: ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderFiles(t.Context(), chartFiles(test.files), Spec{Path: "c", Name: "app", Helm: &test.helm}); !errors.Is(err, test.kind) {
				t.Errorf("%v; want %v", err, test.kind)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	files := map[string]string{"a.yaml": configMap("a", "x: "+strings.Repeat("y", 1000)), "b.yaml": configMap("b")}
	for name, limits := range map[string]Limits{
		"input bytes": {InputBytes: 500}, "input files": {InputFiles: 1}, "output bytes": {OutputBytes: 500}, "objects": {Objects: 1},
	} {
		request, err := Gather(t.Context(), source.FromFiles(files), Spec{}, limits)
		if err == nil {
			_, err = new(InProcess).Render(t.Context(), request)
		}
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// counter is a renderer that counts.
type counter struct {
	next  Renderer
	calls int
	err   error
}

func (c *counter) Render(ctx context.Context, request *Request) (*Result, error) {
	c.calls++
	if c.err != nil {
		return nil, c.err
	}
	return c.next.Render(ctx, request)
}

func TestCacheFollowsWhatWasRead(t *testing.T) {
	files := map[string]string{
		"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": configMap("a"),
		"prod/kustomization.yaml": "resources: [../base]\n", "other/a.yaml": configMap("o"),
	}
	count := &counter{next: &InProcess{}}
	cache := NewCache(count, 10)
	render := func(want int, why string) {
		t.Helper()
		request, err := Gather(t.Context(), source.FromFiles(files), Spec{Path: "prod"}, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cache.Render(t.Context(), request); err != nil && count.err == nil {
			t.Fatal(err)
		}
		if count.calls != want {
			t.Errorf("%s: rendered %d times, want %d", why, count.calls, want)
		}
	}
	render(1, "first")
	files["other/a.yaml"] = configMap("changed")
	render(1, "a file elsewhere")
	files["base/a.yaml"] = configMap("b")
	render(2, "a file of the base")
	count.err = &Error{Kind: ErrTime}
	files["base/a.yaml"] = configMap("c")
	render(3, "out of time")
	render(4, "out of time, again")
	count.err = &Error{Kind: ErrInvalid}
	render(5, "invalid")
	render(5, "invalid, again")
}
