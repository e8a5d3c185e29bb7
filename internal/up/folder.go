// SPDX-License-Identifier: Apache-2.0

package up

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// DefaultFolder is where Weir keeps its things when told nothing else.
const DefaultFolder = ".weir"

// SampleRepository is the name of the repository to try things with.
const SampleRepository = "sample.git"

// ErrNotOurs says that a folder was not made by this package and is left alone.
var ErrNotOurs = errors.New("not a folder that weir up has made")

// Folder is where everything of one `weir up` lies.
type Folder struct{ path string }

// NewFolder resolves the path without touching the disk.
func NewFolder(path string) (Folder, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return Folder{}, fmt.Errorf("folder: %w", err)
	}
	return Folder{path: abs}, nil
}

// Path is absolute.
func (f Folder) Path() string { return f.path }

// Kubeconfig is the administrator's way into the cluster.
func (f Folder) Kubeconfig() string { return filepath.Join(f.path, "kubeconfig") }

// KeyRing is the file with the key ring that seals credentials.
func (f Folder) KeyRing() string { return filepath.Join(f.path, "keyring.json") }

// GitCache is where the engine keeps clones of repositories.
func (f Folder) GitCache() string { return filepath.Join(f.path, "git-cache") }

// Database is the SQLite file.
func (f Folder) Database() string { return filepath.Join(f.path, "weir.db") }

// Log is what the service logs.
func (f Folder) Log() string { return filepath.Join(f.path, "weir.log") }

// Sample is the resource to try things with.
func (f Folder) Sample() string { return filepath.Join(f.path, "sample.yaml") }

func (f Folder) lock() string         { return filepath.Join(f.path, "lock") }
func (f Folder) state() string        { return filepath.Join(f.path, "state.json") }
func (f Folder) cluster() string      { return filepath.Join(f.path, "kube") }
func (f Folder) clusterReady() string { return filepath.Join(f.path, "kube.ready") }
func (f Folder) clusterLog() string   { return filepath.Join(f.path, "localkube.log") }
func (f Folder) repositories() string { return filepath.Join(f.path, "git") }
func (f Folder) repository() string   { return filepath.Join(f.repositories(), SampleRepository) }

// create makes the folder for its owner alone: it holds the keys of a cluster.
func (f Folder) create() error {
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return fmt.Errorf("make the folder for everything (--dir): %w", err)
	}
	return nil
}

// logLimit bounds the log: beyond it a start begins anew.
const logLimit = 16 << 20

// OpenLog opens the service's log for adding to it.
func (f Folder) OpenLog() (io.WriteCloser, error) {
	log, err := os.OpenFile(f.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	if info, err := log.Stat(); err == nil && info.Size() > logLimit {
		// Whoever else has it open adds at the end too, wherever that is now.
		_ = log.Truncate(0)
	}
	return log, nil
}

// Wipe removes what `weir up` has made, and then the folder if nothing else is
// in it; left are the names of what else was. It takes only names that it
// knows, so a folder given by mistake loses nothing.
func (f Folder) Wipe() (left []string, err error) {
	if _, err := os.Stat(f.state()); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", f.path, ErrNotOurs, err)
	}
	// Nobody may start here meanwhile.
	lock, err := Acquire(f)
	if err != nil {
		return nil, err
	}
	defer lock.Release()
	for _, ours := range []string{
		f.cluster(), f.clusterReady(), f.clusterLog(), f.repository(), f.Kubeconfig(), f.Sample(), f.Log(),
		f.Database(), f.KeyRing(), f.GitCache(), f.Database() + "-wal", f.Database() + "-shm", f.Database() + ".lock", f.state(), f.lock(),
	} {
		if err := os.RemoveAll(ours); err != nil {
			return nil, fmt.Errorf("remove what weir up has made: %w", err)
		}
	}
	for _, folder := range []string{f.repositories(), f.path} {
		entries, err := os.ReadDir(folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return left, fmt.Errorf("remove what weir up has made: %w", err)
		}
		for _, e := range entries {
			left = append(left, filepath.Join(folder, e.Name()))
		}
		if len(entries) > 0 {
			return left, nil
		}
		if err := os.Remove(folder); err != nil {
			return left, fmt.Errorf("remove the folder: %w", err)
		}
	}
	return nil, nil
}

// writeFile replaces a file in one step, so that a reader sees the old one or
// the new one and a crash leaves one of the two.
func writeFile(path string, data []byte) error {
	draft, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(data)
	if err := errors.Join(err, draft.Sync(), draft.Close()); err != nil {
		return err
	}
	return os.Rename(draft.Name(), path)
}

// tail gives the last lines of what was written to a file from an offset on,
// for a message about what went wrong.
func tail(path string, from int64) string {
	const most, lines = 16 << 10, 15
	file, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = file.Close() }()
	if info, err := file.Stat(); err == nil {
		from = max(from, info.Size()-most)
	}
	data, err := io.ReadAll(io.NewSectionReader(file, from, most))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
