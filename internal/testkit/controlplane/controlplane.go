// SPDX-License-Identifier: Apache-2.0

// Package controlplane starts a real Kubernetes control plane for a test
// binary: API server, etcd, controllers, scheduler and simulated nodes, in a
// temporary folder, through the localkube binary that `make build` makes.
package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-gitops/weir/internal/kube"
)

// Cluster is a running control plane.
type Cluster struct {
	// Kubeconfig is a file with an administrator's access.
	Kubeconfig string
	Config     *rest.Config

	command *exec.Cmd
	folder  string
	done    chan struct{}
}

// ErrNotBuilt says what to do where the binary is missing.
var ErrNotBuilt = errors.New("bin/localkube is missing: run `make build` first")

// readyWithin is generous: test machines are slow and busy.
const readyWithin = 2 * time.Minute

// Start brings a control plane up and returns when it is ready.
func Start(ctx context.Context) (*Cluster, error) {
	binary, err := Binary("localkube")
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "weir-controlplane-")
	if err != nil {
		return nil, err
	}
	c := &Cluster{folder: folder, Kubeconfig: filepath.Join(folder, "kubeconfig"), done: make(chan struct{})}
	ready := filepath.Join(folder, "ready")
	c.command = exec.Command(binary, "up", "--dir", folder, "--unsafe-no-fsync", "--ready-file", ready, "--timeout", readyWithin.String())
	output, err := c.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.command.Stderr = c.command.Stdout
	if err := c.command.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	var said []string
	started := make(chan bool, 1)
	go func() {
		defer close(c.done)
		lines := bufio.NewScanner(output)
		for lines.Scan() {
			said = append(said, lines.Text())
			if _, err := os.Stat(ready); err == nil {
				select {
				case started <- true:
				default:
				}
			}
		}
		_ = c.command.Wait()
	}()
	select {
	case <-started:
	case <-c.done:
		return nil, errors.Join(fmt.Errorf("localkube ended: %v", said), os.RemoveAll(folder))
	case <-time.After(readyWithin):
		return nil, errors.Join(errors.New("localkube is not ready in time"), c.Stop())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), c.Stop())
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, c.Stop())
	}
	c.Config = kube.ForService(config)
	return c, nil
}

// Stop ends the control plane and removes its folder.
func (c *Cluster) Stop() error {
	if err := c.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-c.done:
	case <-time.After(30 * time.Second):
		_ = c.command.Process.Kill()
		<-c.done
	}
	return os.RemoveAll(c.folder)
}

// Binary finds what `make build` made.
func Binary(name string) (string, error) {
	_, file, _, _ := runtime.Caller(0)
	path := filepath.Join(filepath.Dir(file), "..", "..", "..", "bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("%w (looked for %s)", ErrNotBuilt, path)
	}
	return path, nil
}
