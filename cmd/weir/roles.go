// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/internal/agent"
	"github.com/weir-gitops/weir/internal/backend"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// newBackend is the command of the role between tenants and database.
func newBackend() *cobra.Command {
	var f roleFlags
	var tenancy tenancyFlags
	c := &cobra.Command{
		Use:     "backend",
		GroupID: "roles",
		Short:   "Take tenants' resources in, and show them their status",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runRole(c, f, crd.Tenant, func(ctx context.Context, p *platform) error {
				return p.addBackend(ctx, tenancy, f.workers, f.perWorkspace)
			})
		},
	}
	f.add(c.Flags())
	tenancy.add(c.Flags())
	return c
}

// newAgent is the command of the role beside an engine instance.
func newAgent() *cobra.Command {
	var f roleFlags
	var namespace, kind string
	c := &cobra.Command{
		Use:     "agent",
		GroupID: "roles",
		Short:   "Make a GitOps engine follow the database, and report its status",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			engine, err := engineKind(kind)
			if err != nil {
				return err
			}
			return runRole(c, f, crd.Argo, func(ctx context.Context, p *platform) error {
				return p.addAgent(ctx, namespace, engine, f.workers, f.perWorkspace)
			})
		},
	}
	f.add(c.Flags())
	addEngineFlags(c, &namespace, &kind, store.EngineArgoCD)
	return c
}

func addEngineFlags(c *cobra.Command, namespace, kind *string, fallback store.EngineKind) {
	c.Flags().StringVar(namespace, "engine-namespace", "argocd", "namespace of the engine instance")
	c.Flags().StringVar(kind, "engine", string(fallback), "what works there: argocd, builtin, or none")
	_ = c.RegisterFlagCompletionFunc("engine", cobra.FixedCompletions([]string{"argocd", "builtin", "none"}, cobra.ShellCompDirectiveNoFileComp))
}

func engineKind(s string) (store.EngineKind, error) {
	switch k := store.EngineKind(s); k {
	case store.EngineArgoCD, store.EngineBuiltIn, store.EngineNone:
		return k, nil
	default:
		return "", fmt.Errorf("--engine %q: use argocd, builtin or none", s)
	}
}

// platform is what the roles of one process share.
type platform struct {
	log      *slog.Logger
	registry *prometheus.Registry
	hops     *telemetry.Hops
	queues   *fairq.Metrics
	config   *rest.Config
	db       *database
	sealer   *seal.Sealer

	runs   []func(context.Context) error
	checks []telemetry.Check
}

// newPlatform connects to the cluster and the database, and says clearly what
// is missing.
func newPlatform(ctx context.Context, w io.Writer, f roleFlags, required ...func() ([]*apiextensionsv1.CustomResourceDefinition, error)) (*platform, error) {
	log, err := telemetry.NewLogger(w, f.log)
	if err != nil {
		return nil, err
	}
	telemetry.BridgeKubernetes(log)
	p := &platform{log: log, registry: prometheus.NewRegistry(), queues: fairq.NewMetrics()}
	p.registry.MustRegister(p.queues, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	p.hops = telemetry.NewHops(p.registry)
	if p.config, err = kube.LoadConfig(f.kubeconfig); err != nil {
		return nil, err
	}
	if err := requireCRDs(ctx, p.config, required...); err != nil {
		return nil, err
	}
	p.config.Wrap(telemetry.CountRequests(p.registry))
	if p.db, err = openDatabase(ctx, f.database, log, p.registry); err != nil {
		return nil, err
	}
	p.runs = append(p.runs, p.db.notifier.Run)
	if p.sealer, err = openSealer(ctx, f.keyRing, p.config, p.db); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func requireCRDs(ctx context.Context, config *rest.Config, required ...func() ([]*apiextensionsv1.CustomResourceDefinition, error)) error {
	c, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return fmt.Errorf("connect to Kubernetes: %w", err)
	}
	for _, load := range append(required, crd.Operation) {
		crds, err := load()
		if err != nil {
			return err
		}
		if err := kube.RequireCRDs(ctx, c, crds); err != nil {
			return err
		}
	}
	return nil
}

func (p *platform) addBackend(ctx context.Context, t tenancyFlags, workers, perWorkspace int) error {
	if err := t.read(); err != nil {
		return err
	}
	dialer, err := tenantnet.NewDialer(t.network)
	if err != nil {
		return err
	}
	b, err := backend.New(ctx, backend.Options{
		Config: p.config, Store: p.db, Notifier: p.db.notifier,
		Policy: t.policy, Quotas: t.quotas, SyncRunTTL: t.syncRunTTL, DeployerRole: t.deployerRole,
		Sealer: p.sealer, Dialer: dialer, SSH: backend.SSHHosts{Known: t.knownHostText, AcceptAny: t.anyHostKey},
		Workers: workers, PerWorkspace: perWorkspace,
		Log: p.log.With("role", "backend"), Hops: p.hops, Queues: p.queues,
	})
	if err != nil {
		return err
	}
	p.runs = append(p.runs, b.Run)
	p.checks = append(p.checks, b.Checks()...)
	return nil
}

func (p *platform) addAgent(ctx context.Context, namespace string, kind store.EngineKind, workers, perWorkspace int) error {
	a, err := agent.New(ctx, agent.Options{
		Config: p.config, Store: p.db, Notifier: p.db.notifier, Namespace: namespace, Kind: kind, Sealer: p.sealer,
		Workers: workers, PerWorkspace: perWorkspace,
		Log: p.log.With("role", "agent"), Hops: p.hops, Queues: p.queues,
	})
	if err != nil {
		return err
	}
	p.runs = append(p.runs, a.Run)
	p.checks = append(p.checks, a.Checks()...)
	return nil
}

// run serves the probes and runs every role until the context ends or one
// fails.
func (p *platform) run(ctx context.Context, probeAddress string) error {
	probes, err := telemetry.ListenProbes(ctx, probeAddress, p.registry, p.checks)
	if err != nil {
		return err
	}
	p.log.InfoContext(ctx, "weir runs", "version", version, "probes", probes.Address())
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range append(p.runs, probes.Run) {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

func (p *platform) close() error { return p.db.Close() }

// runRole is one role alone in its process.
func runRole(c *cobra.Command, f roleFlags, required func() ([]*apiextensionsv1.CustomResourceDefinition, error), add func(context.Context, *platform) error) error {
	ctx := c.Context()
	p, err := newPlatform(ctx, c.ErrOrStderr(), f, required)
	if err != nil {
		return err
	}
	if err := add(ctx, p); err != nil {
		return errors.Join(err, p.close())
	}
	return errors.Join(p.run(ctx, f.probes), p.close())
}
