// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"os"
	"path/filepath"
)

// layout knows where everything lies in a cluster's folder.
type layout struct {
	dir    string // absolute
	logDir string
	// sockets is <dir>/run, or a temporary folder where that is too long.
	sockets string
}

// maxSocketFolder is how long the folder of a unix socket may be: the kernel
// takes paths of 107 bytes (103 on darwin), and the longest name in it has 15.
const maxSocketFolder = 88

func (l layout) lock() string       { return filepath.Join(l.dir, "lock") }
func (l layout) state() string      { return filepath.Join(l.dir, "state.json") }
func (l layout) ready() string      { return filepath.Join(l.dir, "ready") }
func (l layout) kubeconfig() string { return filepath.Join(l.dir, "kubeconfig") }
func (l layout) pki() string        { return filepath.Join(l.dir, "pki") }
func (l layout) data() string       { return filepath.Join(l.dir, "etcd") }

func (l layout) conf(name string) string { return filepath.Join(l.dir, "conf", name+".kubeconfig") }
func (l layout) log(name string) string  { return filepath.Join(l.logDir, name+".log") }
func (l layout) etcdSocket() string      { return filepath.Join(l.sockets, "etcd.sock") }
func (l layout) peerSocket() string      { return filepath.Join(l.sockets, "etcd-peer.sock") }

// newLayout resolves the folders without touching the disk.
func newLayout(dir, logDir string) (layout, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return layout{}, fmt.Errorf("folder: %w", err)
	}
	l := layout{dir: dir, logDir: filepath.Join(dir, "logs")}
	if logDir != "" {
		if l.logDir, err = filepath.Abs(logDir); err != nil {
			return layout{}, fmt.Errorf("log folder: %w", err)
		}
	}
	return l, nil
}

// create makes the folders. All of them are for the owner alone: the data
// folder holds every secret of the cluster in clear.
func (l layout) create() error {
	for _, dir := range []string{l.dir, filepath.Join(l.dir, "conf"), l.data(), l.logDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("folder: %w", err)
		}
	}
	return nil
}

// openSockets makes the folder for the sockets; the returned function removes
// it again.
func (l *layout) openSockets() (remove func(), err error) {
	l.sockets = filepath.Join(l.dir, "run")
	if len(l.sockets) <= maxSocketFolder {
		err = os.MkdirAll(l.sockets, 0o700)
	} else {
		l.sockets, err = os.MkdirTemp("", "localkube-")
	}
	if err != nil {
		return nil, fmt.Errorf("folder for sockets: %w", err)
	}
	dir := l.sockets
	return func() { _ = os.RemoveAll(dir) }, nil
}
