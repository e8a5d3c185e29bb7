// SPDX-License-Identifier: Apache-2.0

// Package behaviours holds the service to its acceptance tests: what tenants
// and operators can rely on, each a test named after the behaviour, on a real
// control plane and on every database.
package behaviours

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/config/install"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
	"github.com/weir-gitops/weir/internal/testkit/pg"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

var (
	cluster *controlplane.Cluster
	// libraries is where Kubernetes' libraries log to.
	libraries outlet
)

// outlet is a place to log to that can be another one later. The libraries'
// logger itself is set once: they read it unguarded.
type outlet struct {
	mu sync.Mutex
	to io.Writer
}

// Write hands a line on.
func (o *outlet) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.to == nil {
		return len(p), nil
	}
	return o.to.Write(p)
}

// lead has lines written elsewhere, or nowhere.
func (o *outlet) lead(to io.Writer) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.to = to
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("needs servers; skipped with -short")
		return
	}
	code := 1
	func() {
		log, err := telemetry.NewLogger(&libraries, telemetry.LogOptions{Format: "text", Level: "debug"})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		telemetry.BridgeKubernetes(log)
		if cluster, err = startCluster(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer func() { _ = cluster.Stop() }()
		code = pg.Run(m)
	}()
	os.Exit(code)
}

func startCluster(ctx context.Context) (*controlplane.Cluster, error) {
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
	objects, err := install.Objects()
	if err != nil {
		return nil, err
	}
	return c, errors.Join(kube.InstallCRDs(ctx, api, crds), kube.Install(ctx, api, objects...))
}

// each runs a behaviour on every database, each time on a service of its own.
// A service serves all namespaces, so two of them cannot run side by side: the
// tests of this package are not parallel.
func each(t *testing.T, behaviour func(w *world), options ...service.Option) {
	eachWith(t, func() []service.Option { return options }, behaviour)
}

// eachWith is each with options that are made anew for each service.
func eachWith(t *testing.T, options func() []service.Option, behaviour func(w *world)) {
	for _, db := range service.Databases() {
		t.Run(db.Name, func(t *testing.T) {
			w := &world{T: t, ctx: t.Context()}
			var err error
			w.api, err = client.NewWithWatch(cluster.Config, client.Options{Scheme: kube.NewScheme()})
			w.must(err)
			engine := w.namespace("engine")
			w.Service = service.Start(t, cluster.Config, db, engine, store.EngineArgoCD, options()...)
			w.startEngine()
			behaviour(w)
		})
	}
}

// world is what one behaviour plays in.
type world struct {
	*testing.T
	*service.Service
	ctx    context.Context
	api    client.WithWatch
	engine *standIn
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

var namespaces atomic.Int64

// namespace creates a namespace, and at the end removes what a service would
// otherwise find in it.
func (w *world) namespace(kind string) string {
	name := fmt.Sprintf("%s-%d", kind, namespaces.Add(1))
	w.must(w.api.Create(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	w.Cleanup(func() { removeAll(w.T, name) })
	return name
}

func (w *world) tenant() string { return w.namespace("tenant") }

// count reads a number from the database.
func (w *world) count(query string, args ...any) int {
	w.Helper()
	var n int
	w.must(w.Raw.QueryRowContext(w.ctx, query, args...).Scan(&n))
	return n
}

func mention(message string, words ...string) string {
	for _, word := range words {
		if !strings.Contains(message, word) {
			return fmt.Sprintf("%q does not mention %q", message, word)
		}
	}
	return ""
}
