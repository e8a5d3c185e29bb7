// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/up"
)

// upFlags say what to start on this machine.
type upFlags struct {
	dir             string
	kubeconfig      string
	localkube       string
	ports           up.Ports
	engineNamespace string
	engine          string
	workers         int
	perWorkspace    int
	tenancy         tenancyFlags
	log             telemetry.LogOptions
	timeout         time.Duration
	detach          bool
	detached        bool
}

func newUp() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:     "up",
		GroupID: "local",
		Short:   "Run everything on this machine, to try it",
		Long: `Run everything on this machine, to try it.

Backend, agent and the built-in engine run in this one process on a SQLite database. Where no
--kubeconfig is given, a Kubernetes control plane of its own runs beside them
(localkube: the real API server and controllers, simulated nodes). A sample
tenant and a sample Git repository are there to play with.

Everything lies in one folder, listens on loopback only, and stays there for the
next time. A second "weir up" finds the first.`,
		Example: `  weir up                        until Ctrl-C
  weir up --detach               in the background; stop it with: weir down
  weir up --kubeconfig FILE      with a cluster that you have`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runUp(c, f) },
	}
	set := c.Flags()
	addFolderFlag(set, &f.dir)
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of a cluster to use instead of a local control plane")
	set.StringVar(&f.localkube, "localkube", "", "program of the local control plane; default: beside this program, or on the PATH")
	set.IntVar(&f.ports.Git, "git-port", 0, "port of the sample repository; default: a free one, kept")
	set.IntVar(&f.ports.Probes, "probe-port", 0, "port of /healthz, /readyz and /metrics; default: a free one, kept")
	set.DurationVar(&f.timeout, "timeout", 2*time.Minute, "how long the roles may take to become ready")
	set.BoolVarP(&f.detach, "detach", "d", false, "run in the background, and return when everything is ready")
	set.BoolVar(&f.detached, detachedFlag, false, "")
	_ = set.MarkHidden(detachedFlag)
	addEngineFlags(c, &f.engineNamespace, &f.engine, store.EngineBuiltIn)
	addWorkerFlags(set, &f.workers, &f.perWorkspace)
	addLogFlags(set, &f.log, "text")
	f.tenancy.add(set)
	// The sample's Git server is on the same machine and needs no encryption.
	f.tenancy.policy.AllowPlainHTTP, f.tenancy.network.AllowLoopback, f.tenancy.network.AllowPrivate, f.tenancy.anyHostKey = true, true, true, true
	for _, flag := range []string{"allow-plain-http", "allow-loopback", "allow-private-networks", "accept-any-ssh-host-key"} {
		set.Lookup(flag).DefValue = "true"
	}
	return c
}

// detachedFlag tells the process in the background that it is the one.
const detachedFlag = "detached"

func addFolderFlag(set *pflag.FlagSet, dir *string) {
	set.StringVar(dir, "dir", env("WEIR_DIR", up.DefaultFolder), "folder in which everything lies (WEIR_DIR)")
}

// runUp starts what is not running yet, and tells what runs.
func runUp(c *cobra.Command, f upFlags) error {
	ctx, out := c.Context(), c.OutOrStdout()
	folder, err := up.NewFolder(f.dir)
	if err != nil {
		return err
	}
	if _, err := engineKind(f.engine); err != nil {
		return err
	}
	switch _, running, err := up.Find(folder); {
	case err != nil:
		return err
	case running:
		return tellOther(ctx, folder, f, out)
	case f.detached:
		progress := up.DetachedProgress()
		// The summary is the parent's to print; closing tells it when.
		return startUp(ctx, folder, f, io.MultiWriter(out, progress), func(up.State) { _ = progress.Close() })
	case f.detach:
		if err := up.Detach(ctx, folder, detachedArgs(c), out); err != nil {
			return err
		}
		s, _, err := up.Find(folder)
		words := up.NewWords(s)
		fmt.Fprintf(out, "\n%s\nStop it with: %s\n", up.Summary(folder, s, words), words.Down(folder))
		return err
	}
	err = startUp(ctx, folder, f, out, func(s up.State) {
		fmt.Fprintf(out, "\n%s\nStop it with Ctrl-C.\n", up.Summary(folder, s, up.NewWords(s)))
	})
	var other *up.Running
	if errors.As(err, &other) {
		return tellOther(ctx, folder, f, out)
	}
	return err
}

// tellOther is what a second `weir up` does.
func tellOther(ctx context.Context, folder up.Folder, f upFlags, out io.Writer) error {
	s, err := up.AwaitOther(ctx, folder, f.timeout)
	if err != nil {
		return err
	}
	words := up.NewWords(s)
	if err := s.Differs(f.kubeconfig, up.EngineState{Kind: f.engine, Namespace: f.engineNamespace}); err != nil {
		return fmt.Errorf("%w; stop it first with: %s", err, words.Down(folder))
	}
	fmt.Fprintf(out, "Weir is already up.\n\n%s\nStop it with: %s\n", up.Summary(folder, s, words), words.Down(folder))
	return nil
}

// detachedArgs are this command's arguments for the process in the background.
func detachedArgs(c *cobra.Command) []string {
	args := []string{c.Name(), "--" + detachedFlag}
	c.Flags().Visit(func(flag *pflag.Flag) {
		if flag.Name != "detach" {
			args = append(args, "--"+flag.Name+"="+flag.Value.String())
		}
	})
	return args
}

// startUp puts everything together and runs it until the context ends or a part
// fails. What was started is ended in the opposite order, whatever happens.
func startUp(ctx context.Context, folder up.Folder, f upFlags, out io.Writer, ready func(up.State)) (err error) {
	say := up.NewProgress(out)
	session, err := up.Begin(ctx, up.Options{
		Folder: folder, Version: version, Kubeconfig: f.kubeconfig, Localkube: f.localkube, Ports: f.ports,
		Engine: up.EngineState{Kind: f.engine, Namespace: f.engineNamespace},
	})
	if err != nil {
		return err
	}
	defer func() {
		if err != nil && ctx.Err() != nil {
			// Whatever failed, failed because it was told to stop.
			err = up.ErrInterrupted
		}
		err = errors.Join(err, session.End())
	}()
	cluster, err := session.OpenCluster(ctx, say)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, cluster.Close())
		say.Say("Stopped.")
	}()
	if err := prepareCluster(ctx, cluster, f, say); err != nil {
		return err
	}
	return runAll(ctx, session, cluster, f, say, ready)
}

// prepareCluster installs what Weir needs in a cluster.
func prepareCluster(ctx context.Context, cluster *up.Cluster, f upFlags, say *up.Progress) error {
	api, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return fmt.Errorf("connect to Kubernetes: %w", err)
	}
	installed, err := installCRDs(ctx, api)
	if err != nil {
		return err
	}
	say.Say("Installed %d resource definitions, roles and flow schemas", len(installed))
	if err := up.EnsureNamespaces(ctx, api, f.engineNamespace, up.SampleTenant); err != nil {
		return err
	}
	return up.Settle(ctx, api, up.SampleTenant, f.engineNamespace)
}

// runAll is every role in one process, and the sample's Git server beside them.
func runAll(ctx context.Context, session *up.Session, cluster *up.Cluster, f upFlags, say *up.Progress, ready func(up.State)) (err error) {
	folder := session.Folder
	log, err := folder.OpenLog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	if err := ensureKeyRing(ctx, folder.KeyRing()); err != nil {
		return err
	}
	p, err := newPlatform(ctx, log, roleFlags{
		kubeconfig: folder.Kubeconfig(),
		database:   databaseFlags{address: "sqlite:" + folder.Database()},
		keyRing:    keyRingFlags{file: folder.KeyRing()},
		log:        f.log,
	}, crd.Tenant, crd.Argo)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.addBackend(ctx, f.tenancy, f.workers, f.perWorkspace); err != nil {
		return err
	}
	if err := p.addAgent(ctx, f.engineNamespace, store.EngineKind(f.engine), f.workers, f.perWorkspace); err != nil {
		return err
	}
	if store.EngineKind(f.engine) == store.EngineBuiltIn {
		// Git is asked often, because on a laptop nobody tells of a commit.
		stop, err := p.addEngine(ctx, f.engineNamespace, f.tenancy, engineFlags{folder: folder.GitCache(), refresh: 10 * time.Second})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	git, err := up.ServeSample(ctx, folder, session.State.Ports.Git, p.log.With("part", "git server"))
	if err != nil {
		return err
	}
	say.Say("Starting %s on %s", up.RoleWords(session.State.Engine), up.Short(folder.Database()))
	if moved := session.GitMoved(); moved != "" {
		say.Say("%s", moved)
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return git.Run(running) })
	group.Go(func() error { return cluster.Watch(running) })
	group.Go(func() error { return p.run(running, session.State.ProbeAddress()) })
	group.Go(func() error {
		if err := session.AwaitReady(running, f.timeout, p.checks); err != nil {
			return err
		}
		say.Say("Everything is ready")
		ready(session.State)
		<-running.Done()
		say.Say("Stopping")
		return nil
	})
	err = group.Wait()
	if session.State.Ready && ctx.Err() != nil {
		// Asked to stop, after a complete start: what roles say about a context
		// that has ended is no news.
		return nil
	}
	return err
}
