// SPDX-License-Identifier: Apache-2.0

// Package backend is the role between the tenants and the database: truth
// flowing down on hop 1 (package intake), status flowing up on hop 6 (package
// project), and healing of what was missed (packages heal and outbox).
//
//	watch on CRs ──┐
//	notifications ─┼─▶ fair queue ─▶ intake step ─▶ rows, Operation CR, CR status
//	sweeps ────────┘
//
// Everything that happens to a deployment goes through that one queue under
// one key, so its steps never overlap, whatever caused them.
package backend

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/deployer"
	"github.com/weir-gitops/weir/internal/backend/heal"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/backend/outbox"
	"github.com/weir-gitops/weir/internal/backend/project"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// Options are what a backend needs.
type Options struct {
	Config   *rest.Config
	Store    store.Store
	Notifier notify.Notifier
	Policy   intake.Policy
	Quotas   intake.Quotas
	// SyncRunTTL is how long a GitOpsDeploymentSyncRun stays once it has ended.
	SyncRunTTL time.Duration
	// Sealer encrypts tenants' credentials.
	Sealer intake.Sealer
	// Dialer reaches what tenants name.
	Dialer *tenantnet.Dialer
	// GitAuthorities sign the certificates of Git servers; nil for the system's.
	GitAuthorities *x509.CertPool
	// SSH says which hosts of SSH repositories are known.
	SSH SSHHosts
	// DeployerRole is the ClusterRole of the service accounts as which engines
	// deploy into tenants' namespaces.
	DeployerRole string

	// Workers is how many steps run at once, PerWorkspace how many of one tenant.
	Workers      int
	PerWorkspace int

	Log    *slog.Logger
	Hops   *telemetry.Hops
	Queues *fairq.Metrics
}

// SSHHosts are the SSH servers that are who they say.
type SSHHosts struct {
	// Known is the content of a known_hosts file; AcceptAny counts where it is empty.
	Known     []byte
	AcceptAny bool
}

// Backend is the role, put together.
type Backend struct {
	options Options
	mgr     manager.Manager
	cluster *cluster
	steps   *intake.Deployments
	runs    *intake.SyncRuns
	// environments and credentials go out to what tenants name.
	environments *intake.Environments
	credentials  *intake.Credentials
	background   *background

	events  *project.Unhurried
	outbox  *outbox.Outbox
	links   *heal.Links
	crLinks *heal.CRLinks
	// queue is set, and then started closed, once the controller has one.
	queue   atomic.Pointer[kube.Queue]
	started chan struct{}
	synced  atomic.Bool
	// finished holds a token while finished operations may wait for collection.
	finished chan struct{}
}

// eventsAfter is how long events wait for what tenants wait for.
const eventsAfter = 250 * time.Millisecond

// New puts a backend together. Nothing runs before Run.
func New(ctx context.Context, o Options) (*Backend, error) {
	mgr, err := manager.New(o.Config, manager.Options{
		Scheme:  kube.NewScheme(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultTransform: cache.TransformStripManagedFields()},
	})
	if err != nil {
		return nil, fmt.Errorf("connect to Kubernetes: %w", err)
	}
	if err := addIndexes(ctx, mgr.GetCache()); err != nil {
		return nil, err
	}
	if err := kube.WatchAll(ctx, mgr.GetCache(), append(tenantKinds(), kube.NamespaceMetadata())...); err != nil {
		return nil, err
	}
	b := &Backend{options: o, mgr: mgr, started: make(chan struct{}), finished: make(chan struct{}, 1)}
	b.cluster = &cluster{cached: mgr.GetClient(), live: mgr.GetAPIReader()}
	b.outbox = &outbox.Outbox{Client: mgr.GetClient(), Store: o.Store, Log: o.Log}
	b.events = project.NewUnhurried(mgr.GetEventRecorder("weir"), eventsAfter)
	accounts := &deployer.Accounts{Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Role: o.DeployerRole}
	if err := accounts.Check(ctx); err != nil {
		return nil, err
	}
	b.steps = &intake.Deployments{
		Cluster:   b.cluster,
		Store:     timedStore{o.Store, o.Hops},
		Deployers: accounts,
		Outbox:    timedOutbox{b.outbox, o.Hops},
		Status:    timedStatus{&project.Deployments{Client: mgr.GetClient().Status(), Events: b.events, Now: time.Now}, o.Hops},
		Policy:    o.Policy,
		Quotas:    o.Quotas,
		NewID:     domain.NewOperationID,
		Log:       o.Log,
	}
	b.runs = &intake.SyncRuns{
		Cluster: b.cluster, Store: timedStore{o.Store, o.Hops}, Outbox: timedOutbox{b.outbox, o.Hops},
		Status: &project.SyncRuns{Client: mgr.GetClient().Status(), Events: b.events, Now: time.Now},
		Quotas: o.Quotas, TTL: o.SyncRunTTL, NewID: domain.NewOperationID, Now: time.Now, Log: o.Log,
	}
	if err := b.addOutreach(ctx); err != nil {
		return nil, err
	}
	b.crLinks = &heal.CRLinks{Store: o.Store, UID: b.cluster.uidOf, Enqueue: b.enqueueKind, Log: o.Log}
	b.links = &heal.Links{Store: o.Store, Lookup: b.cluster.Deployment, Enqueue: b.enqueueDeployment, Log: o.Log}
	if err := b.addController(ctx); err != nil {
		return nil, err
	}
	return b, errors.Join(mgr.Add(manager.RunnableFunc(b.sweep)), mgr.Add(manager.RunnableFunc(b.collect)), mgr.Add(manager.RunnableFunc(b.events.Run)))
}

// Run works until the context ends. It begins once notifications flow, because
// only what changes after that is certain to be told.
func (b *Backend) Run(ctx context.Context) error {
	defer b.background.stop()
	select {
	case <-ctx.Done():
		return nil
	case <-b.options.Notifier.Ready():
		return b.mgr.Start(ctx)
	}
}

// Checks say what /readyz asks.
func (b *Backend) Checks() []telemetry.Check {
	return []telemetry.Check{
		{Name: "backend: kubernetes", Check: kube.Answers(b.options.Config)},
		{Name: "backend: database", Check: b.options.Store.Ping},
		{Name: "backend: notifications", Check: func(context.Context) error { return b.options.Notifier.Healthy() }},
		{Name: "backend: caches", Check: func(context.Context) error {
			if !b.synced.Load() {
				return errors.New("not read yet")
			}
			return nil
		}},
	}
}

// The runners beside those of package fairq.
const (
	runnerEnvironment = "environment"
	runnerCredential  = "credential"
)

// step is what the controller runs for each key.
func (b *Backend) step(ctx context.Context, key fairq.Key) error {
	if key.Runner == runnerOutbox {
		return b.outbox.Check(ctx, domain.OperationID(key.Application))
	}
	return b.options.Hops.Time(telemetry.HopIntake, func() error {
		switch key.Runner {
		case fairq.RunnerSyncRun:
			return b.runs.Step(ctx, key.Workspace, key.Application)
		case runnerEnvironment:
			err := b.environments.Step(ctx, key.Workspace, key.Application)
			b.enqueueListed(ctx, &v1alpha1.GitOpsDeploymentList{}, fairq.RunnerDeployment,
				client.InNamespace(key.Workspace), client.MatchingFields{environmentIndex: key.Application})
			return err
		case runnerCredential:
			return b.credentials.Step(ctx, key.Workspace, key.Application)
		default:
			return b.stepDeployment(ctx, key.Workspace, key.Application)
		}
	})
}

// stepDeployment also wakes the runs that waited for the deployment to be taken
// in.
func (b *Backend) stepDeployment(ctx context.Context, namespace, name string) error {
	err := b.steps.Step(ctx, namespace, name)
	b.enqueueSyncRunsOf(ctx, namespace, name)
	return err
}

func work(key fairq.Key) telemetry.Work {
	w := telemetry.Work{Namespace: key.Workspace, Name: key.Application}
	switch key.Runner {
	case runnerOutbox:
		return telemetry.Work{Operation: key.Application}
	case fairq.RunnerSyncRun:
		w.Kind = "GitOpsDeploymentSyncRun"
	case runnerEnvironment:
		w.Kind = "GitOpsDeploymentManagedEnvironment"
	case runnerCredential:
		w.Kind = "GitOpsDeploymentRepositoryCredential"
	default:
		w.Kind = "GitOpsDeployment"
	}
	return w
}
