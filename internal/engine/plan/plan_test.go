// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// with changes an object that a test makes.
type with func(*unstructured.Unstructured)

func annotated(pairs ...string) with {
	return func(u *unstructured.Unstructured) {
		a := u.GetAnnotations()
		if a == nil {
			a = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			a[pairs[i]] = pairs[i+1]
		}
		u.SetAnnotations(a)
	}
}

func wave(n string) with { return annotated(waveAnnotation, n) }

func hook(text string) with { return annotated(hookAnnotation, text) }

func options(text string) with { return annotated(optionsAnnotation, text) }

// object makes one from "Kind name" or "group/version Kind name".
func object(what string, changes ...with) *Object {
	parts := strings.Fields(what)
	apiVersion := "v1"
	if len(parts) == 3 {
		apiVersion, parts = parts[0], parts[1:]
	}
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": parts[0]}}
	u.SetName(parts[1])
	if parts[0] != "Namespace" {
		u.SetNamespace("ns")
	}
	for _, change := range changes {
		change(u)
	}
	return NewObject(u, parts[1]+".yaml")
}

func objects(list ...*Object) []*Object { return list }

// outline is a plan as short lines: phase, wave, action, kind and name.
func outline(p *Plan) []string {
	var lines []string
	for _, phase := range p.Phases {
		for _, wave := range phase.Waves {
			for _, step := range wave.Steps {
				lines = append(lines, fmt.Sprintf("%s %d %s %s %s", phase.Name, wave.Number, step.Action, step.Key.Kind, step.Key.Name))
			}
		}
	}
	return lines
}

func mustBuild(t *testing.T, desired, live []*Object, opts Options) *Plan {
	t.Helper()
	p, err := Build(desired, live, opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestBuild(t *testing.T) {
	config := func(name string, changes ...with) *Object { return object("ConfigMap "+name, changes...) }
	tests := map[string]struct {
		desired, live []*Object
		opts          Options
		want          []string
	}{
		"nothing": {},
		"create, apply, prune": {
			desired: objects(config("new"), config("old")),
			live:    objects(config("old"), config("gone")),
			opts:    Options{Prune: true},
			want: []string{
				"Sync 0 Create ConfigMap new", "Sync 0 Apply ConfigMap old", "Sync 0 Prune ConfigMap gone",
			},
		},
		"kinds before names": {
			desired: objects(
				object("example.com/v1 Widget a"), object("apps/v1 Deployment b"), object("Service c"), config("d"),
				object("rbac.authorization.k8s.io/v1 RoleBinding e"), object("rbac.authorization.k8s.io/v1 Role f"),
				object("ServiceAccount g"), object("apiextensions.k8s.io/v1 CustomResourceDefinition h"), object("Namespace i"),
				object("admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration j"), object("batch/v1 Job k"),
				object("networking.k8s.io/v1 Ingress l"), object("example.com/v1 Service m"),
			),
			want: []string{
				"Sync 0 Create Namespace i", "Sync 0 Create CustomResourceDefinition h", "Sync 0 Create ServiceAccount g",
				"Sync 0 Create Role f", "Sync 0 Create RoleBinding e", "Sync 0 Create ConfigMap d", "Sync 0 Create Service c",
				"Sync 0 Create Deployment b", "Sync 0 Create Job k", "Sync 0 Create Ingress l", "Sync 0 Create Service m",
				"Sync 0 Create Widget a", "Sync 0 Create ValidatingWebhookConfiguration j",
			},
		},
		"waves before kinds, prunes backwards": {
			desired: objects(config("late", wave("2")), object("apps/v1 Deployment early", wave("-3")), config("mid")),
			live:    objects(config("p1", wave("1")), config("p2", wave("2")), config("p0"), object("apps/v1 Deployment p0", wave("0"))),
			opts:    Options{Prune: true},
			want: []string{
				"Sync -3 Create Deployment early", "Sync 0 Create ConfigMap mid", "Sync 2 Create ConfigMap late",
				"Sync 2 Prune ConfigMap p2", "Sync 1 Prune ConfigMap p1", "Sync 0 Prune Deployment p0", "Sync 0 Prune ConfigMap p0",
			},
		},
		"hooks in their phases": {
			desired: objects(config("a"), object("batch/v1 Job pre", hook("PreSync")), object("batch/v1 Job both", hook("Sync, PostSync")),
				object("batch/v1 Job fail", hook("SyncFail")), object("batch/v1 Job gone", hook("PostDelete")), config("never", hook("Skip"))),
			live: objects(object("batch/v1 Job pre", hook("PreSync"))),
			want: []string{
				"PreSync 0 DeleteHook Job pre", "PreSync 0 RunHook Job pre",
				"Sync 0 Create ConfigMap a", "Sync 0 Skip ConfigMap never", "Sync 0 RunHook Job both",
				"PostSync 0 DeleteHook Job both", "PostSync 0 RunHook Job both",
				"SyncFail 0 RunHook Job fail", "PostDelete 0 RunHook Job gone",
			},
		},
		"a policy other than the default leaves the old hook to its end": {
			desired: objects(object("batch/v1 Job a", hook("PreSync"), annotated(deletePolicyAnnotation, "HookSucceeded"))),
			live:    objects(object("batch/v1 Job a", hook("PreSync"))),
			want:    []string{"PreSync 0 RunHook Job a"},
		},
		"live hooks are not pruned": {
			desired: objects(config("a")),
			live:    objects(object("batch/v1 Job old", hook("PreSync")), object("batch/v1 Job odd", hook("Whenever"))),
			opts:    Options{Prune: true},
			want:    []string{"Sync 0 Create ConfigMap a"},
		},
		"helm hooks": {
			desired: objects(
				object("batch/v1 Job pre", annotated(helmHookAnnotation, "pre-install,pre-upgrade", helmWeightAnnotation, "-5")),
				object("batch/v1 Job post", annotated(helmHookAnnotation, "post-upgrade")),
				object("Pod test", annotated(helmHookAnnotation, "test")),
				object("apiextensions.k8s.io/v1 CustomResourceDefinition crd", annotated(helmHookAnnotation, "crd-install")),
				object("batch/v1 Job argo", hook("PostSync"), annotated(helmHookAnnotation, "pre-install")),
			),
			want: []string{
				"PreSync -5 RunHook Job pre", "Sync 0 Create CustomResourceDefinition crd", "Sync 0 Skip Pod test",
				"PostSync 0 RunHook Job argo", "PostSync 0 RunHook Job post",
			},
		},
		"protected": {
			desired: objects(config("a")),
			live: objects(config("p", options("Prune=false")), config("d", options("Validate=false, Delete=false")),
				config("h", annotated(helmResourceAnnotation, "keep")), config("c", options("Prune=confirm")), config("x")),
			opts: Options{Prune: true},
			want: []string{
				"Sync 0 Create ConfigMap a", "Sync 0 Prune ConfigMap x", "Sync 0 Skip ConfigMap p", "Sync 0 Skip ConfigMap h",
				"Sync 0 Skip ConfigMap d", "Sync 0 Skip ConfigMap c",
			},
		},
		"a bad wave in the cluster takes no protection away": {
			desired: objects(config("a")),
			live:    objects(config("p", options("Prune=false"), wave("x"))),
			opts:    Options{Prune: true},
			want:    []string{"Sync 0 Create ConfigMap a", "Sync 0 Skip ConfigMap p"},
		},
		"pruning is off": {
			desired: objects(config("a")), live: objects(config("b")),
			want: []string{"Sync 0 Create ConfigMap a", "Sync 0 Skip ConfigMap b"},
		},
		"the namespace first": {
			desired: objects(config("a"), object("Namespace aaa", hook("PreSync"), wave("-2"))),
			opts:    Options{CreateNamespace: true, Namespace: "dest"},
			want:    []string{"PreSync -2 Create Namespace dest", "PreSync -2 RunHook Namespace aaa", "Sync 0 Create ConfigMap a"},
		},
		"Git's namespace is the one": {
			desired: objects(object("Namespace dest")), opts: Options{CreateNamespace: true, Namespace: "dest"},
			want: []string{"Sync 0 Create Namespace dest"},
		},
		"replace": {
			desired: objects(config("a", options("Replace=true")), config("b"), config("c", options("Replace=true"))),
			live:    objects(config("a"), config("b")),
			want:    []string{"Sync 0 Replace ConfigMap a", "Sync 0 Apply ConfigMap b", "Sync 0 Create ConfigMap c"},
		},
		"only what is out of sync": {
			desired: objects(config("a"), config("b"), object("batch/v1 Job h", hook("Sync"))), live: objects(config("a"), config("b")),
			opts: Options{ApplyOutOfSyncOnly: true, InSync: map[Key]bool{{Kind: "ConfigMap", Namespace: "ns", Name: "a"}: true}},
			want: []string{"Sync 0 Skip ConfigMap a", "Sync 0 Apply ConfigMap b", "Sync 0 RunHook Job h"},
		},
		"some resources": {
			desired: objects(config("a"), config("b"), object("batch/v1 Job h", hook("PreSync"))), live: objects(config("c"), config("d")),
			opts: Options{Prune: true, Resources: []Key{{Kind: "ConfigMap", Name: "a"}, {Kind: "ConfigMap", Namespace: "ns", Name: "c"}, {Kind: "ConfigMap", Namespace: "other", Name: "b"}}},
			want: []string{
				"PreSync 0 Skip Job h", "Sync 0 Create ConfigMap a", "Sync 0 Skip ConfigMap b", "Sync 0 Skip ConfigMap d", "Sync 0 Prune ConfigMap c",
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			p := mustBuild(t, test.desired, test.live, test.opts)
			if diff := cmp.Diff(test.want, outline(p)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFuses(t *testing.T) {
	var live []*Object
	for i := range 10 {
		live = append(live, object(fmt.Sprintf("ConfigMap c%d", i)))
	}
	hookOnly := objects(object("batch/v1 Job h", hook("PreSync")))
	tests := map[string]struct {
		desired []*Object
		opts    Options
		want    *Blocked
	}{
		"empty":               {nil, Options{}, &Blocked{Fuse: FuseEmpty, Count: 10, Live: 10}},
		"only hooks":          {hookOnly, Options{}, &Blocked{Fuse: FuseEmpty, Count: 10, Live: 10}},
		"empty is allowed":    {nil, Options{AllowEmpty: true}, nil},
		"allowed, not beyond": {nil, Options{AllowEmpty: true, Budget: Budget{MaxShare: 0.9}}, &Blocked{Fuse: FuseShare, Count: 10, Live: 10}},
		"count":               {live[:4], Options{Budget: Budget{MaxCount: 5}}, &Blocked{Fuse: FuseCount, Count: 6, Live: 10}},
		"count is met":        {live[:5], Options{Budget: Budget{MaxCount: 5}}, nil},
		"share":               {live[:4], Options{Budget: Budget{MaxShare: 0.5}}, &Blocked{Fuse: FuseShare, Count: 6, Live: 10}},
		"share is met":        {live[:5], Options{Budget: Budget{MaxShare: 0.5}}, nil},
		"floor":               {live[:4], Options{Budget: Budget{MaxShare: 0.5, MaxCount: 1, Floor: 6}}, nil},
		"no floor for empty":  {nil, Options{Budget: Budget{Floor: 100}}, &Blocked{Fuse: FuseEmpty, Count: 10, Live: 10}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			test.opts.Prune = true
			p := mustBuild(t, test.desired, live, test.opts)
			prunes := strings.Count(strings.Join(outline(p), "\n"), " Prune ")
			if test.want == nil {
				if p.Blocked != nil || prunes == 0 {
					t.Fatalf("blocked %+v, %d prunes", p.Blocked, prunes)
				}
				return
			}
			if p.Blocked == nil || prunes != 0 {
				t.Fatalf("blocked %+v, %d prunes, want none and %+v", p.Blocked, prunes, test.want)
			}
			if !strings.Contains(p.String(), p.Blocked.Reason) {
				t.Errorf("the text does not say why:\n%s", p)
			}
			got := *p.Blocked
			got.Reason = ""
			if diff := cmp.Diff(test.want, &got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestErrorsNameTheObject(t *testing.T) {
	unnamed := func(u *unstructured.Unstructured) { u.SetName(""); u.SetGenerateName("gen-") }
	tests := map[string]struct {
		desired []*Object
		want    string
	}{
		"wave":          {objects(object("ConfigMap a", wave("one"))), `ConfigMap ns/a (a.yaml): argocd.argoproj.io/sync-wave: "one" is no whole number: use one such as "-1" or "5"`},
		"wave overflow": {objects(object("ConfigMap a", wave("99999999999"))), `ConfigMap ns/a (a.yaml): argocd.argoproj.io/sync-wave: "99999999999" is no whole number: use one such as "-1" or "5"`},
		"hook":          {objects(object("ConfigMap a", hook("Sometime"))), `ConfigMap ns/a (a.yaml): argocd.argoproj.io/hook: "Sometime" is no hook: use PreSync, Sync, PostSync, SyncFail, PostDelete or Skip`},
		"policy":        {objects(object("ConfigMap a", hook("Sync"), annotated(deletePolicyAnnotation, "Never"))), `ConfigMap ns/a (a.yaml): argocd.argoproj.io/hook-delete-policy: "Never" is no delete policy: use HookSucceeded, HookFailed or BeforeHookCreation`},
		"generateName":  {objects(object("ConfigMap a", unnamed)), `ConfigMap ns/gen-… (a.yaml): metadata.generateName: works for hooks only: give it a metadata.name`},
		"duplicate":     {objects(NewObject(object("ConfigMap a").content, "z.yaml"), object("ConfigMap a")), `ConfigMap ns/a is there twice, in a.yaml and in z.yaml: remove one of them`},
		"several": {objects(object("ConfigMap b", wave("x")), object("ConfigMap a", wave("y"))), `ConfigMap ns/a (a.yaml): argocd.argoproj.io/sync-wave: "y" is no whole number: use one such as "-1" or "5"
ConfigMap ns/b (b.yaml): argocd.argoproj.io/sync-wave: "x" is no whole number: use one such as "-1" or "5"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Build(test.desired, nil, Options{RunID: "1"})
			if !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestGeneratedNames(t *testing.T) {
	job := func(image string) *Object {
		o := object("batch/v1 Job x", hook("PreSync"))
		o.content.SetName("")
		o.content.SetGenerateName(strings.Repeat("long-", 20))
		o.content.Object["spec"] = map[string]any{"image": image}
		return NewObject(o.content, image)
	}
	names := func(run string) []string {
		p := mustBuild(t, objects(job("a"), job("b")), nil, Options{RunID: run})
		var names []string
		for _, step := range p.Steps() {
			if step.Object.Unstructured().GetName() != step.Key.Name || step.Object.Unstructured().GetGenerateName() != "" {
				t.Errorf("the object's name is not %s", step.Key)
			}
			if len(step.Key.Name) > 63 {
				t.Errorf("the name %s is too long", step.Key.Name)
			}
			names = append(names, step.Key.Name)
		}
		return names
	}
	first, second := names("1"), names("2")
	if first[0] == first[1] || first[0] == second[0] || first[0] == second[1] {
		t.Errorf("names clash: %v %v", first, second)
	}
	if diff := cmp.Diff(first, names("1")); diff != "" {
		t.Error(diff)
	}
	if _, err := Build(objects(job("a"), job("a")), nil, Options{RunID: "1"}); !errors.As(err, new(*DuplicateError)) {
		t.Errorf("error %v", err)
	}
}

func TestPruneLastWaitsForHealth(t *testing.T) {
	desired := objects(object("ConfigMap a"))
	live := objects(object("ConfigMap b"), object("ConfigMap c", options("PruneLast=true")))
	p := mustBuild(t, desired, live, Options{Prune: true})
	var got []string
	for _, w := range p.Phases[0].Waves {
		got = append(got, fmt.Sprint(w.Prunes, w.AfterHealthy, w.Steps[0].Key.Name))
	}
	if diff := cmp.Diff([]string{"false falsea", "true falseb", "true truec"}, got); diff != "" {
		t.Error(diff)
	}
	p = mustBuild(t, desired, live[:1], Options{Prune: true, PruneLast: true})
	if w := p.Phases[0].Waves[1]; !w.Prunes || !w.AfterHealthy {
		t.Errorf("%+v", w)
	}
}

func TestFlags(t *testing.T) {
	desired := objects(
		object("ConfigMap a", options("Force=true,SkipDryRunOnMissingResource=true,Validate=false")),
		object("ConfigMap b", options("ServerSideApply=false")))
	p := mustBuild(t, desired, nil, Options{ServerSideApply: true})
	a, b := p.Phases[0].Waves[0].Steps[0], p.Phases[0].Waves[0].Steps[1]
	if !a.Force || !a.SkipDryRunOnMissingResource || !a.SkipValidation || !a.ServerSideApply {
		t.Errorf("%+v", a)
	}
	if b.Force || b.SkipDryRunOnMissingResource || b.SkipValidation || b.ServerSideApply {
		t.Errorf("%+v", b)
	}
}

func TestAddSyncOptions(t *testing.T) {
	var got Options
	got.Prune = true
	err := got.AddSyncOptions([]string{
		"CreateNamespace=true", "PruneLast=true", "ApplyOutOfSyncOnly=true", "Replace=true", "Force=false", "ServerSideApply=true",
		"SkipDryRunOnMissingResource=true", "Validate=false", "PrunePropagationPolicy=background", "Prune=false",
		"FailOnSharedResource=true", "RespectIgnoreDifferences=true",
	})
	if err != nil {
		t.Fatal(err)
	}
	want := Options{
		CreateNamespace: true, PruneLast: true, ApplyOutOfSyncOnly: true, Replace: true, ServerSideApply: true,
		SkipDryRunOnMissingResource: true, SkipValidation: true, PropagationPolicy: "background",
		FailOnSharedResource: true, RespectIgnoreDifferences: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []string{"Prunelast=true", "PruneLast", "PruneLast=yes", "PrunePropagationPolicy=none", ""} {
		var option *OptionError
		if err := new(Options).AddSyncOptions([]string{bad}); !errors.As(err, &option) || option.Option != bad {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}

func TestBuildDelete(t *testing.T) {
	p, err := BuildDelete(
		objects(object("ConfigMap a"), object("batch/v1 Job bye", hook("PostDelete,PreSync"))),
		objects(object("ConfigMap a"), object("ConfigMap b", wave("1")), object("ConfigMap keep", options("Delete=false")),
			object("ConfigMap p", options("Prune=false")), object("batch/v1 Job bye", hook("PostDelete,PreSync")), object("batch/v1 Job old", hook("PreSync"))),
		Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Sync 1 Prune ConfigMap b", "Sync 0 Prune Job old", "Sync 0 Prune ConfigMap p", "Sync 0 Skip ConfigMap keep", "Sync 0 Prune ConfigMap a",
		"PostDelete 0 DeleteHook Job bye", "PostDelete 0 RunHook Job bye",
	}
	if diff := cmp.Diff(want, outline(p)); diff != "" {
		t.Error(diff)
	}
}

func TestWarnings(t *testing.T) {
	p := mustBuild(t, nil, nil, Options{CreateNamespace: true, Resources: []Key{{Kind: "ConfigMap", Name: "typo"}}})
	want := []string{
		"CreateNamespace=true has no effect: the destination names no namespace",
		"to be synced, but neither in Git nor in the cluster: ConfigMap typo",
	}
	if diff := cmp.Diff(want, p.Warnings); diff != "" {
		t.Error(diff)
	}
}

func TestNothingShowsContent(t *testing.T) {
	const canary = "c4n4ry"
	secret := object("Secret s")
	secret.content.Object["data"] = map[string]any{"password": canary}
	p := mustBuild(t, objects(secret), objects(secret, NewObject(secret.content.DeepCopy(), "")), Options{})
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	step := p.Phases[0].Waves[0].Steps[0]
	object, err := json.Marshal(step.Object)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(text) + string(object) + p.String()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d"} {
		shown += fmt.Sprintf(verb, p) + fmt.Sprintf(verb, step) + fmt.Sprintf(verb, step.Object)
	}
	if strings.Contains(shown, canary) {
		t.Errorf("shows content:\n%s", shown)
	}
	if !strings.Contains(string(text), `{"action":"Apply","object":{"kind":"Secret","namespace":"ns","name":"s"},"reason":"may differ from Git"}`) {
		t.Errorf("JSON is %s", text)
	}
}

func TestText(t *testing.T) {
	p := mustBuild(t,
		objects(object("ConfigMap a"), object("batch/v1 Job j", hook("SyncFail"), annotated(deletePolicyAnnotation, "HookSucceeded"))),
		objects(object("ConfigMap b")), Options{Prune: true, ServerSideApply: true})
	want := `Sync
  wave 0
    Create     ConfigMap ns/a: not in the cluster [server-side apply]
  wave 0, prune
    Prune      ConfigMap ns/b: no longer in Git
SyncFail (only if the sync fails)
  wave 0
    RunHook    Job.batch ns/j: SyncFail hook [server-side apply, delete: HookSucceeded]
`
	if diff := cmp.Diff(want, p.String()); diff != "" {
		t.Error(diff)
	}
	if p.Changes() != 2 {
		t.Errorf("%d changes", p.Changes())
	}
}
