// SPDX-License-Identifier: Apache-2.0

// Package command is localkube's own command line: it turns arguments into
// calls and errors into messages and exit codes, and holds the help texts.
//
// Exit codes: 0 done, 1 failed (for status: not ready), 2 wrong usage.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/component-base/version"

	"github.com/weir-gitops/weir/localkube/internal/cluster"
)

const usage = `localkube runs a real Kubernetes control plane on this machine, without containers:
etcd, kube-apiserver, kube-controller-manager and kube-scheduler, with simulated
nodes on which pods become ready and Jobs complete. It listens on loopback only.

  localkube up     --dir D    run it, with everything it keeps in the folder D
  localkube down   --dir D    stop the one that runs in D, and wait for it
  localkube status --dir D    tell whether it is ready (exit code 0) or not (1)
  localkube links  --dir L    make links in L: etcd, kube-apiserver, kubectl ...
                              (a KUBEBUILDER_ASSETS folder for envtest)
  localkube version           print the version of Kubernetes

The binary is also each of the programs it runs, by link or by first argument:

  localkube kubectl --kubeconfig D/kubeconfig get pods -A
  localkube etcd | kube-apiserver | kube-controller-manager | kube-scheduler ...

"localkube up --help" lists the flags of up.
`

// errUsage says that the command line was wrong; what is wrong has been
// printed by then.
var errUsage = errors.New("wrong usage")

// Run executes one command line and returns the exit code.
func Run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c := cli{stdout: stdout, stderr: stderr}
	err := c.dispatch(ctx, args)
	switch {
	case err == nil:
		return 0
	case errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	}
	fmt.Fprintf(stderr, "localkube: %v\n", err)
	return 1
}

type cli struct {
	stdout, stderr io.Writer
}

func (c cli) dispatch(ctx context.Context, args []string) error {
	if len(args) == 0 {
		fmt.Fprint(c.stderr, usage)
		return errUsage
	}
	name, rest := args[0], args[1:]
	switch name {
	case "up":
		return c.up(ctx, rest)
	case "down":
		return c.down(ctx, rest)
	case "status":
		return c.status(ctx, rest)
	case "links":
		return c.links(rest)
	case "version", "--version":
		fmt.Fprintln(c.stdout, version.Get().GitVersion)
		return nil
	case "help", "--help", "-h":
		fmt.Fprint(c.stdout, usage)
		return nil
	}
	fmt.Fprintf(c.stderr, "localkube: there is no command %q\n\n%s", name, usage)
	return errUsage
}

// parse reads the flags of one command; every command needs --dir.
func (c cli) parse(set *flag.FlagSet, args []string, about string) (dir string, err error) {
	set.StringVar(&dir, "dir", "", "the `folder` (required)")
	set.SetOutput(c.stderr)
	set.Usage = func() {
		fmt.Fprintf(c.stderr, "localkube %s: %s\n\n", set.Name(), about)
		set.PrintDefaults()
	}
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return "", err
		}
		return "", errUsage
	}
	if set.NArg() > 0 {
		return "", c.wrong("%s takes no argument, but got %q", set.Name(), strings.Join(set.Args(), " "))
	}
	if dir == "" {
		return "", c.wrong("%s needs --dir", set.Name())
	}
	return dir, nil
}

func (c cli) wrong(format string, args ...any) error {
	fmt.Fprintf(c.stderr, "localkube: "+format+"\n", args...)
	return errUsage
}

func (c cli) up(ctx context.Context, args []string) error {
	o := cluster.Options{Out: c.stdout}
	set := flag.NewFlagSet("up", flag.ContinueOnError)
	set.IntVar(&o.Nodes, "nodes", 2, "how many nodes to simulate")
	set.BoolVar(&o.NoFsync, "unsafe-no-fsync", false, "etcd does not wait for the disk: faster, but a crash of the machine can damage the data; for tests only")
	set.StringVar(&o.LogDir, "log-dir", "", "`folder` of the components' logs (default <dir>/logs)")
	set.StringVar(&o.ReadyFile, "ready-file", "", "a `file` that exists while the cluster is ready and holds the kubeconfig's path")
	set.DurationVar(&o.Timeout, "timeout", time.Minute, "how long the start may take")
	quiet := set.Bool("quiet", false, "print errors only")
	dir, err := c.parse(set, args, "run a control plane until Ctrl-C or SIGTERM")
	if err != nil {
		return err
	}
	if o.Nodes < 0 || o.Nodes > 200 {
		return c.wrong("--nodes is %d, but has to be 0 to 200", o.Nodes)
	}
	if *quiet {
		o.Out = io.Discard
	}
	o.Dir = dir
	return cluster.Up(ctx, o)
}

func (c cli) down(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("down", flag.ContinueOnError)
	timeout := set.Duration("timeout", time.Minute, "how long to wait for it")
	dir, err := c.parse(set, args, "stop the control plane that runs in a folder")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, *timeout)
	defer cancel()
	pid, err := cluster.Down(ctx, dir)
	if err != nil {
		return err
	}
	if pid == 0 {
		fmt.Fprintf(c.stdout, "nothing runs in %s\n", dir)
		return nil
	}
	fmt.Fprintf(c.stdout, "stopped process %d\n", pid)
	return nil
}

func (c cli) status(ctx context.Context, args []string) error {
	set := flag.NewFlagSet("status", flag.ContinueOnError)
	dir, err := c.parse(set, args, "tell whether the control plane in a folder is ready")
	if err != nil {
		return err
	}
	st, err := cluster.Inspect(ctx, dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "ready: process %d, Kubernetes %s at %s, %d nodes ready\nkubeconfig: %s\n",
		st.PID, st.Version, st.Server, st.NodesReady, st.Kubeconfig)
	return nil
}

func (c cli) links(args []string) error {
	set := flag.NewFlagSet("links", flag.ContinueOnError)
	dir, err := c.parse(set, args, "make a folder with a link for each program")
	if err != nil {
		return err
	}
	abs, err := cluster.Links(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(c.stdout, "export KUBEBUILDER_ASSETS=%s\n", abs)
	return nil
}
