// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/config/install"
	"github.com/weir-gitops/weir/internal/agent"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// EngineNamespace is where the agent and the engine's stand-in work.
const EngineNamespace = "argocd"

// The databases: the service's own, and one for the bare client's rows, whose
// statements are not the service's.
const (
	serviceDatabase = "weir"
	scratchDatabase = "scratch"
)

// Options say what to start.
type Options struct {
	// Folder is for data and logs.
	Folder string
	// Weir and Localkube are the programs.
	Weir, Localkube string
	// Say prints progress.
	Say func(format string, args ...any)
	// Fail ends the run when something breaks in the background.
	Fail func(error)
}

// Rig is everything that runs.
type Rig struct {
	Board   *Board
	Engine  *Engine
	Client  client.WithWatch
	Backend *Role
	Agent   *Role

	options   Options
	config    *rest.Config
	http      *http.Client
	own       *ownRequests
	localkube *process
	postgres  *pg.Server
	watching  context.CancelFunc
}

// Start starts everything and waits until it is ready. On an error, what had been
// started is stopped.
func Start(ctx context.Context, o Options) (*Rig, error) {
	r := &Rig{Board: &Board{}, options: o}
	for _, part := range []struct {
		doing string
		start func(context.Context) error
	}{
		{"starting PostgreSQL", r.startPostgres},
		{"starting the control plane", r.startKubernetes},
		{"connecting", r.connect},
		{"installing resource definitions", r.install},
		{"watching Applications", r.watchApplications},
		{"starting weir agent and weir backend", r.startRoles},
	} {
		o.Say("%s", part.doing)
		if err := part.start(ctx); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", part.doing, err), r.Stop())
		}
	}
	return r, nil
}

func (r *Rig) startPostgres(ctx context.Context) (err error) {
	r.postgres, err = pg.Start(ctx, pg.Options{Durable: true, CountStatements: true})
	if err != nil {
		return err
	}
	for _, name := range []string{serviceDatabase, scratchDatabase} {
		if _, err := r.postgres.CreateEmptyDatabase(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *Rig) kubeconfig() string { return filepath.Join(r.options.Folder, "kube", "kubeconfig") }

func (r *Rig) startKubernetes(ctx context.Context) (err error) {
	ready := filepath.Join(r.options.Folder, "kube-ready")
	r.localkube, err = launch("localkube", filepath.Join(r.options.Folder, "localkube.log"), r.options.Localkube,
		"up", "--dir", filepath.Join(r.options.Folder, "kube"), "--ready-file", ready, "--quiet")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("the control plane %w within %s", errNotReady, readyWithin))
	defer cancel()
	for {
		if _, err := os.Stat(ready); err == nil {
			return nil
		}
		if err := r.localkube.ended(); err != nil {
			return err
		}
		if err := Pause(ctx, lookEvery); err != nil {
			return err
		}
	}
}

func (r *Rig) connect(context.Context) error {
	config, err := kube.LoadConfig(r.kubeconfig())
	if err != nil {
		return err
	}
	config.UserAgent = "weir-bench"
	config.WarningHandler = rest.NoWarnings{}
	r.own = &ownRequests{}
	config.Wrap(r.own.over)
	r.config = config
	if r.http, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	r.Client, err = client.NewWithWatch(config, client.Options{HTTPClient: r.http, Scheme: kube.NewScheme()})
	return err
}

func (r *Rig) install(ctx context.Context) error {
	all, err := crd.All()
	if err != nil {
		return err
	}
	floor, err := floorDefinition(all)
	if err != nil {
		return err
	}
	if err := kube.InstallCRDs(ctx, r.Client, append(all, floor)); err != nil {
		return err
	}
	objects, err := install.Objects()
	if err != nil {
		return err
	}
	if err := kube.Install(ctx, r.Client, objects...); err != nil {
		return err
	}
	if err := r.Client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: EngineNamespace}}); err != nil {
		return err
	}
	return r.Client.Create(ctx, agent.ArgoSettings(EngineNamespace))
}

// watchApplications serves the sightings and the engine's stand-in with one
// watch.
func (r *Rig) watchApplications(ctx context.Context) error {
	ctx, r.watching = context.WithCancel(ctx)
	r.Engine = newEngine(r.Client, r.options.Fail)
	return follow(ctx, r.Client, r.options.Fail, &argov1alpha1.ApplicationList{}, func(t watch.EventType, o client.Object, at time.Time) {
		app, is := o.(*argov1alpha1.Application)
		if !is {
			return
		}
		if t == watch.Deleted {
			r.Board.see(ApplicationGone(app.Name), at)
			return
		}
		if app.Spec.Source != nil {
			r.Board.see(ApplicationWith(app.Spec.Source.Path), at)
		}
		if !app.DeletionTimestamp.IsZero() {
			r.Board.see(ApplicationGoing(app.Name), at)
		}
		if app.Operation != nil {
			r.Board.see(SyncAsked(app.Name), at)
		}
		r.Engine.saw(ctx, app)
	}, client.InNamespace(EngineNamespace))
}

// WatchEnvironments posts environments that have connected and the tokens that
// reach the engine, until stop is called.
func (r *Rig) WatchEnvironments(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	err = errors.Join(
		follow(ctx, r.Client, r.options.Fail, &v1alpha1.GitOpsDeploymentManagedEnvironmentList{}, func(_ watch.EventType, o client.Object, at time.Time) {
			cr, is := o.(*v1alpha1.GitOpsDeploymentManagedEnvironment)
			if is && meta.IsStatusConditionTrue(cr.Status.Conditions, string(v1alpha1.ConditionConnectionInitializationSucceeded)) {
				r.Board.see(Connected(cr.Namespace, cr.Name), at)
			}
		}),
		follow(ctx, r.Client, r.options.Fail, &corev1.SecretList{}, func(_ watch.EventType, o client.Object, at time.Time) {
			secret, is := o.(*corev1.Secret)
			var config struct {
				BearerToken string `json:"bearerToken"`
			}
			if is && json.Unmarshal(secret.Data["config"], &config) == nil && config.BearerToken != "" {
				r.Board.see(TokenKnown(config.BearerToken), at)
			}
		}, client.InNamespace(EngineNamespace)),
	)
	if err != nil {
		cancel()
		return nil, err
	}
	return cancel, nil
}

// WatchStatus posts the revision in each GitOpsDeployment's status until stop is
// called. It is not always on because every watch costs the API server some.
func (r *Rig) WatchStatus(ctx context.Context) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	err = follow(ctx, r.Client, r.options.Fail, &v1alpha1.GitOpsDeploymentList{}, func(_ watch.EventType, o client.Object, at time.Time) {
		if cr, is := o.(*v1alpha1.GitOpsDeployment); is && cr.Status.Sync.Revision != "" {
			r.Board.see(StatusWith(cr.Status.Sync.Revision), at)
		}
	})
	if err != nil {
		cancel()
		return nil, err
	}
	return cancel, nil
}

// startRoles starts the agent first: it registers the engine instance that the
// backend places tenants on.
func (r *Rig) startRoles(ctx context.Context) (err error) {
	ring, err := seal.NewRing()
	if err != nil {
		return err
	}
	keys := seal.NewFile(filepath.Join(r.options.Folder, "keyring.json"))
	if err := keys.Create(ctx, ring); err != nil {
		return err
	}
	common := []string{
		"--kubeconfig", r.kubeconfig(), "--database", r.postgres.DSN(serviceDatabase),
		"--key-ring", filepath.Join(r.options.Folder, "keyring.json"),
	}
	// The clusters that tenants name here are this machine's.
	const loopback = "--allow-loopback"
	if r.Agent, err = newRole("agent", r.options, append(common, "--engine", "argocd", "--engine-namespace", EngineNamespace)...); err != nil {
		return err
	}
	if r.Backend, err = newRole("backend", r.options, append(common, loopback, "--quota-deployments", "20000", "--quota-running-syncs", "20000")...); err != nil {
		return err
	}
	for _, role := range []*Role{r.Agent, r.Backend} {
		if err := role.Start(); err != nil {
			return err
		}
		if err := role.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends everything, those that use others first.
func (r *Rig) Stop() error {
	err := errors.Join(r.Backend.stop(), r.Agent.stop())
	if r.watching != nil {
		r.watching()
	}
	if r.localkube != nil {
		err = errors.Join(err, r.localkube.stop(stopWithin))
	}
	if r.postgres != nil {
		err = errors.Join(err, r.postgres.Stop())
	}
	return err
}

// Version says which Kubernetes runs.
func (r *Rig) Version(ctx context.Context) (string, error) {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	err := getJSON(ctx, r.http, strings.TrimSuffix(r.config.Host, "/")+"/version", &v)
	return v.GitVersion, err
}
