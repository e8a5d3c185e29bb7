// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/diff"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/render"
	gitsource "github.com/weir-gitops/weir/internal/engine/source"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// Options are what an engine needs.
type Options struct {
	// Config is the cluster with the Applications, which is also the one that they
	// call https://kubernetes.default.svc. Namespace is theirs.
	Config    *rest.Config
	Namespace string

	Source *gitsource.Cache
	Render render.Renderer
	Health health.Assessor
	// Dialer reaches other clusters.
	Dialer *tenantnet.Dialer

	// Refresh is how often Git is asked where nothing asks for it; default 3 minutes.
	Refresh time.Duration
	// Workers is how many comparisons run at once; default 4.
	Workers int
	// SyncTimeout ends a sync; default 30 minutes.
	SyncTimeout time.Duration
	Log         *slog.Logger
}

func (o Options) withDefaults() Options {
	if o.Refresh <= 0 {
		o.Refresh = 3 * time.Minute
	}
	if o.Workers <= 0 {
		o.Workers = 4
	}
	if o.SyncTimeout <= 0 {
		o.SyncTimeout = 30 * time.Minute
	}
	if o.Health == nil {
		o.Health = health.New(nil)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

// Engine keeps the Applications of one namespace deployed.
type Engine struct {
	options      Options
	mgr          manager.Manager
	client       client.Client
	destinations *destinations
	commits      commits
	healths      healths
	equals       *diff.Cache
	syncs        *syncs
	again        chan event.GenericEvent
	cancel       context.CancelFunc
	// read says that the caches have been read.
	read atomic.Bool
}

// New puts an engine together. Nothing runs before Run.
func New(ctx context.Context, o Options) (*Engine, error) {
	o = o.withDefaults()
	if o.Source == nil || o.Render == nil || o.Dialer == nil {
		return nil, errors.New("an engine needs a source, a renderer and a dialer")
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(argo.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	typed, err := labels.Parse(argo.SecretTypeLabel)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(o.Config, manager.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			// Only what engines read as configuration.
			ByObject: map[client.Object]cache.ByObject{&corev1.Secret{}: {Label: typed}},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	e := &Engine{
		options: o, mgr: mgr, client: mgr.GetClient(), equals: diff.NewCache(mostKnown), commits: commits{every: o.Refresh},
		again: make(chan event.GenericEvent, 1024), cancel: cancel,
	}
	e.syncs = &syncs{ctx: ctx, timeout: o.SyncTimeout}
	e.destinations = &destinations{local: o.Config, dialer: o.Dialer, secrets: e.secrets(argo.SecretTypeCluster), changed: e.enqueue, ctx: ctx}
	err = errors.Join(e.addController(), mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		e.read.Store(mgr.GetCache().WaitForCacheSync(ctx))
		return nil
	})))
	if err != nil {
		cancel()
		return nil, err
	}
	return e, nil
}

// Run works until the context ends. Syncs that run then are cut short, and taken up
// again by the next engine.
func (e *Engine) Run(ctx context.Context) error {
	defer func() {
		e.cancel()
		e.syncs.wait.Wait()
	}()
	return e.mgr.Start(ctx)
}

// enqueue has an application looked at.
func (e *Engine) enqueue(app string) {
	o := &argo.Application{ObjectMeta: metav1.ObjectMeta{Namespace: e.options.Namespace, Name: app}}
	select {
	case e.again <- event.GenericEvent{Object: o}:
	case <-e.syncs.ctx.Done():
	}
}

func (e *Engine) addController() error {
	skip := true
	c, err := controller.New("engine", e.mgr, controller.Options{
		MaxConcurrentReconciles: e.options.Workers, SkipNameValidation: &skip, Reconciler: reconcile.Func(e.reconcile),
	})
	if err != nil {
		return err
	}
	all := handler.TypedEnqueueRequestsFromMapFunc[*argo.AppProject](func(ctx context.Context, p *argo.AppProject) []reconcile.Request {
		return e.requests(ctx, func(app *argo.Application) bool { return app.Spec.Project == p.Name })
	})
	secrets := handler.TypedEnqueueRequestsFromMapFunc[*corev1.Secret](func(ctx context.Context, s *corev1.Secret) []reconcile.Request {
		return e.requests(ctx, func(app *argo.Application) bool {
			return len(s.Data["project"]) == 0 || app.Spec.Project == string(s.Data["project"])
		})
	})
	return errors.Join(
		c.Watch(source.Kind(e.mgr.GetCache(), &argo.Application{}, &handler.TypedEnqueueRequestForObject[*argo.Application]{}, meaningful())),
		c.Watch(source.Kind(e.mgr.GetCache(), &argo.AppProject{}, all)),
		c.Watch(source.Kind(e.mgr.GetCache(), &corev1.Secret{}, secrets)),
		c.Watch(source.Channel(e.again, &handler.EnqueueRequestForObject{})),
	)
}

// meaningful leaves out the engine's own writes of status.
func meaningful() predicate.TypedPredicate[*argo.Application] {
	return predicate.TypedFuncs[*argo.Application]{UpdateFunc: func(ev event.TypedUpdateEvent[*argo.Application]) bool {
		before, after := ev.ObjectOld, ev.ObjectNew
		return before.Generation != after.Generation && !sameSpec(before, after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			after.Annotations[argo.RefreshAnnotation] != "" && before.Annotations[argo.RefreshAnnotation] == "" ||
			after.Operation != nil && before.Operation == nil ||
			phaseOf(before) != phaseOf(after) && phaseOf(after) == argo.OperationTerminating
	}}
}

func phaseOf(app *argo.Application) argo.OperationPhase {
	if app.Status.OperationState == nil {
		return ""
	}
	return app.Status.OperationState.Phase
}

func (e *Engine) requests(ctx context.Context, which func(*argo.Application) bool) []reconcile.Request {
	var apps argo.ApplicationList
	if err := e.client.List(ctx, &apps, client.InNamespace(e.options.Namespace)); err != nil {
		return nil
	}
	var out []reconcile.Request
	for i := range apps.Items {
		if which(&apps.Items[i]) {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&apps.Items[i])})
		}
	}
	return out
}

// secrets lists the Secrets that are configuration of one kind.
func (e *Engine) secrets(kind string) func(context.Context) ([]corev1.Secret, error) {
	return func(ctx context.Context) ([]corev1.Secret, error) {
		var list corev1.SecretList
		err := e.client.List(ctx, &list, client.InNamespace(e.options.Namespace), client.MatchingLabels{argo.SecretTypeLabel: kind})
		return list.Items, err
	}
}

// repository gives an Application's repository, with the credential that its
// project has for it.
func (e *Engine) repository(ctx context.Context, app *argo.Application) (gitsource.Repo, error) {
	repo := gitsource.Repo{Project: app.Spec.Project, URL: app.Spec.Source.RepoURL}
	secrets, err := e.secrets(argo.SecretTypeRepository)(ctx)
	if err != nil {
		return repo, err
	}
	for _, s := range secrets {
		if !sameRepository(string(s.Data["url"]), repo.URL) || len(s.Data["project"]) > 0 && string(s.Data["project"]) != app.Spec.Project {
			continue
		}
		repo.Credential = gitremote.Credential{
			Username: string(s.Data["username"]), Password: string(s.Data["password"]), SSHPrivateKey: string(s.Data["sshPrivateKey"]),
		}
		break
	}
	return repo, nil
}

// project gives an Application's project, if it lets the Application be.
func (e *Engine) project(ctx context.Context, app *argo.Application) (*argo.AppProject, error) {
	p := &argo.AppProject{}
	err := e.client.Get(ctx, client.ObjectKey{Namespace: e.options.Namespace, Name: app.Spec.Project}, p)
	if apierrors.IsNotFound(err) {
		return nil, &problem{conditionInvalidSpec, fmt.Sprintf("project %s does not exist", app.Spec.Project)}
	}
	if err != nil {
		return nil, err
	}
	if refused := checkProject(p, app); refused != "" {
		return nil, &problem{conditionInvalidSpec, refused}
	}
	return p, nil
}
