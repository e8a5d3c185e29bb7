// SPDX-License-Identifier: Apache-2.0

// Package agent is the role beside an engine instance: truth flowing down on hop
// 2 (package operate), status flowing up on hop 5 (package observe), and healing
// of what was missed (package heal).
//
//	watch on Operations ───┐
//	watch on Applications ─┼─▶ fair queue ─▶ operate step ─▶ Application, AppProject, Secret, operation row
//	sweeps ────────────────┘          └────▶ observe step ─▶ application state row
//
// Keys are (tenant, resource, runner): operating on an application and observing
// it run independently, each never twice at once.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/agent/heal"
	"github.com/weir-gitops/weir/internal/agent/observe"
	"github.com/weir-gitops/weir/internal/agent/operate"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// Options are what an agent needs.
type Options struct {
	Config *rest.Config
	Store  store.Store
	// Notifier tells of operations before their CRs arrive.
	Notifier notify.Notifier
	// Sealer opens tenants' credentials; nil for an agent without a key ring.
	Sealer operate.Opener
	// Namespace is the engine instance's namespace, Kind what works in it.
	Namespace string
	Kind      store.EngineKind

	Workers      int
	PerWorkspace int

	Log    *slog.Logger
	Hops   *telemetry.Hops
	Queues *fairq.Metrics
}

// Agent is the role, put together.
type Agent struct {
	options  Options
	mgr      manager.Manager
	instance store.Instance
	engine   *engineNamespace
	operate  *operate.Steps
	observe  *observe.Steps
	rows     *heal.Rows
	// queue is set once the controller has started.
	queue  atomic.Pointer[kube.Queue]
	synced atomic.Bool
}

// New puts an agent together and registers its engine instance. Nothing runs
// before Run.
func New(ctx context.Context, o Options) (*Agent, error) {
	ours, err := labels.Parse(argov1alpha1.ApplicationLabel)
	if err != nil {
		return nil, err
	}
	tenants, err := labels.Parse(argov1alpha1.TenantLabel)
	if err != nil {
		return nil, err
	}
	mgr, err := manager.New(o.Config, manager.Options{
		Scheme:  kube.NewScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform:  cache.TransformStripManagedFields(),
			DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
			ByObject: map[client.Object]cache.ByObject{
				// What does not carry our label is none of our business.
				&argov1alpha1.Application{}: {Label: ours},
				&argov1alpha1.AppProject{}:  {Label: tenants},
				&corev1.Secret{}:            {Label: tenants},
			},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	if err := mgr.GetCache().IndexField(ctx, &operationv1alpha1.Operation{}, resourceIndex, indexResource); err != nil {
		return nil, fmt.Errorf("index Operations: %w", err)
	}
	if err := mgr.GetCache().IndexField(ctx, &argov1alpha1.Application{}, tenantIndex, indexTenant); err != nil {
		return nil, fmt.Errorf("index Applications: %w", err)
	}
	if err := kube.WatchAll(ctx, mgr.GetCache(),
		&operationv1alpha1.Operation{}, &argov1alpha1.Application{}, &argov1alpha1.AppProject{}, &corev1.Secret{}); err != nil {
		return nil, err
	}
	a := &Agent{options: o, mgr: mgr}
	if a.instance, err = register(ctx, mgr.GetAPIReader(), o); err != nil {
		return nil, err
	}
	if err := checkIsolation(ctx, mgr.GetAPIReader(), o.Namespace, o.Kind); err != nil {
		return nil, err
	}
	a.engine = &engineNamespace{namespace: o.Namespace, cached: mgr.GetClient(), live: mgr.GetAPIReader()}
	a.operate = &operate.Steps{
		Engine: a.engine, Store: o.Store, Syncs: o.Store, Sealer: o.Sealer, Instance: a.instance, Log: o.Log,
		Projects: &operate.Projects{Engine: a.engine, Store: o.Store, Instance: a.instance},
	}
	a.observe = observe.NewSteps(a.engine, o.Store, o.Log)
	a.rows = &heal.Rows{Store: o.Store, Engine: a.engine, Instance: a.instance, NewID: domain.NewOperationID, Log: o.Log}
	if err := a.addController(); err != nil {
		return nil, err
	}
	return a, mgr.Add(manager.RunnableFunc(a.sweep))
}

// register makes the database know the instance by the UIDs of its cluster and
// its namespace.
func register(ctx context.Context, r client.Reader, o Options) (store.Instance, error) {
	cluster, err := kube.ReadNamespace(ctx, "kube-system", r)
	if err != nil {
		return store.Instance{}, fmt.Errorf("identify the cluster: %w", unreachable(err))
	}
	ns, err := kube.ReadNamespace(ctx, o.Namespace, r)
	if errors.Is(err, domain.ErrNotFound) {
		return store.Instance{}, fmt.Errorf("the engine's namespace %q does not exist: create it, or name another with --engine-namespace", o.Namespace)
	}
	if err != nil {
		return store.Instance{}, fmt.Errorf("identify the engine instance: %w", err)
	}
	i := store.Instance{ID: domain.InstanceID(ns.UID), Cluster: domain.ClusterID(cluster.UID), Namespace: o.Namespace, Kind: o.Kind}
	if err := o.Store.RegisterEngine(ctx, i); err != nil {
		return i, fmt.Errorf("register the engine instance: %w", err)
	}
	return i, nil
}

func unreachable(err error) error {
	var answered apierrors.APIStatus
	if errors.As(err, &answered) {
		return err
	}
	return fmt.Errorf("%w: %w", domain.ErrUnavailable, err)
}

// Run works until the context ends.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.observe.Recall(ctx, a.instance.ID); err != nil {
		return fmt.Errorf("read what has been observed before: %w", err)
	}
	return a.mgr.Start(ctx)
}

// Checks say what /readyz asks.
func (a *Agent) Checks() []telemetry.Check {
	return []telemetry.Check{
		{Name: "agent: kubernetes", Check: kube.Answers(a.options.Config)},
		{Name: "agent: database", Check: a.options.Store.Ping},
		{Name: "agent: notifications", Check: func(context.Context) error { return a.options.Notifier.Healthy() }},
		{Name: "agent: caches", Check: func(context.Context) error {
			if !a.synced.Load() {
				return errors.New("not read yet")
			}
			return nil
		}},
	}
}

// runnerObserve is the runner that takes an Application's status in; the other
// runners are the resource types of operations.
const runnerObserve = "observe"

// step is what the controller runs for each key.
func (a *Agent) step(ctx context.Context, key fairq.Key) error {
	if key.Runner == runnerObserve {
		return a.options.Hops.Time(telemetry.HopObserve, func() error {
			return a.observe.Step(ctx, domain.ApplicationID(key.Application))
		})
	}
	err := a.options.Hops.Time(telemetry.HopOperate, func() error {
		return a.operate.Step(ctx, domain.ResourceType(key.Runner), key.Application)
	})
	if err == nil && key.Runner == string(domain.ResourceApplication) {
		a.observeAgain(key)
	}
	if err == nil && key.Runner == string(domain.ResourceSyncOperation) && !a.operate.SyncWaits(domain.SyncOperationID(key.Application)) {
		// It is over, and another may have waited for that.
		a.enqueueSyncs(key.Workspace, "", key.Application)
	}
	return err
}

// observeAgain has the engine's present status stored, although it was before:
// the row may have been made anew, from a database that had lost it.
func (a *Agent) observeAgain(key fairq.Key) {
	if q := a.queue.Load(); q != nil {
		a.observe.Forget(domain.ApplicationID(key.Application))
		key.Runner = runnerObserve
		(*q).Add(key)
	}
}

func work(key fairq.Key) telemetry.Work {
	w := telemetry.Work{Tenant: key.Workspace, UID: key.Application, Kind: key.Runner}
	if key.Runner == runnerObserve {
		w.Kind = string(domain.ResourceApplication)
	}
	return w
}
