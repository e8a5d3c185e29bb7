// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/reconcile"
	"github.com/weir-gitops/weir/internal/engine/render"
	"github.com/weir-gitops/weir/internal/engine/source"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/tenantnet"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
)

// engineFlags say what the built-in engine needs.
type engineFlags struct {
	folder  string
	refresh time.Duration
	workers int
}

// newEngine is the command of the built-in engine. It has no database.
func newEngine() *cobra.Command {
	var (
		kubeconfig, namespace, probes string
		log                           telemetry.LogOptions
		tenancy                       tenancyFlags
		f                             engineFlags
	)
	c := &cobra.Command{
		Use:     "engine",
		GroupID: "roles",
		Short:   "Deploy Applications from Git, and keep them deployed",
		Long: `Deploy Applications from Git, and keep them deployed.

This is the built-in engine: it works on the Applications, AppProjects and Secrets
of one namespace as Argo CD would, and an agent with --engine builtin writes them.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return runEngine(c, kubeconfig, namespace, probes, log, tenancy, f)
		},
	}
	set := c.Flags()
	set.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: what kubectl would use, or the pod's service account")
	set.StringVar(&namespace, "engine-namespace", "argocd", "namespace of the Applications")
	set.StringVar(&f.folder, "git-cache", env("WEIR_GIT_CACHE", ""), "folder for clones of repositories; default: a temporary one (WEIR_GIT_CACHE)")
	set.DurationVar(&f.refresh, "refresh", 3*time.Minute, "how often Git is asked where nothing asks for it")
	set.IntVar(&f.workers, "workers", 4, "how many Applications are compared at once")
	set.StringVar(&probes, "probe-address", env("WEIR_PROBE_ADDRESS", ":8082"), "where /healthz, /readyz and /metrics are served (WEIR_PROBE_ADDRESS)")
	addLogFlags(set, &log, "json")
	tenancy.addNetwork(set)
	return c
}

func runEngine(c *cobra.Command, kubeconfig, namespace, probes string, logOptions telemetry.LogOptions, t tenancyFlags, f engineFlags) error {
	ctx := c.Context()
	log, err := telemetry.NewLogger(c.ErrOrStderr(), logOptions)
	if err != nil {
		return err
	}
	telemetry.BridgeKubernetes(log)
	p := &platform{log: log, registry: prometheus.NewRegistry()}
	if p.config, err = kube.LoadConfig(kubeconfig); err != nil {
		return err
	}
	if err := requireCRDs(ctx, p.config, crd.Argo); err != nil {
		return err
	}
	if f.folder == "" {
		f.folder = filepath.Join(defaultCache(), "weir-engine")
	}
	stop, err := p.addEngine(ctx, namespace, t, f)
	if err != nil {
		return err
	}
	server, err := telemetry.ListenProbes(ctx, probes, p.registry, p.checks)
	if err != nil {
		return errors.Join(err, stop())
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range append(p.runs, server.Run) {
		group.Go(func() error { return run(ctx) })
	}
	return errors.Join(group.Wait(), stop())
}

// addEngine puts the built-in engine among the roles. What it returns gives its
// clones back.
func (p *platform) addEngine(ctx context.Context, namespace string, t tenancyFlags, f engineFlags) (stop func() error, err error) {
	if err := t.read(); err != nil {
		return nil, err
	}
	dialer, err := tenantnet.NewDialer(t.network)
	if err != nil {
		return nil, err
	}
	folder, err := filepath.Abs(f.folder)
	if err != nil {
		return nil, err
	}
	git, err := source.New(ctx, source.Options{
		Folder: folder, Dialer: dialer, AllowHTTP: t.policy.AllowPlainHTTP, KnownHosts: t.knownHostText, AcceptAnyHostKey: t.anyHostKey,
	})
	if err != nil {
		return nil, fmt.Errorf("open the cache of repositories: %w", err)
	}
	log := p.log.With("role", "engine")
	e, err := reconcile.New(ctx, reconcile.Options{
		Config: p.config, Namespace: namespace, Source: git, Dialer: dialer, Health: health.New(nil),
		Render: render.NewCache(&render.Child{Log: log}, 1000), Refresh: f.refresh, Workers: f.workers, Log: log,
	})
	if err != nil {
		return nil, errors.Join(err, git.Close())
	}
	p.runs = append(p.runs, e.Run)
	for _, check := range e.Checks() {
		p.checks = append(p.checks, telemetry.Check{Name: check.Name, Check: check.Check})
	}
	return git.Close, nil
}

// defaultCache is where this user's caches are.
func defaultCache() string {
	if dir, err := os.UserCacheDir(); err == nil {
		return dir
	}
	return os.TempDir()
}
