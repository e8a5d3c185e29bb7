// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"sigs.k8s.io/yaml"

	"github.com/weir-gitops/weir/internal/engine/apply"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/plan"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

var control *controlplane.Cluster

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("needs servers; skipped with -short")
		return
	}
	var err error
	if control, err = controlplane.Start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = control.Stop()
	os.Exit(code)
}

// world is a namespace in a real cluster, with nodes on which pods run.
type world struct {
	*apply.Cluster
	t         *testing.T
	api       kubernetes.Interface
	namespace string
}

func newWorld(t *testing.T, change ...func(*rest.Config)) *world {
	t.Helper()
	api, err := kubernetes.NewForConfig(control.Config)
	must(t, err)
	ns, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}, metav1.CreateOptions{})
	must(t, err)
	config := rest.CopyConfig(control.Config)
	for _, c := range change {
		c(config)
	}
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(api.Discovery()))
	return &world{
		Cluster: &apply.Cluster{Client: client, Mapper: mapper, Health: health.New(nil), Manager: "weir"},
		t:       t, api: api, namespace: ns.Name,
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// objects reads manifests; those with a namespace are put into the world's.
func (w *world) objects(text string) []*plan.Object {
	w.t.Helper()
	var all []*plan.Object
	for i, doc := range strings.Split(text, "\n---\n") {
		o := &unstructured.Unstructured{}
		must(w.t, yaml.Unmarshal([]byte(doc), &o.Object))
		if o.GetKind() != "Namespace" && o.GetKind() != "ClusterRole" {
			o.SetNamespace(w.namespace)
		}
		all = append(all, plan.NewObject(o, fmt.Sprintf("manifest %d", i)))
	}
	return all
}

func (w *world) build(desired, live []*plan.Object, options plan.Options) *plan.Plan {
	w.t.Helper()
	options.Namespace, options.RunID = w.namespace, "run-1"
	p, err := plan.Build(desired, live, options)
	must(w.t, err)
	return p
}

func (w *world) run(p *plan.Plan) apply.Outcome {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	o, err := w.Run(ctx, p, nil)
	must(w.t, err)
	return o
}

// live gives the objects as the cluster has them.
func (w *world) live(keys ...*plan.Object) []*plan.Object {
	w.t.Helper()
	var all []*plan.Object
	for _, k := range keys {
		kind := k.Unstructured().GroupVersionKind()
		mapping, err := w.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
		must(w.t, err)
		o, err := w.Client.Resource(mapping.Resource).Namespace(w.namespace).Get(w.t.Context(), k.Key().Name, metav1.GetOptions{})
		must(w.t, err)
		all = append(all, plan.NewObject(o, "live"))
	}
	return all
}

const waves = `apiVersion: v1
kind: ConfigMap
metadata: {name: first}
data: {a: "1"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: example.com/web}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: last, annotations: {argocd.argoproj.io/sync-wave: "2"}}`

func TestWavesWaitForHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desired := w.objects(waves)
	var order []string
	o, err := w.Run(t.Context(), w.build(desired, nil, plan.Options{}), func(r apply.Result) {
		order = append(order, r.Key.Name)
		if r.Key.Name == "last" {
			d, err := w.api.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || d.Status.AvailableReplicas != 2 {
				t.Errorf("the last wave began before the one before it was healthy: %+v, %v", d.Status, err)
			}
		}
	})
	must(t, err)
	if diff := cmp.Diff([]string{"first", "web", "last"}, order); diff != "" || o.Phase != "Succeeded" {
		t.Errorf("%s: %s; order (-want +got):\n%s", o.Phase, o.Message, diff)
	}
}

func TestApplyingTwiceChangesNothingAndLeavesWhatOthersSet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desired := w.objects(waves)
	p := w.build(desired, nil, plan.Options{})
	w.run(p)
	maps := w.api.CoreV1().ConfigMaps(w.namespace)
	other, err := maps.Get(t.Context(), "first", metav1.GetOptions{})
	must(t, err)
	other.Data["b"] = "another's"
	_, err = maps.Update(t.Context(), other, metav1.UpdateOptions{FieldManager: "another"})
	must(t, err)
	before, err := maps.Get(t.Context(), "first", metav1.GetOptions{})
	must(t, err)
	w.run(p)
	after, err := maps.Get(t.Context(), "first", metav1.GetOptions{})
	must(t, err)
	if before.ResourceVersion != after.ResourceVersion || after.Data["b"] != "another's" {
		t.Errorf("applied again it changed: %+v", after)
	}
}

func TestPruneNeedsTheUIDThatWasSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desired := w.objects(waves)
	w.run(w.build(desired, nil, plan.Options{}))
	live := w.live(desired...)
	p := w.build(desired[:1], live, plan.Options{Prune: true})

	// Somebody replaces one of those that are to go.
	maps := w.api.CoreV1().ConfigMaps(w.namespace)
	must(t, maps.Delete(t.Context(), "last", metav1.DeleteOptions{}))
	_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "last"}}, metav1.CreateOptions{})
	must(t, err)

	if o := w.run(p); o.Phase != "Succeeded" {
		t.Fatalf("%s: %s", o.Phase, o.Message)
	}
	if _, err := w.api.AppsV1().Deployments(w.namespace).Get(t.Context(), "web", metav1.GetOptions{}); err == nil {
		t.Error("the Deployment was not pruned")
	}
	if _, err := maps.Get(t.Context(), "last", metav1.GetOptions{}); err != nil {
		t.Errorf("another object under the same name was pruned: %v", err)
	}
}

func hook(phase, name string, fails bool) string {
	text := fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {argocd.argoproj.io/hook: %s, argocd.argoproj.io/hook-delete-policy: HookSucceeded}}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {localkube.weir.dev/fail: "%t"}}
    spec: {restartPolicy: Never, containers: [{name: c, image: example.com/job}]}`, name, phase, fails)
	return text
}

func TestHooksRunAndGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.run(w.build(w.objects(hook("PreSync", "before", false)+"\n---\n"+waves+"\n---\n"+hook("PostSync", "after", false)), nil, plan.Options{}))
	if o.Phase != "Succeeded" {
		t.Fatalf("%s: %s", o.Phase, o.Message)
	}
	hooks := map[string]string{}
	for _, r := range o.Results {
		if r.Hook != "" {
			hooks[r.Key.Name] = string(r.Hook)
		}
	}
	if diff := cmp.Diff(map[string]string{"before": "Succeeded", "after": "Succeeded"}, hooks); diff != "" {
		t.Errorf("hooks (-want +got):\n%s", diff)
	}
	for _, name := range []string{"before", "after"} {
		if job, err := w.api.BatchV1().Jobs(w.namespace).Get(t.Context(), name, metav1.GetOptions{}); err == nil && job.DeletionTimestamp == nil {
			t.Errorf("hook %s was left behind", name)
		}
	}
}

func TestAFailedHookStopsTheSyncAndRunsSyncFail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.run(w.build(w.objects(hook("PreSync", "before", true)+"\n---\n"+waves+"\n---\n"+hook("SyncFail", "repair", false)), nil, plan.Options{}))
	if o.Phase != "Failed" || !strings.Contains(o.Message, "before") {
		t.Errorf("%s: %s", o.Phase, o.Message)
	}
	if _, err := w.api.CoreV1().ConfigMaps(w.namespace).Get(t.Context(), "first", metav1.GetOptions{}); err == nil {
		t.Error("it went on after its first hook had failed")
	}
	repaired := false
	for _, r := range o.Results {
		repaired = repaired || r.Key.Name == "repair" && r.Hook == "Succeeded"
	}
	if !repaired {
		t.Errorf("the hook for failures did not run: %+v", o.Results)
	}
}

// All that is wrong is told at once, and nothing after it begins.
func TestWhatIsRefusedIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	o := w.run(w.build(w.objects(`apiVersion: v1
kind: Service
metadata: {name: bad}
spec: {ports: [{port: 99999}]}
---
apiVersion: example.com/v1
kind: Widget
metadata: {name: unknown}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: good}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: later, annotations: {argocd.argoproj.io/sync-wave: "1"}}`), nil, plan.Options{}))
	if o.Phase != "Failed" || !strings.Contains(o.Message, "and 1 more") {
		t.Errorf("%s: %s", o.Phase, o.Message)
	}
	status := map[string]string{}
	for _, r := range o.Results {
		status[r.Key.Name] = r.Status
	}
	if diff := cmp.Diff(map[string]string{"bad": "SyncFailed", "unknown": "SyncFailed", "good": "Synced"}, status); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

// The cluster itself holds the line: as somebody without rights, nothing is
// written.
func TestTheClientDecidesAsWhom(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *rest.Config) {
		c.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:nowhere:weir-deployer"}
	})
	o := w.run(w.build(w.objects(waves), nil, plan.Options{}))
	if o.Phase != "Failed" || !strings.Contains(o.Message, "forbidden") {
		t.Errorf("%s: %s", o.Phase, o.Message)
	}
	_, err := w.api.RbacV1().RoleBindings(w.namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "deployer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: "system:serviceaccount:nowhere:weir-deployer"}},
	}, metav1.CreateOptions{})
	must(t, err)
	deadline := time.Now().Add(20 * time.Second)
	for o.Phase != "Succeeded" && time.Now().Before(deadline) {
		o = w.run(w.build(w.objects(waves), nil, plan.Options{}))
	}
	if o.Phase != "Succeeded" {
		t.Errorf("with a role: %s: %s", o.Phase, o.Message)
	}
}

func TestForceMakesAgainWhatCannotBeChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	desired := w.objects(waves)
	w.run(w.build(desired, nil, plan.Options{}))
	changed := w.objects(strings.ReplaceAll(waves, "app: web", "app: other"))
	if o := w.run(w.build(changed, w.live(desired...), plan.Options{})); o.Phase != "Failed" {
		t.Errorf("an immutable field was changed: %s", o.Message)
	}
	if o := w.run(w.build(changed, w.live(desired...), plan.Options{Force: true})); o.Phase != "Succeeded" {
		t.Errorf("%s: %s", o.Phase, o.Message)
	}
}

// A run that was cut short goes on when it is run again.
func TestARunCutShortIsResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.build(w.objects(hook("PreSync", "before", false)+"\n---\n"+waves), nil, plan.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	o, err := w.Run(ctx, p, func(apply.Result) { cancel() })
	if !errors.Is(err, context.Canceled) || o.Phase != "Error" || o.Message != "terminated" {
		t.Fatalf("%v, %s: %s", err, o.Phase, o.Message)
	}
	if o := w.run(p); o.Phase != "Succeeded" {
		t.Errorf("%s: %s", o.Phase, o.Message)
	}
}

func TestNothingRunsOn(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	never := strings.ReplaceAll(waves, "replicas: 2", "replicas: 2\n  minReadySeconds: 3600\n  progressDeadlineSeconds: 7200")
	_, err := w.Run(ctx, w.build(w.objects(never), nil, plan.Options{}), nil)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a wave that never becomes healthy: %v", err)
	}
	goleak.VerifyNone(t, goleak.IgnoreTopFunction("internal/poll.runtime_pollWait"), goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*clientConnReadLoop).run"),
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"), goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).run"),
		goleak.IgnoreAnyFunction("k8s.io/client-go/transport.(*dynamicClientCert).Run"), goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("testing.(*T).Run"), goleak.IgnoreAnyFunction("testing.tRunner"))
}
