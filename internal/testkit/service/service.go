// SPDX-License-Identifier: Apache-2.0

// Package service runs Weir's backend and agent inside a test, on a real
// control plane and a real database, so that a test can stop and start either
// and look into every layer.
package service

import (
	"context"
	"crypto/x509"
	"database/sql"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/agent"
	"github.com/weir-gitops/weir/internal/backend"
	"github.com/weir-gitops/weir/internal/backend/deployer"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/notify"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/store/sqlite"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// Database is one of the kinds of database that Weir runs on.
type Database struct {
	Name string
	// open gives a store and a notifier on a fresh database; raw opens the same
	// database for looking into and for breaking by hand.
	open func(t *testing.T) opened
}

type opened struct {
	store    store.Store
	notifier func(*slog.Logger) notify.Notifier
	raw      *sql.DB
}

// Databases are the kinds that every behaviour has to hold on.
func Databases() []Database {
	return []Database{{Name: "sqlite", open: openSQLite}, {Name: "postgres", open: openPostgres}}
}

func openSQLite(t *testing.T) opened {
	file := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.OpenAndMigrate(t.Context(), file)
	must(t, err)
	raw, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=foreign_keys(1)")
	must(t, err)
	return opened{store: s, raw: raw, notifier: func(l *slog.Logger) notify.Notifier {
		return notify.NewInProcess(s, s.OnCommit, notify.Options{Log: l})
	}}
}

func openPostgres(t *testing.T) opened {
	dsn := pg.Shared(t).NewDatabase(t)
	s, err := postgres.OpenAndMigrate(t.Context(), dsn)
	must(t, err)
	raw, err := sql.Open("pgx", dsn)
	must(t, err)
	return opened{store: s, raw: raw, notifier: func(l *slog.Logger) notify.Notifier {
		return notify.NewListening(notify.From(s.Listen), s, notify.Options{Log: l})
	}}
}

// Service is Weir inside a test.
type Service struct {
	Store store.Store
	// Raw is the database itself, for looking into.
	Raw *sql.DB
	// EngineNamespace is where Operations and Applications are.
	EngineNamespace string

	t       *testing.T
	config  *rest.Config
	kind    store.EngineKind
	open    opened
	options options
	log     *slog.Logger
	ring    *seal.File
	hops    *telemetry.Hops
	queues  *fairq.Metrics
	backend *role
	agent   *role
}

// Option makes a service other than the usual one.
type Option func(*options)

type options struct {
	quotas      intake.Quotas
	network     tenantnet.Policy
	authorities *x509.CertPool
	log         io.Writer
	level       string
	metrics     prometheus.Registerer
}

// WithQuotas sets the quotas of tenants without annotations.
func WithQuotas(q intake.Quotas) Option { return func(o *options) { o.quotas = q } }

// WithNetwork sets what tenants' addresses may lead to. The usual service reaches
// this machine: that is where a test's clusters and repositories are.
func WithNetwork(p tenantnet.Policy) Option { return func(o *options) { o.network = p } }

// WithGitAuthorities sets who signs the certificates of Git servers.
func WithGitAuthorities(p *x509.CertPool) Option { return func(o *options) { o.authorities = p } }

// WithLog takes all that the service logs. What Kubernetes' libraries log is the
// whole process's, and for its TestMain to send somewhere.
func WithLog(w io.Writer) Option { return func(o *options) { o.log, o.level = w, "debug" } }

// WithMetrics registers the service's metrics.
func WithMetrics(r prometheus.Registerer) Option { return func(o *options) { o.metrics = r } }

// Start runs backend and agent until the test ends.
func Start(t *testing.T, config *rest.Config, db Database, engineNamespace string, kind store.EngineKind, also ...Option) *Service {
	t.Helper()
	chosen := options{
		quotas: intake.DefaultQuotas(), network: tenantnet.Policy{AllowLoopback: true, ConnectTimeout: 2 * time.Second},
		log: t.Output(), level: "warn", metrics: prometheus.NewRegistry(),
	}
	for _, option := range also {
		option(&chosen)
	}
	log, err := telemetry.NewLogger(chosen.log, telemetry.LogOptions{Format: "text", Level: chosen.level})
	must(t, err)
	o := db.open(t)
	s := &Service{
		Store: o.store, Raw: o.raw, EngineNamespace: engineNamespace,
		t: t, config: config, kind: kind, open: o, log: log, options: chosen,
		hops: telemetry.NewHops(chosen.metrics), queues: fairq.NewMetrics(),
	}
	chosen.metrics.MustRegister(s.queues)
	ring, err := seal.NewRing()
	must(t, err)
	s.ring = seal.NewFile(filepath.Join(t.TempDir(), "ring.json"))
	must(t, s.ring.Create(t.Context(), ring))
	t.Cleanup(func() {
		s.StopBackend()
		s.StopAgent()
		_ = o.raw.Close()
		must(t, o.store.Close())
	})
	if kind == store.EngineArgoCD {
		must(t, client.IgnoreAlreadyExists(s.Client().Create(t.Context(), agent.ArgoSettings(engineNamespace))))
	}
	s.StartAgent()
	s.StartBackend()
	return s
}

// Client speaks to the control plane directly.
func (s *Service) Client() client.Client {
	c, err := client.New(s.config, client.Options{Scheme: kube.NewScheme()})
	must(s.t, err)
	return c
}

// StartBackend starts a backend, as after a restart: it remembers nothing.
func (s *Service) StartBackend() {
	n := s.open.notifier(s.log)
	b, err := backend.New(s.t.Context(), backend.Options{
		Config: s.config, Store: s.Store, Notifier: n, Workers: 8, PerWorkspace: 4, Log: s.log,
		Policy: intake.Policy{AllowPlainHTTP: true},
		Quotas: s.options.quotas, SyncRunTTL: time.Hour, DeployerRole: deployer.DefaultRole,
		Sealer: s.sealer(), Dialer: s.dialer(), SSH: backend.SSHHosts{AcceptAny: true}, GitAuthorities: s.options.authorities,
		Hops: s.hops, Queues: s.queues,
	})
	must(s.t, err)
	s.backend = run(s.t, n.Run, b.Run)
}

// sealer is on a key ring of the service's own, which outlives its roles.
func (s *Service) sealer() *seal.Sealer {
	sealer, err := seal.NewSealer(s.t.Context(), s.ring, s.Store)
	must(s.t, err)
	return sealer
}

func (s *Service) dialer() *tenantnet.Dialer {
	d, err := tenantnet.NewDialer(s.options.network)
	must(s.t, err)
	return d
}

// StopBackend stops it, as for maintenance.
func (s *Service) StopBackend() { s.backend = s.backend.stop() }

// StartAgent starts an agent beside the engine's namespace.
func (s *Service) StartAgent() {
	n := s.open.notifier(s.log)
	a, err := agent.New(s.t.Context(), agent.Options{
		Config: s.config, Store: s.Store, Notifier: n, Namespace: s.EngineNamespace, Kind: s.kind,
		Workers: 8, PerWorkspace: 4, Log: s.log, Sealer: s.sealer(),
		Hops: s.hops, Queues: s.queues,
	})
	must(s.t, err)
	s.agent = run(s.t, n.Run, a.Run)
}

// StopAgent stops it.
func (s *Service) StopAgent() { s.agent = s.agent.stop() }

// role is something that runs until it is stopped.
type role struct {
	cancel context.CancelFunc
	wait   sync.WaitGroup
}

func run(t *testing.T, parts ...func(context.Context) error) *role {
	// Not the test's context: that ends before cleanups run, and a role is stopped by one.
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	r := &role{cancel: cancel}
	for _, part := range parts {
		r.wait.Go(func() {
			if err := part(ctx); err != nil {
				t.Errorf("a role ended: %v", err)
			}
		})
	}
	return r
}

func (r *role) stop() *role {
	if r != nil {
		r.cancel()
		r.wait.Wait()
	}
	return nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
