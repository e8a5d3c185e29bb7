// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// local runs a short command of the binary and returns its exit code and all
// its output.
func local(t *testing.T, args ...string) (int, string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("localkube %v: %v", args, err)
	}
	if exit != nil {
		return exit.ExitCode(), string(out)
	}
	return 0, string(out)
}

// running is a `localkube up` in the background.
type running struct {
	t    *testing.T
	dir  string
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // then: how

	mu    sync.Mutex
	out   bytes.Buffer
	wrote chan struct{} // closed and replaced with every piece of output
}

// up starts a cluster in dir and waits until it says that it is ready.
func up(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	r := start(t, dir, args...)
	r.await("kubeconfig: ")
	return r
}

func start(t *testing.T, dir string, args ...string) *running {
	t.Helper()
	r := &running{t: t, dir: dir, done: make(chan struct{}), wrote: make(chan struct{})}
	r.cmd = exec.Command(binary, append([]string{"up", "--dir", dir, "--unsafe-no-fsync"}, args...)...)
	r.cmd.Stdout, r.cmd.Stderr = r, r
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = r.cmd.Wait()
		close(r.done)
	}()
	t.Cleanup(r.stop)
	return r
}

// await waits for a text in the output.
func (r *running) await(text string) {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		r.mu.Lock()
		found, wrote := strings.Contains(r.out.String(), text), r.wrote
		r.mu.Unlock()
		if found {
			return
		}
		select {
		case <-wrote:
		case <-r.done:
			r.t.Fatalf("up ended before it said %q: %v\n%s", text, r.err, r.output())
		case <-deadline:
			r.t.Fatalf("up does not say %q within a minute:\n%s", text, r.output())
		}
	}
}

func (r *running) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.wrote)
	r.wrote = make(chan struct{})
	return r.out.Write(p)
}

func (r *running) output() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out.String()
}

func (r *running) pid() int { return r.cmd.Process.Pid }

func (r *running) kubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }

// stop asks it to end as Ctrl-C does, and waits.
func (r *running) stop() {
	_ = r.cmd.Process.Signal(os.Interrupt)
	r.wait()
}

func (r *running) wait() {
	select {
	case <-r.done:
	case <-time.After(time.Minute):
		_ = r.cmd.Process.Kill()
		r.t.Errorf("up did not end within a minute:\n%s", r.output())
	}
}

func (r *running) client() kubernetes.Interface {
	r.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.kubeconfig())
	if err != nil {
		r.t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		r.t.Fatal(err)
	}
	return client
}

// eventually waits for a condition of the real cluster; the error of the last
// look tells what was missing.
func eventually(t *testing.T, within time.Duration, look func(context.Context) error) time.Duration {
	t.Helper()
	began := time.Now()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		err := look(t.Context())
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > within {
			t.Fatalf("not within %s: %v", within, err)
		}
		<-tick.C
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
