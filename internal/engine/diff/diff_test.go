// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

const manager = "engine"

// parse makes an object of "group/version Kind" and YAML, called x in ns.
func parse(t testing.TB, what, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	apiVersion, kind, _ := strings.Cut(what, " ")
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	u.SetName("x")
	u.SetNamespace("ns")
	return u
}

// owned adds managedFields.
func owned(t testing.TB, u *unstructured.Unstructured, manager, operation, fields string) {
	t.Helper()
	var tree map[string]any
	if err := yaml.Unmarshal([]byte(fields), &tree); err != nil {
		t.Fatal(err)
	}
	list, _, err := unstructured.NestedSlice(u.Object, "metadata", "managedFields")
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, map[string]any{
		"manager": manager, "operation": operation, "apiVersion": u.GetAPIVersion(), "fieldsType": "FieldsV1", "fieldsV1": tree,
	})
	if err := unstructured.SetNestedSlice(u.Object, list, "metadata", "managedFields"); err != nil {
		t.Fatal(err)
	}
}

func comparer(t testing.TB, ignore ...argo.ResourceIgnoreDifferences) *Comparer {
	t.Helper()
	c, err := New(Options{Manager: manager, Ignore: ignore})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func compare(t testing.TB, c *Comparer, desired, live *unstructured.Unstructured) Result {
	t.Helper()
	d, l := desired.DeepCopy(), live.DeepCopy()
	r, err := c.Compare(desired, live)
	if err != nil {
		t.Fatal(err)
	}
	if r.Equal != (len(r.Differences) == 0) {
		t.Fatalf("equal is %v with %v", r.Equal, r.Differences)
	}
	if diff := cmp.Diff([]*unstructured.Unstructured{d, l}, []*unstructured.Unstructured{desired, live}); diff != "" {
		t.Fatalf("the objects were changed: %s", diff)
	}
	return r
}

func TestCompare(t *testing.T) {
	const (
		cm, dep, svc, sec = "v1 ConfigMap", "apps/v1 Deployment", "v1 Service", "v1 Secret"
		np, crd           = "networking.k8s.io/v1 NetworkPolicy", "example.com/v1 Widget"
		podPath           = "spec.template.spec."
	)
	pod := func(text string) string { return "{spec: {template: {spec: {" + text + "}}}}" }
	tests := []struct {
		name, what, desired, live string
		// ours is what our manager owns.
		ours string
		want []string
	}{
		{name: "the same", what: cm, desired: `{data: {a: b}}`, live: `{data: {a: b}}`},
		{name: "another value", what: cm, desired: `{data: {a: b}}`, live: `{data: {a: c}}`, want: []string{`data.a: desired "b", live "c"`}},
		{name: "missing", what: cm, desired: `{data: {a: b}}`, live: `{}`, want: []string{`data: desired {"a":"b"}, live absent`}},
		{name: "another type", what: cm, desired: `{data: {a: b}}`, live: `{data: x}`, want: []string{`data: desired {"a":"b"}, live "x"`}},
		{name: "more in live", what: cm, desired: `{data: {a: b}}`, live: `{data: {a: b, c: d}, immutable: false}`},
		{name: "removed from Git", what: cm, desired: `{data: {a: b}}`, live: `{data: {a: b, c: d}}`, ours: `{"f:data": {"f:a": {}, "f:c": {}}}`, want: []string{`data.c: desired absent, live "d"`}},
		{name: "all removed from Git", what: cm, desired: `{}`, live: `{data: {a: b, c: d}}`, ours: `{"f:data": {".": {}, "f:a": {}}}`, want: []string{`data.a: desired absent, live "b"`}},
		{name: "owned and gone", what: cm, desired: `{}`, live: `{}`, ours: `{"f:data": {"f:a": {}}}`},
		{name: "null is absent", what: cm, desired: `{data: {a: null}, binaryData: null}`, live: `{data: {a: b}}`},
		{name: "null is removed", what: cm, desired: `{data: {a: null}}`, live: `{data: {a: b}}`, ours: `{"f:data": {"f:a": {}}}`, want: []string{`data.a: desired absent, live "b"`}},
		{name: "empty is absent", what: cm, desired: `{data: {}, metadata: {labels: {}, finalizers: []}}`, live: `{}`},
		{name: "status and server fields", what: dep, desired: `{metadata: {creationTimestamp: null, generation: 1, uid: a}, status: {replicas: 1}}`, live: `{metadata: {uid: b, resourceVersion: "3", generation: 9}, status: {replicas: 2}}`, ours: `{"f:status": {"f:replicas": {}}, "f:metadata": {"f:uid": {}}}`},
		{name: "last applied", what: cm, desired: `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: a, b: c}}}`, live: `{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: x, b: c}}}`, ours: `{"f:metadata": {"f:annotations": {"f:kubectl.kubernetes.io/last-applied-configuration": {}}}}`},
		{name: "annotation", what: cm, desired: `{metadata: {annotations: {a.b/c: d}}}`, live: `{metadata: {annotations: {a.b/c: e}}}`, want: []string{`metadata.annotations["a.b/c"]: desired "d", live "e"`}},
		{name: "finalizers are a set", what: cm, desired: `{metadata: {finalizers: [a, b]}}`, live: `{metadata: {finalizers: [c, b, a]}}`},
		{name: "finalizer missing", what: cm, desired: `{metadata: {finalizers: [a]}}`, live: `{metadata: {finalizers: [c]}}`, want: []string{`metadata.finalizers["a"]: desired "a", live absent`}},
		{name: "finalizer removed", what: cm, desired: `{metadata: {finalizers: [a]}}`, live: `{metadata: {finalizers: [a, b, c]}}`, ours: `{"f:metadata": {"f:finalizers": {'v:"a"': {}, 'v:"b"': {}}}}`, want: []string{`metadata.finalizers["b"]: desired absent, live "b"`}},

		{name: "quantities", what: dep, desired: pod(`containers: [{name: a, resources: {limits: {cpu: 1000m, memory: 1024Mi}, requests: {cpu: 0.5}}}]`), live: pod(`containers: [{name: a, resources: {limits: {cpu: "1", memory: 1Gi}, requests: {cpu: 500m}}}]`)},
		{name: "other quantities", what: dep, desired: pod(`containers: [{name: a, resources: {limits: {cpu: 1001m}}}]`), live: pod(`containers: [{name: a, resources: {limits: {cpu: "1"}}}]`), want: []string{podPath + `containers[name="a"].resources.limits.cpu: desired "1001m", live "1"`}},
		{name: "no quantities", what: dep, desired: `{metadata: {labels: {a: 1000m}}}`, live: `{metadata: {labels: {a: "1"}}}`, want: []string{`metadata.labels.a: desired "1000m", live "1"`}},
		{name: "quantity of a custom kind", what: crd, desired: `{spec: {limits: {cpu: 1000m}, sizeLimit: 1000m}}`, live: `{spec: {limits: {cpu: 1}, sizeLimit: 1}}`, want: []string{`spec.sizeLimit: desired "1000m", live 1`}},
		{name: "text is no number", what: crd, desired: `{spec: {a: "1"}}`, live: `{spec: {a: 1}}`, want: []string{`spec.a: desired "1", live 1`}},

		{name: "containers by name", what: dep, desired: pod(`containers: [{name: a, image: i}, {name: b, image: j}]`), live: pod(`containers: [{name: sidecar, image: s}, {name: b, image: j, imagePullPolicy: Always}, {name: a, image: i}]`)},
		{name: "a container differs", what: dep, desired: pod(`containers: [{name: a, image: i}]`), live: pod(`containers: [{name: s}, {name: a, image: k}]`), want: []string{podPath + `containers[name="a"].image: desired "i", live "k"`}},
		{name: "a container is missing", what: dep, desired: pod(`containers: [{name: a}]`), live: pod(`containers: [{name: s}]`), want: []string{podPath + `containers[name="a"]: desired {"name":"a"}, live absent`}},
		{
			name: "a container and an env removed", what: dep, desired: pod(`containers: [{name: a, env: []}]`), live: pod(`containers: [{name: a, env: [{name: e, value: v}, {name: injected}]}, {name: b}, {name: injected}]`),
			ours: `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:env": {'k:{"name":"e"}': {".": {}, "f:name": {}, "f:value": {}}}}, 'k:{"name":"b"}': {".": {}, "f:name": {}}}}}}}`,
			want: []string{podPath + `containers[name="a"].env[name="e"]: desired absent, live {"name":"e","value":"v"}`, podPath + `containers[name="b"]: desired absent, live {"name":"b"}`},
		},
		{
			name: "a field of a foreign element removed", what: dep, desired: pod(`containers: [{name: a}]`), live: pod(`containers: [{name: a}, {name: b, image: i}]`),
			ours: `{"f:spec": {"f:template": {"f:spec": {"f:containers": {'k:{"name":"b"}': {"f:image": {}}}}}}}`,
			want: []string{podPath + `containers[name="b"].image: desired absent, live "i"`},
		},
		{name: "ports with their default protocol", what: dep, desired: pod(`containers: [{name: a, ports: [{containerPort: 80}, {containerPort: 53, protocol: UDP}]}]`), live: pod(`containers: [{name: a, ports: [{containerPort: 53, protocol: UDP}, {containerPort: 80, protocol: TCP}]}]`)},
		{name: "service ports", what: svc, desired: `{spec: {ports: [{port: 80, targetPort: 8080}]}}`, live: `{spec: {clusterIP: 1.2.3.4, ports: [{port: 80, protocol: TCP, targetPort: 8081}]}}`, want: []string{`spec.ports[port=80,protocol="TCP"].targetPort: desired 8080, live 8081`}},
		{name: "lists as values", what: dep, desired: pod(`containers: [{name: a, args: [p, q]}]`), live: pod(`containers: [{name: a, args: [q, p]}]`), want: []string{podPath + `containers[name="a"].args[0]: desired "p", live "q"`, podPath + `containers[name="a"].args[1]: desired "q", live "p"`}},
		{name: "longer list", what: dep, desired: pod(`containers: [{name: a, args: [p]}]`), live: pod(`containers: [{name: a, args: [p, q]}]`), want: []string{podPath + `containers[name="a"].args: desired ["p"], live ["p","q"]`}},
		{name: "emptied list", what: dep, desired: pod(`tolerations: []`), live: pod(`tolerations: [{key: a}]`), want: []string{podPath + `tolerations: desired [], live [{"key":"a"}]`}},
		{name: "defaults within a list", what: dep, desired: pod(`tolerations: [{key: a}]`), live: pod(`tolerations: [{key: a, operator: Equal}]`)},
		{name: "same name twice", what: dep, desired: pod(`containers: [{name: a, env: [{name: e, value: "1"}, {name: e, value: "2"}]}]`), live: pod(`containers: [{name: a, env: [{name: e, value: "1"}]}]`), want: []string{podPath + `containers[name="a"].env: desired [{"name":"e","value":"1"},{"name":"e","value":"2"}], live [{"name":"e","value":"1"}]`}},
		{name: "order of init containers", what: dep, desired: pod(`initContainers: [{name: a}, {name: b}]`), live: pod(`initContainers: [{name: b}, {name: s}, {name: a}]`), want: []string{podPath + `initContainers: desired ["name=\"a\"","name=\"b\""], live ["name=\"b\"","name=\"s\"","name=\"a\""]`}},
		{name: "custom lists by index", what: crd, desired: `{spec: {containers: [{name: a}]}}`, live: `{spec: {containers: [{name: b}, {name: a}]}}`, want: []string{`spec.containers: desired [{"name":"a"}], live [{"name":"b"},{"name":"a"}]`}},
		{name: "custom lists with keys", what: crd, desired: `{spec: {parts: [{id: 2}]}}`, live: `{spec: {parts: [{id: 1}, {id: 2}]}}`, ours: `{"f:spec": {"f:parts": {'k:{"id":2}': {".": {}, "f:id": {}}}}}`},
		{name: "custom sets", what: crd, desired: `{spec: {tags: [b]}}`, live: `{spec: {tags: [a, b, c]}}`, ours: `{"f:spec": {"f:tags": {'v:"b"': {}, 'v:"c"': {}}}}`, want: []string{`spec.tags["c"]: desired absent, live "c"`}},

		{name: "emptyDir replaced", what: dep, desired: pod(`volumes: [{name: v, emptyDir: {}}]`), live: pod(`volumes: [{name: v, hostPath: {path: /}}]`), want: []string{podPath + `volumes[name="v"].emptyDir: desired {}, live absent`}},
		{name: "a selector of everything", what: np, desired: `{spec: {ingress: [{from: [{namespaceSelector: {}}]}]}}`, live: `{spec: {ingress: [{from: [{podSelector: {}}]}]}}`, want: []string{`spec.ingress[0].from[0].namespaceSelector: desired {}, live absent`}},
		{name: "aggregated role", what: "rbac.authorization.k8s.io/v1 ClusterRole", desired: `{aggregationRule: {a: b}, rules: []}`, live: `{aggregationRule: {a: b}, rules: [{verbs: [get]}]}`},

		{name: "secret as text", what: sec, desired: `{stringData: {a: hello}}`, live: `{data: {a: aGVsbG8=}}`},
		{name: "text wins", what: sec, desired: `{data: {a: eA==}, stringData: {a: hello}}`, live: `{data: {a: aGVsbG8=}}`},
		{name: "line breaks", what: sec, desired: `{data: {a: "aGVs\nbG8=\n"}}`, live: `{data: {a: aGVsbG8=}}`},
		{name: "secret differs", what: sec, desired: `{stringData: {a: hello}, type: t}`, live: `{data: {a: eA==}, type: u}`, want: []string{`data.a: desired "(not shown)", live "(not shown)"`, `type: desired "t", live "u"`}},
		{name: "secret is empty", what: sec, desired: `{data: {a: eA==}}`, live: `{}`, want: []string{`data: desired "(not shown)", live absent`}},
		{name: "secret key removed", what: sec, desired: `{}`, live: `{data: {a: eA==}}`, ours: `{"f:data": {"f:a": {}}}`, want: []string{`data.a: desired absent, live "(not shown)"`}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			desired, live := parse(t, test.what, test.desired), parse(t, test.what, test.live)
			if test.ours != "" {
				owned(t, live, manager, "Apply", test.ours)
			}
			var got []string
			for _, d := range compare(t, comparer(t), desired, live).Differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestOthersFields: only what our manager applied counts as ours.
func TestOthersFields(t *testing.T) {
	desired, live := parse(t, "v1 ConfigMap", `{data: {a: b}}`), parse(t, "v1 ConfigMap", `{data: {a: b, c: d}}`)
	owned(t, live, "kubectl", "Apply", `{"f:data": {"f:c": {}}}`)
	owned(t, live, manager, "Update", `{"f:data": {"f:c": {}}}`)
	if r := compare(t, comparer(t), desired, live); !r.Equal {
		t.Error(r)
	}
}

func TestIgnore(t *testing.T) {
	const what = "apps/v1 Deployment"
	all := argo.ResourceIgnoreDifferences{Group: "apps", Kind: "Deployment"}
	pointers := func(list ...string) argo.ResourceIgnoreDifferences {
		r := all
		r.JSONPointers = list
		return r
	}
	named := pointers("/spec/replicas")
	named.Name = "y"
	managers := all
	managers.ManagedFieldsManagers = []string{"hpa"}
	anything := argo.ResourceIgnoreDifferences{Group: "*", Kind: "*", JSONPointers: []string{"/spec/replicas", "/metadata/annotations/a~1b"}}
	const (
		desired = `{metadata: {annotations: {a/b: c}}, spec: {replicas: 1, template: {spec: {containers: [{name: a, image: i, args: [p]}]}}}}`
		live    = `{metadata: {annotations: {a/b: d}}, spec: {replicas: 2, template: {spec: {containers: [{name: a, image: j, args: [p, q]}]}}}}`
	)
	annotation, replicas := `metadata.annotations["a/b"]`, "spec.replicas"
	image, args := `spec.template.spec.containers[name="a"].image`, `spec.template.spec.containers[name="a"].args`
	tests := map[string]struct {
		rule argo.ResourceIgnoreDifferences
		want []string
	}{
		"nothing":         {all, []string{annotation, replicas, args, image}},
		"another name":    {named, []string{annotation, replicas, args, image}},
		"pointers":        {pointers("/spec/replicas", "/spec/template/spec/containers/0/image"), []string{annotation, args}},
		"a whole element": {pointers("/spec/template/spec/containers/0"), []string{annotation, replicas}},
		"a whole branch":  {pointers("/spec", "/nothing/there", "/spec/x/0"), []string{annotation}},
		"any kind":        {anything, []string{args, image}},
		"managers":        {managers, []string{annotation, args}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			l := parse(t, what, live)
			owned(t, l, "hpa", "Update", `{"f:spec": {"f:replicas": {}, "f:template": {"f:spec": {"f:containers": {'k:{"name":"a"}': {".": {}, "f:name": {}, "f:image": {}}}}}}}`)
			var got []string
			for _, d := range compare(t, comparer(t, test.rule), parse(t, what, desired), l).Differences {
				got = append(got, d.Path)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestIgnoreRemovedField(t *testing.T) {
	live := parse(t, "v1 ConfigMap", `{data: {a: b}}`)
	owned(t, live, manager, "Apply", `{"f:data": {"f:a": {}}}`)
	c := comparer(t, argo.ResourceIgnoreDifferences{Kind: "ConfigMap", JSONPointers: []string{"/data/a"}})
	if r := compare(t, c, parse(t, "v1 ConfigMap", `{}`), live); !r.Equal {
		t.Error(r)
	}
}

func TestBadRules(t *testing.T) {
	tests := []struct {
		rule        argo.ResourceIgnoreDifferences
		field       string
		unsupported bool
	}{
		{argo.ResourceIgnoreDifferences{Kind: "A", JQPathExpressions: []string{".a"}}, "ignoreDifferences[0].jqPathExpressions", true},
		{argo.ResourceIgnoreDifferences{Kind: "A", JSONPointers: []string{"/a", "b"}}, "ignoreDifferences[0].jsonPointers[1]", false},
		{argo.ResourceIgnoreDifferences{}, "ignoreDifferences[0].kind", false},
	}
	for _, test := range tests {
		_, err := New(Options{Ignore: []argo.ResourceIgnoreDifferences{test.rule}})
		var fault *RuleError
		if !errors.As(err, &fault) || fault.Field != test.field || errors.Is(err, ErrUnsupported) != test.unsupported {
			t.Errorf("error %v", err)
		}
	}
}

func TestNotComparable(t *testing.T) {
	base := parse(t, "apps/v1 Deployment", `{}`)
	for name, change := range map[string]func(*unstructured.Unstructured){
		"version":   func(u *unstructured.Unstructured) { u.SetAPIVersion("apps/v1beta1") },
		"kind":      func(u *unstructured.Unstructured) { u.SetKind("StatefulSet") },
		"name":      func(u *unstructured.Unstructured) { u.SetName("y") },
		"namespace": func(u *unstructured.Unstructured) { u.SetNamespace("other") },
	} {
		other := base.DeepCopy()
		change(other)
		if _, err := comparer(t).Compare(base, other); !errors.Is(err, ErrNotComparable) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestSecretsAreNotShown(t *testing.T) {
	const canary, encoded = "c4n4ry-c4n4ry", "YzRuNHJ5LWM0bjRyeQ=="
	shapes := []string{
		`{stringData: {a: ` + canary + `}}`, `{data: {a: ` + encoded + `, b: [` + canary + `], c: {d: ` + canary + `}}}`,
		`{data: ` + canary + `}`, `{data: [` + canary + `]}`, `{data: {}}`, `{stringData: ` + canary + `}`,
		`{metadata: {annotations: {kubectl.kubernetes.io/last-applied-configuration: ` + canary + `}}}`,
	}
	for _, a := range shapes {
		for _, b := range shapes {
			live := parse(t, "v1 Secret", b)
			owned(t, live, manager, "Apply", `{"f:data": {"f:a": {}, "f:b": {}, "f:c": {"f:d": {}}}, "f:stringData": {}}`)
			r, err := comparer(t).Compare(parse(t, "v1 Secret", a), live)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			for _, shown := range []string{r.String(), string(text), fmt.Sprintf("%v %+v %#v", r, r, r)} {
				if strings.Contains(shown, canary) || strings.Contains(shown, encoded) {
					t.Errorf("%s and %s show %s", a, b, shown)
				}
			}
		}
	}
}

func TestHash(t *testing.T) {
	hash := func(c *Comparer, text string) Hash {
		h, err := c.Hash(parse(t, "v1 ConfigMap", text))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	plain, other := comparer(t), comparer(t, argo.ResourceIgnoreDifferences{Kind: "ConfigMap"})
	if hash(plain, `{data: {a: b, c: d}}`) != hash(comparer(t), `{data: {c: d, a: b}}`) {
		t.Error("the same object has two hashes")
	}
	if hash(plain, `{data: {a: b}}`) == hash(plain, `{data: {a: c}}`) || hash(plain, `{}`) == hash(other, `{}`) {
		t.Error("two comparisons have one hash")
	}
}
