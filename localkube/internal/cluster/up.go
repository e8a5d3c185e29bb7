// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/component-base/version"

	"github.com/weir-gitops/weir/localkube/internal/atomicfile"
	"github.com/weir-gitops/weir/localkube/internal/pki"
	"github.com/weir-gitops/weir/localkube/internal/supervise"
)

// tailLines is how much of a dead component's log is shown.
const tailLines = 15

// ErrInterrupted says that the cluster was asked to stop before it was ready.
var ErrInterrupted = errors.New("stopped before it was ready")

// errTimeout is the cause of a start that took too long.
var errTimeout = errors.New("not ready in time")

// RunningError says that the folder's cluster runs already.
type RunningError struct {
	Dir string
	PID int
}

func (e *RunningError) Error() string {
	return fmt.Sprintf("a cluster is already running in %s (process %d); stop it with: localkube down --dir %s", e.Dir, e.PID, e.Dir)
}

// Options of Up.
type Options struct {
	Dir string
	// LogDir is <Dir>/logs where empty.
	LogDir string
	// Nodes is how many nodes are simulated.
	Nodes int
	// NoFsync lets etcd answer before its data is on the disk.
	NoFsync bool
	// ReadyFile, where set, exists exactly while the cluster is ready. It holds
	// the kubeconfig's path.
	ReadyFile string
	// Timeout is how long the start may take.
	Timeout time.Duration
	// Out receives the progress lines.
	Out io.Writer
}

// Up runs the cluster until ctx ends, which is the normal end and no error.
func Up(ctx context.Context, o Options) error {
	began := time.Now()
	l, err := newLayout(o.Dir, o.LogDir)
	if err != nil {
		return err
	}
	if err := l.create(); err != nil {
		return err
	}
	lock, err := supervise.Acquire(l.lock())
	var held *supervise.HeldError
	if errors.As(err, &held) {
		return &RunningError{Dir: l.dir, PID: held.PID}
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	removeSockets, err := l.openSockets()
	if err != nil {
		return err
	}
	defer removeSockets()
	removeMarks(l, o.ReadyFile) // of a run that was killed
	return run(ctx, l, o, began)
}

// run is the life of a cluster whose folder is ours.
func run(ctx context.Context, l layout, o Options, began time.Time) (err error) {
	say := progress{out: o.Out}
	say.line("localkube %s in %s", version.Get().GitVersion, l.dir)
	s, err := prepare(l, o, say)
	if err != nil {
		return err
	}
	nodeLog, err := os.OpenFile(l.log(nodesClient), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer nodeLog.Close()

	c := newControlPlane(s, say, nodeLog)
	defer func() {
		say.line("Stopping.")
		stopping := time.Now()
		err = errors.Join(err, c.stop())
		say.line("Stopped after %s.", seconds(time.Since(stopping)))
	}()
	if err := c.startWithin(ctx, o); err != nil {
		return err
	}
	unmark, err := markReady(l, o.ReadyFile)
	if err != nil {
		return err
	}
	defer unmark()
	say.line("Ready in %s. Stop with Ctrl-C, or: localkube down --dir %s", seconds(time.Since(began)), l.dir)
	say.line("kubeconfig: %s", l.kubeconfig())

	select {
	case <-ctx.Done():
		return nil
	case p := <-c.died:
		return explain(&diedError{process: p})
	}
}

// markReady writes the files that say so; the returned function removes them.
func markReady(l layout, readyFile string) (unmark func(), err error) {
	unmark = func() { removeMarks(l, readyFile) }
	err = atomicfile.Write(l.ready(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600)
	if err == nil && readyFile != "" {
		err = atomicfile.Write(readyFile, []byte(l.kubeconfig()+"\n"), 0o600)
	}
	if err != nil {
		unmark()
		return nil, fmt.Errorf("mark as ready: %w", err)
	}
	return unmark, nil
}

func removeMarks(l layout, readyFile string) {
	_ = os.Remove(l.ready())
	if readyFile != "" {
		_ = os.Remove(readyFile)
	}
}

// startWithin is start with the time limit, and with a reason for people where
// it fails.
func (c *controlPlane) startWithin(ctx context.Context, o Options) error {
	startCtx, cancel := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("%w (%s; see --timeout)", errTimeout, o.Timeout))
	defer cancel()
	err := c.start(startCtx, o.Nodes)
	if err != nil && ctx.Err() != nil {
		return ErrInterrupted
	}
	return explain(err)
}

// explain adds the end of the log to the message about a component that died.
func explain(err error) error {
	var died *diedError
	if !errors.As(err, &died) {
		return err
	}
	lines := supervise.Tail(died.process.LogFile(), tailLines)
	return fmt.Errorf("%w; its log %s ends:\n  %s", err, died.process.LogFile(), strings.Join(lines, "\n  "))
}

// prepare makes everything that lies in the folder before the first process
// starts.
func prepare(l layout, o Options, say progress) (settings, error) {
	self, err := ownProgram()
	if err != nil {
		return settings{}, err
	}
	keys, err := pki.Ensure(l.pki(), serviceIP(), time.Now())
	if err != nil {
		return settings{}, err
	}
	if len(keys.Renewed) > 0 {
		say.line("  new certificates: %s", strings.Join(keys.Renewed, ", "))
	}
	earlier, err := readPorts(l.state())
	if err != nil {
		return settings{}, err
	}
	chosen, err := choosePorts(earlier)
	if err != nil {
		return settings{}, err
	}
	if earlier.APIServer != 0 && earlier.APIServer != chosen.APIServer {
		say.line("  port %d is taken by another program; the kubeconfig has a new one", earlier.APIServer)
	}
	if err := writePorts(l.state(), chosen); err != nil {
		return settings{}, err
	}
	if err := writeKubeconfigs(l, keys, chosen.APIServer); err != nil {
		return settings{}, err
	}
	if o.NoFsync {
		say.line("  --unsafe-no-fsync: a crash of the machine can lose or damage data; for tests only")
	}
	return settings{layout: l, ports: chosen, keys: keys, noFsync: o.NoFsync, self: self, env: childEnv(os.Environ())}, nil
}
