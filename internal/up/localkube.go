// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrNoLocalkube says that there is neither a control plane's program nor a
// cluster.
var ErrNoLocalkube = errors.New("the local control plane's program localkube was not found: build it with \"make build\", name it with --localkube, or name a cluster with --kubeconfig")

const (
	localkubeName = "localkube"
	// stopGrace is more than localkube gives its own parts, one after the other.
	stopGrace = 40 * time.Second
	look      = 25 * time.Millisecond
)

// FindLocalkube looks for the control plane's program: where it is said to be,
// or else beside this program, or else on the PATH.
func FindLocalkube(named string) (string, error) {
	if named != "" {
		path, err := exec.LookPath(named)
		if err != nil {
			return "", fmt.Errorf("--localkube: %w", err)
		}
		return filepath.Abs(path)
	}
	if self, err := os.Executable(); err == nil {
		if file, err := filepath.EvalSymlinks(self); err == nil {
			self = file
		}
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), localkubeName)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(localkubeName)
	if err != nil {
		return "", ErrNoLocalkube
	}
	return filepath.Abs(path)
}

// localkube is a control plane of our own.
type localkube struct {
	folder Folder
	child  *child
}

// startLocalkube starts the control plane and returns when it is ready.
func startLocalkube(ctx context.Context, f Folder, program string, say *Progress) (*localkube, error) {
	// We hold the folder's lock, so one that runs there has lost its parent.
	if _, err := os.Stat(f.cluster()); err == nil {
		if err := stopLocalkube(ctx, f, program); err != nil {
			return nil, err
		}
	}
	if err := os.Remove(f.clusterReady()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	log, err := os.OpenFile(f.clusterLog(), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("prepare the control plane: %w", err)
	}
	// The child has its own copy once it is started.
	defer func() { _ = log.Close() }()
	// Not bound to the context: it is ended in its turn, not with everything else.
	cmd := exec.Command(program, "up", "--dir", f.cluster(), "--ready-file", f.clusterReady()) //nolint:noctx // See above.
	cmd.Stdout, cmd.Stderr = log, log
	started, err := startChild(cmd)
	if err != nil {
		return nil, fmt.Errorf("start the control plane: %w", err)
	}
	k := &localkube{folder: f, child: started}
	if err := k.awaitReady(ctx); err != nil {
		if ctx.Err() != nil {
			say.Say("Stopping; an API server that was about to start may take some seconds")
		}
		return nil, errors.Join(err, k.stop())
	}
	return k, nil
}

// awaitReady waits for the file that the control plane writes when it is ready.
// It has a time limit of its own, after which it ends.
func (k *localkube) awaitReady(ctx context.Context) error {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		if _, err := os.Stat(k.folder.clusterReady()); err == nil {
			return nil
		}
		select {
		case <-k.child.done:
			return k.ended()
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// ended tells why the control plane is gone.
func (k *localkube) ended() error {
	how := "without an error"
	if k.child.err != nil {
		how = k.child.err.Error()
	}
	return fmt.Errorf("the control plane ended (%s); %s ends with:\n  %s",
		how, k.folder.clusterLog(), tail(k.folder.clusterLog(), 0))
}

// watch returns when the context ends, or with an error when the control plane
// does.
func (k *localkube) watch(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case <-k.child.done:
		return k.ended()
	}
}

func (k *localkube) stop() error {
	if err := k.child.stop(stopGrace); err != nil {
		return fmt.Errorf("the control plane %w", err)
	}
	return nil
}

// stopLocalkube ends a control plane that is not our child.
func stopLocalkube(ctx context.Context, f Folder, program string) error {
	out, err := exec.CommandContext(ctx, program, "down", "--dir", f.cluster()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("stop the control plane in %s: %w: %s", f.cluster(), err, strings.TrimSpace(string(out)))
	}
	return nil
}
