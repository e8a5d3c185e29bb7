// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-gitops/weir/localkube/internal/supervise"
)

var (
	// ErrNotRunning says that no cluster runs in the folder.
	ErrNotRunning = errors.New("not running")
	// ErrNotALink says that something else has the name of a link.
	ErrNotALink = errors.New("exists and is not a link")
)

// Down stops the cluster that runs in the folder and waits until it has gone.
// It returns the process id of the one it stopped, 0 where none runs.
//
// The id is taken from the lock only while the lock is held, so it is that of
// a running Up and not of a stranger who got the number later.
func Down(ctx context.Context, dir string) (int, error) {
	l, err := newLayout(dir, "")
	if err != nil {
		return 0, err
	}
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	stopping := 0
	for {
		pid, running, err := supervise.Holder(l.lock())
		if err != nil {
			return 0, err
		}
		// Another id than the one that was signalled is a cluster that someone
		// started since: not ours to stop.
		if !running || stopping != 0 && pid != stopping {
			return stopping, nil
		}
		// A lock without an id was taken a moment ago; its holder writes it soon.
		if stopping == 0 && pid != 0 {
			if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
				return 0, fmt.Errorf("stop process %d: %w", pid, err)
			}
			stopping = pid
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("process %d still runs: %w", pid, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Status of a cluster that is ready.
type Status struct {
	PID        int
	Server     string
	Version    string
	NodesReady int
	Kubeconfig string
}

// Inspect tells how the cluster in the folder is; the error says why it is not
// ready.
func Inspect(ctx context.Context, dir string) (Status, error) {
	l, err := newLayout(dir, "")
	if err != nil {
		return Status{}, err
	}
	pid, running, err := supervise.Holder(l.lock())
	if err != nil {
		return Status{}, err
	}
	if !running {
		return Status{}, fmt.Errorf("%s: %w", l.dir, ErrNotRunning)
	}
	// The mark names the process, because one that was killed leaves it behind.
	if mark, err := os.ReadFile(l.ready()); err != nil || strings.TrimSpace(string(mark)) != strconv.Itoa(pid) {
		return Status{}, fmt.Errorf("process %d is starting or stopping: %w", pid, errNotReady)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		return Status{}, err
	}
	config.Timeout = 5 * time.Second
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return Status{}, err
	}
	if err := api.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error(); err != nil {
		return Status{}, fmt.Errorf("process %d runs, but its API server is not ready: %w", pid, err)
	}
	version, err := api.Discovery().ServerVersion()
	if err != nil {
		return Status{}, err
	}
	list, err := api.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return Status{}, err
	}
	st := Status{PID: pid, Server: config.Host, Version: version.GitVersion, Kubeconfig: l.kubeconfig()}
	for _, node := range list.Items {
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				st.NodesReady++
			}
		}
	}
	return st, nil
}

// Links makes, in dir, a link to this program for each program it can be, and
// returns the folder's absolute path.
func Links(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("folder: %w", err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("folder: %w", err)
	}
	self, err := ownProgram()
	if err != nil {
		return "", err
	}
	for _, name := range []string{etcd, apiServer, controllerManager, scheduler, kubectl} {
		if err := link(self, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// link replaces an earlier link, and nothing else, in one step.
func link(target, path string) error {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("%s %w", path, ErrNotALink)
	}
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Symlink(target, tmp); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("link: %w", err)
	}
	return nil
}

// ownProgram is the file of this program, not of a link to it.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("own program file: %w", err)
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", fmt.Errorf("own program file: %w", err)
	}
	return self, nil
}
