// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"
)

// Role is a weir process, backend or agent.
type Role struct {
	Name string

	binary  string
	args    []string
	log     string
	address string // of its probes
	process *process
}

const (
	// readyWithin is how long a role may take to become ready.
	readyWithin = time.Minute
	// lookEvery is how often a probe is asked while it is waited for.
	lookEvery = 10 * time.Millisecond
	// stopWithin is how long a process may take to stop.
	stopWithin = 20 * time.Second
)

var errNotReady = errors.New("did not become ready")

func newRole(name string, o Options, args ...string) (*Role, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return &Role{
		Name: name, binary: o.Weir, address: address, log: filepath.Join(o.Folder, name+".log"),
		args: append([]string{name, "--probe-address", address}, args...),
	}, nil
}

// freeAddress finds a free port on loopback. Somebody may take it before it is
// used; then the role says so and the run ends.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// Start begins the process and does not wait for anything.
func (r *Role) Start() error {
	var err error
	r.process, err = launch(r.Name, r.log, r.binary, r.args...)
	return err
}

// Kill ends it as a crash would.
func (r *Role) Kill() error { return r.process.kill() }

func (r *Role) stop() error {
	if r == nil || r.process == nil {
		return nil
	}
	return r.process.stop(stopWithin)
}

// AwaitReady waits until /readyz says yes.
func (r *Role) AwaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyWithin, fmt.Errorf("%s %w within %s", r.Name, errNotReady, readyWithin))
	defer cancel()
	for {
		if err := r.process.ended(); err != nil {
			return err
		}
		if r.ready(ctx) {
			return nil
		}
		if err := Pause(ctx, lookEvery); err != nil {
			return fmt.Errorf("%w; the end of its log:\n%s", err, tail(r.log))
		}
	}
}

func (r *Role) ready(ctx context.Context) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.address+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false
	}
	return res.Body.Close() == nil && res.StatusCode == http.StatusOK
}

// Usage is what the process has used since it was started.
func (r *Role) Usage() (Usage, error) {
	if err := r.process.ended(); err != nil {
		return Usage{}, err
	}
	return readUsage(r.process.pid())
}

// Metrics are what the role says of itself.
func (r *Role) Metrics(ctx context.Context) (Metrics, error) {
	return scrape(ctx, http.DefaultClient, "http://"+r.address+"/metrics")
}

// Pause waits.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
