// SPDX-License-Identifier: Apache-2.0

// Package engine holds engines to the contract of Argo CD's Application: a real
// control plane with nodes, a real Git server, and an engine between them.
package engine

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/config/install"
	"github.com/weir-gitops/weir/internal/backend/deployer"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/reconcile"
	"github.com/weir-gitops/weir/internal/engine/render"
	"github.com/weir-gitops/weir/internal/engine/source"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

var cluster *controlplane.Cluster

func TestMain(m *testing.M) {
	// The renderer starts this program again.
	if handled, code := render.ChildMain(context.Background(), os.Args, os.Stdin, os.Stdout); handled {
		os.Exit(code)
	}
	flag.Parse()
	if testing.Short() {
		fmt.Println("needs servers; skipped with -short")
		return
	}
	var err error
	if cluster, err = start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = cluster.Stop()
	os.Exit(code)
}

func start(ctx context.Context) (*controlplane.Cluster, error) {
	c, err := controlplane.Start(ctx)
	if err != nil {
		return nil, err
	}
	api, err := client.New(c.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return nil, err
	}
	crds, err := crd.All()
	if err != nil {
		return nil, err
	}
	if err := kube.InstallCRDs(ctx, api, crds); err != nil {
		return nil, err
	}
	objects, err := install.Objects()
	if err != nil {
		return nil, err
	}
	return c, kube.Install(ctx, api, objects...)
}

// world is an engine on its own namespace, with a tenant and a repository.
type world struct {
	*testing.T
	ctx            context.Context
	api            client.Client
	kubernetes     kubernetes.Interface
	engine, tenant string
	repository     *gitserve.Repository
	url            string
	stop           func()
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	w := &world{T: t, ctx: t.Context()}
	var err error
	w.api, err = client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	w.must(err)
	w.kubernetes, err = kubernetes.NewForConfig(cluster.Config)
	w.must(err)
	w.engine, w.tenant = w.namespace("engine-"), w.namespace("tenant-")
	w.serve(files)
	w.deployer()
	w.must(w.api.Create(w.ctx, &argo.AppProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.engine, Name: "tenant"},
		Spec: argo.AppProjectSpec{
			SourceRepos:  []string{w.url},
			Destinations: []argo.ApplicationDestination{{Server: "https://kubernetes.default.svc", Namespace: w.tenant}},
			DestinationServiceAccounts: []argo.DestinationServiceAccount{
				{Server: "https://kubernetes.default.svc", Namespace: w.tenant, DefaultServiceAccount: w.tenant + ":weir-deployer"},
			},
			NamespaceResourceBlacklist: []metav1.GroupKind{{Group: "rbac.authorization.k8s.io", Kind: "*"}},
		},
	}))
	w.startEngine()
	return w
}

func (w *world) namespace(prefix string) string {
	w.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	w.must(w.api.Create(w.ctx, ns))
	return ns.Name
}

func (w *world) serve(files map[string]string) {
	w.Helper()
	folder := filepath.Join(w.TempDir(), "app.git")
	var err error
	w.repository, err = gitserve.Create(w.ctx, folder, commit(files))
	w.must(err)
	server, err := gitserve.Listen(w.ctx, gitserve.Options{Root: filepath.Dir(folder), Address: "127.0.0.1:0"})
	w.must(err)
	w.url = server.URL("app.git")
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	go func() {
		defer close(done)
		_ = server.Run(ctx)
	}()
	w.Cleanup(func() {
		cancel()
		<-done
	})
}

func commit(files map[string]string) gitserve.Commit {
	return gitserve.Commit{Branch: "main", Message: "change", Files: files}
}

// deployer makes the service account as which the engine deploys.
func (w *world) deployer() {
	w.Helper()
	accounts := &deployer.Accounts{Client: w.api, Live: w.api, Role: deployer.DefaultRole}
	w.must(accounts.Ensure(w.ctx, "tenant", w.tenant))
}

// startEngine starts an engine, as after a restart: it remembers nothing.
func (w *world) startEngine() {
	w.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{AllowLoopback: true})
	w.must(err)
	git, err := source.New(ctx, source.Options{Folder: w.TempDir(), Dialer: dialer, AllowHTTP: true})
	w.must(err)
	e, err := reconcile.New(ctx, reconcile.Options{
		Config: cluster.Config, Namespace: w.engine, Source: git, Dialer: dialer, Health: health.New(nil),
		Render: render.NewCache(&render.Child{}, 100), Refresh: 2 * time.Second,
	})
	w.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx); err != nil {
			w.Errorf("the engine ended: %v", err)
		}
	}()
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
			_ = git.Close()
		}
	}
	w.Cleanup(func() { w.stop() })
}

func (w *world) application(name string, change ...func(*argo.ApplicationSpec)) *argo.Application {
	w.Helper()
	app := &argo.Application{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.engine, Name: name, Finalizers: []string{argo.ResourcesFinalizer}},
		Spec: argo.ApplicationSpec{
			Project:     "tenant",
			Source:      &argo.ApplicationSource{RepoURL: w.url, Path: "app", TargetRevision: "main"},
			Destination: argo.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: w.tenant},
			SyncPolicy:  &argo.SyncPolicy{Automated: &argo.SyncPolicyAutomated{Prune: true, SelfHeal: true}},
		},
	}
	for _, c := range change {
		c(&app.Spec)
	}
	w.must(w.api.Create(w.ctx, app))
	return app
}

func (w *world) await(app *argo.Application, what string, look func(*argo.Application) string) *argo.Application {
	w.Helper()
	latest := &argo.Application{}
	testkit.Eventually(w.T, what, func() string {
		latest = &argo.Application{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(app), latest))
		return look(latest)
	})
	return latest
}

func is(sync argo.SyncStatusCode, health argo.HealthStatusCode) func(*argo.Application) string {
	return func(app *argo.Application) string {
		if app.Status.Sync.Status != sync || app.Status.Health.Status != health {
			return fmt.Sprintf("%s %s; conditions %+v; operation %+v", app.Status.Sync.Status, app.Status.Health.Status, app.Status.Conditions, app.Status.OperationState)
		}
		return ""
	}
}

func (w *world) configMap(name string) map[string]string {
	w.Helper()
	m, err := w.kubernetes.CoreV1().ConfigMaps(w.tenant).Get(w.ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return m.Data
}

func (w *world) push(files map[string]string, removed ...string) string {
	w.Helper()
	c := commit(files)
	c.Removed = removed
	sha, err := w.repository.Commit(w.ctx, c)
	w.must(err)
	return sha
}

func (w *world) patch(app *argo.Application, text string) {
	w.Helper()
	target := &argo.Application{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	w.must(w.api.Patch(w.ctx, target, client.RawPatch(types.MergePatchType, []byte(text))))
}

const web = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: example.com/web}]}
`

func config(value string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {value: " + value + "}\n"
}

func sample() map[string]string {
	return map[string]string{"app/web.yaml": web, "app/settings.yaml": config("one")}
}

func Test01_AnAutomatedApplicationIsDeployedAndHealthy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sample())
	app := w.await(w.application("shop"), "deployed", is(argo.SyncStatusSynced, argo.HealthStatusHealthy))
	if len(app.Status.Resources) != 2 || app.Status.Sync.Revision == "" || len(app.Status.History) != 1 || app.Status.SourceType != "Directory" {
		t.Errorf("status: %+v", app.Status)
	}
	if got := w.configMap("settings"); got["value"] != "one" {
		t.Errorf("deployed %v", got)
	}
}

func Test03_ACommitGoesLiveAndWhatItRemovedIsPruned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sample())
	app := w.application("shop")
	w.await(app, "deployed", is(argo.SyncStatusSynced, argo.HealthStatusHealthy))
	sha := w.push(map[string]string{"app/settings.yaml": config("two")}, "app/web.yaml")
	w.await(app, "the commit is live", func(app *argo.Application) string {
		if app.Status.Sync.Revision != sha || w.configMap("settings")["value"] != "two" {
			return app.Status.Sync.Revision
		}
		if _, err := w.kubernetes.AppsV1().Deployments(w.tenant).Get(w.ctx, "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return "the Deployment is still there"
		}
		return is(argo.SyncStatusSynced, argo.HealthStatusHealthy)(app)
	})
}

func Test04_DeletedItTakesEverythingAlong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sample())
	app := w.application("shop")
	w.await(app, "deployed", is(argo.SyncStatusSynced, argo.HealthStatusHealthy))
	w.must(w.api.Delete(w.ctx, app))
	testkit.Eventually(t, "all gone", func() string {
		if err := w.api.Get(w.ctx, client.ObjectKeyFromObject(app), &argo.Application{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("the Application: %v", err)
		}
		if w.configMap("settings") != nil {
			return "the ConfigMap is there although the Application is gone"
		}
		return ""
	})
}

func Test53_WhatIsChangedOrDeletedByHandComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sample())
	app := w.application("shop")
	w.await(app, "deployed", is(argo.SyncStatusSynced, argo.HealthStatusHealthy))
	w.must(w.kubernetes.AppsV1().Deployments(w.tenant).Delete(w.ctx, "web", metav1.DeleteOptions{}))
	_, err := w.kubernetes.CoreV1().ConfigMaps(w.tenant).Patch(w.ctx, "settings", types.MergePatchType, []byte(`{"data":{"value":"by hand"}}`), metav1.PatchOptions{})
	w.must(err)
	w.await(app, "healed", func(app *argo.Application) string {
		if _, err := w.kubernetes.AppsV1().Deployments(w.tenant).Get(w.ctx, "web", metav1.GetOptions{}); err != nil {
			return err.Error()
		}
		if got := w.configMap("settings"); got["value"] != "one" {
			return fmt.Sprint(got)
		}
		return is(argo.SyncStatusSynced, argo.HealthStatusHealthy)(app)
	})
}

func Test19_AManualApplicationSyncsOnRequestAtItsRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sample())
	first, err := w.repository.Head(w.ctx, "main")
	w.must(err)
	w.push(map[string]string{"app/settings.yaml": config("two")})
	app := w.application("shop", func(s *argo.ApplicationSpec) { s.SyncPolicy = nil })
	w.await(app, "compared", is(argo.SyncStatusOutOfSync, argo.HealthStatusMissing))
	if w.configMap("settings") != nil {
		t.Fatal("it was deployed without being asked for")
	}
	w.patch(app, `{"operation":{"sync":{"revision":"`+first+`","prune":true},"info":[{"name":"who","value":"me"}]}}`)
	done := w.await(app, "synced", func(app *argo.Application) string {
		if s := app.Status.OperationState; s == nil || s.Phase != argo.OperationSucceeded {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if s := done.Status.OperationState; s.SyncResult.Revision != first || len(s.Operation.Info) != 1 || done.Operation != nil {
		t.Errorf("operation: %+v", s)
	}
	if got := w.configMap("settings"); got["value"] != "one" {
		t.Errorf("deployed %v", got)
	}
}

func Test21_ARunningSyncIsTerminated(t *testing.T) {
	t.Parallel()
	never := strings.Replace(web, "replicas: 2", "replicas: 2\n  minReadySeconds: 3600\n  progressDeadlineSeconds: 7200", 1)
	later := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: later, annotations: {argocd.argoproj.io/sync-wave: \"1\"}}\n"
	w := newWorld(t, map[string]string{"app/web.yaml": never, "app/later.yaml": later})
	app := w.application("shop", func(s *argo.ApplicationSpec) { s.SyncPolicy = nil })
	w.patch(app, `{"operation":{"sync":{}}}`)
	w.await(app, "it runs", func(app *argo.Application) string {
		if s := app.Status.OperationState; s == nil || s.Phase != argo.OperationRunning {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	// An engine that starts anew takes it up.
	w.stop()
	w.startEngine()
	w.patch(app, `{"status":{"operationState":{"phase":"Terminating"}}}`)
	w.await(app, "it has ended", func(app *argo.Application) string {
		if s := app.Status.OperationState; s.Phase != argo.OperationFailed {
			return fmt.Sprintf("%+v", s)
		}
		return ""
	})
	if w.configMap("later") != nil {
		t.Error("it went on")
	}
}

func Test14_WhatIsWrongIsACondition(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		files  map[string]string
		change func(*argo.ApplicationSpec)
		words  string
	}{
		"a path that is not there":       {sample(), func(s *argo.ApplicationSpec) { s.Source.Path = "nowhere" }, "nowhere"},
		"a revision that is not there":   {sample(), func(s *argo.ApplicationSpec) { s.Source.TargetRevision = "nowhere" }, "nowhere"},
		"a repository of somebody else":  {sample(), func(s *argo.ApplicationSpec) { s.Source.RepoURL += "-other" }, "not permitted"},
		"a namespace of somebody else":   {sample(), func(s *argo.ApplicationSpec) { s.Destination.Namespace = "default" }, "not permitted"},
		"an object in another namespace": {map[string]string{"app/a.yaml": strings.Replace(config("x"), "name: settings", "name: settings, namespace: default", 1)}, nil, "namespace default"},
		"an object without a namespace":  {map[string]string{"app/a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine}\n"}, nil, "does not permit"},
		"a kind that is denied":          {map[string]string{"app/a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: mine}\n"}, nil, "does not permit"},
		"a broken manifest":              {map[string]string{"app/a.yaml": "apiVersion: v1\nkind: [\n"}, nil, "a.yaml"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.files)
			change := c.change
			if change == nil {
				change = func(*argo.ApplicationSpec) {}
			}
			w.await(w.application("shop", change), "the condition", func(app *argo.Application) string {
				if len(app.Status.Conditions) == 0 || !strings.Contains(app.Status.Conditions[0].Message, c.words) {
					return fmt.Sprintf("%+v", app.Status.Conditions)
				}
				return ""
			})
			if w.configMap("settings") != nil {
				t.Error("something was deployed")
			}
		})
	}
}
