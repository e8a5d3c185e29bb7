// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/telemetry"
)

var (
	// ErrInterrupted says that a start was stopped before its end.
	ErrInterrupted = errors.New("stopped before everything was ready")
	// ErrNotReady says that something that should work does not.
	ErrNotReady = errors.New("not everything is ready")
)

// Options say what to start.
type Options struct {
	Folder  Folder
	Version string
	// Kubeconfig names a cluster; where empty, Localkube (or where that is empty
	// too, the one that is found) runs one.
	Kubeconfig string
	Localkube  string
	// Ports that are 0 are chosen.
	Ports  Ports
	Engine EngineState
}

// Session is one `weir up`, from before the first part starts until after the
// last has ended.
type Session struct {
	Folder Folder
	State  State
	// Before is the state that the last session left.
	Before State
	lock   *Lock
}

// Begin checks what can be checked before anything starts, and takes the
// folder. Where another has it, the error is a *Running.
func Begin(ctx context.Context, o Options) (*Session, error) {
	lock, err := Acquire(o.Folder)
	if err != nil {
		return nil, err
	}
	s := &Session{Folder: o.Folder, lock: lock}
	if err := s.prepare(ctx, o); err != nil {
		lock.Release()
		return nil, err
	}
	return s, nil
}

func (s *Session) prepare(ctx context.Context, o Options) (err error) {
	if s.Before, err = ReadState(o.Folder); err != nil {
		return err
	}
	s.State = State{PID: os.Getpid(), Version: o.Version, Started: time.Now().UTC().Truncate(time.Second), Engine: o.Engine, Cluster: s.Before.Cluster}
	if err := gitserve.Check(ctx); err != nil {
		return err
	}
	given, err := absolute(o.Kubeconfig)
	if err != nil {
		return err
	}
	var program string
	if given == "" {
		if program, err = FindLocalkube(o.Localkube); err != nil {
			return err
		}
	}
	// The identity stays: it is compared when the cluster has answered.
	s.State.Cluster.Given, s.State.Cluster.Localkube = given, program
	if s.State.Ports, err = choosePorts(ctx, o.Ports, s.Before.Ports); err != nil {
		return err
	}
	return WriteState(s.Folder, s.State)
}

// OpenCluster connects to the session's cluster, or starts it.
func (s *Session) OpenCluster(ctx context.Context, say *Progress) (*Cluster, error) {
	c, err := OpenCluster(ctx, s.Folder, s.State.Cluster.Given, s.State.Cluster.Localkube, say)
	if err != nil {
		return nil, err
	}
	if err := SameCluster(s.Folder, s.Before.Cluster, c.State); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	s.State.Cluster = c.State
	return c, WriteState(s.Folder, s.State)
}

// GitMoved says, where it is so, that the sample repository is not where it was.
func (s *Session) GitMoved() string {
	if s.Before.Ports.Git == 0 || s.Before.Ports.Git == s.State.Ports.Git {
		return ""
	}
	return fmt.Sprintf("The sample repository has moved from port %d to %d: apply the sample again", s.Before.Ports.Git, s.State.Ports.Git)
}

// AwaitReady waits until everything answers, and then writes that down.
func (s *Session) AwaitReady(ctx context.Context, within time.Duration, checks []telemetry.Check) error {
	deadline := time.Now().Add(within)
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		r := telemetry.Ask(ctx, checks)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case r.Ready:
			s.State.Ready = true
			return WriteState(s.Folder, s.State)
		case time.Now().After(deadline):
			return fmt.Errorf("%w after %s: %s", ErrNotReady, within, away(r))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// away names what does not answer.
func away(r telemetry.Readiness) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(r.Dependencies)) {
		if answer := r.Dependencies[name]; answer != answerOK {
			all = append(all, name+": "+answer)
		}
	}
	return strings.Join(all, "; ")
}

// answerOK is what a dependency that is there answers.
const answerOK = "ok"

// End writes down that nothing runs any more. The lock stays until the process
// has ended, see Lock.Release.
func (s *Session) End() error {
	s.State.PID, s.State.Ready = 0, false
	return WriteState(s.Folder, s.State)
}
