// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File keeps the ring in a file of mode 0600: for one machine, or one that an
// operator distributes. It is replaced whole, by renaming, so that whoever reads it
// sees one ring or the other.
type File struct{ path string }

var _ Writable = (*File)(nil)

// NewFile names a file. It need not exist yet; its folder has to.
func NewFile(path string) *File { return &File{path: path} }

// Where names the file.
func (f *File) Where() string { return "file " + f.path }

// Load reads the file, and refuses one that anybody but its owner may read or
// write (ErrExposed): a ring that others had is to be rotated, not used on.
func (f *File) Load(context.Context) (*Ring, error) {
	file, err := os.Open(f.path) // #nosec G304 -- the operator names the file
	if err != nil {
		return nil, f.explain(err)
	}
	defer func() { _ = file.Close() }()
	return f.read(file)
}

// maxRing is far above any real ring: some 200 bytes a key.
const maxRing = 1 << 20

func (f *File) read(file *os.File) (*Ring, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, f.explain(err)
	case !info.Mode().IsRegular() || info.Size() > maxRing:
		return nil, fmt.Errorf("%s: %w", f.Where(), ErrDamagedRing)
	case exposed(info.Mode()):
		return nil, fmt.Errorf("%s has mode %04o: %w; run `chmod 600 %s`, and if somebody may have read it, `weir keys rotate --prune` after that",
			f.Where(), info.Mode().Perm(), ErrExposed, f.path)
	}
	text := make([]byte, info.Size())
	if _, err := file.ReadAt(text, 0); err != nil {
		return nil, f.explain(err)
	}
	defer clear(text)
	r, err := ParseRing(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; restore it from a backup", f.Where(), err)
	}
	return r, nil
}

func (f *File) explain(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &NoRingError{Where: f.Where(), Create: "weir keys create --key-ring " + f.path}
	}
	return fmt.Errorf("key ring in %s: %w", f.Where(), err)
}

// Create writes the file. Of two at once, one finds it there: a link, unlike a
// rename, does not replace.
func (f *File) Create(_ context.Context, r *Ring) error {
	folder := filepath.Dir(f.path)
	if _, err := os.Stat(folder); err != nil {
		return fmt.Errorf("key ring in %s: %w; make the folder first", f.Where(), err)
	}
	temporary, err := f.writeBeside(f.path, r)
	if err != nil {
		return err
	}
	err = os.Link(temporary, f.path)
	if errors.Is(err, fs.ErrExist) {
		err = ErrRingExists
	}
	if err := errors.Join(err, os.Remove(temporary)); err != nil {
		return fmt.Errorf("key ring in %s: %w", f.Where(), err)
	}
	return syncFolder(folder)
}

// Update holds a lock on the file while it is replaced, so that changes take
// turns.
func (f *File) Update(ctx context.Context, change func(*Ring) (*Ring, error)) (*Ring, error) {
	// A link is followed, so that the file is replaced and not the link.
	path, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return nil, f.explain(err)
	}
	file, err := lockCurrent(ctx, path)
	if err != nil {
		return nil, f.explain(err)
	}
	defer func() { _ = file.Close() }()
	was, err := f.read(file)
	if err != nil {
		return nil, err
	}
	next, err := change(was)
	if err != nil || next == was {
		return was, err
	}
	temporary, err := f.writeBeside(path, next)
	if err != nil {
		return nil, err
	}
	err = keepOwner(file, temporary)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("key ring in %s: %w", f.Where(), err), os.Remove(temporary))
	}
	return next, syncFolder(filepath.Dir(path))
}

// lockCurrent opens the file under a lock. Whoever waited for the lock may have got
// it on a file that has been replaced meanwhile, and tries again.
func lockCurrent(ctx context.Context, path string) (*os.File, error) {
	for {
		file, err := os.Open(path) // #nosec G304 -- the operator names the file
		if err != nil {
			return nil, err
		}
		if err := lock(ctx, file); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		locked, err := file.Stat()
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
		current, err := os.Stat(path)
		if err == nil && os.SameFile(locked, current) {
			return file, nil
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
	}
}

// writeBeside writes a ring to a new file in the folder of the given one, down to
// the disk. os.CreateTemp makes files of mode 0600.
func (f *File) writeBeside(path string, r *Ring) (string, error) {
	text, err := r.Encode()
	if err != nil {
		return "", err
	}
	defer clear(text)
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return "", fmt.Errorf("key ring in %s: %w", f.Where(), err)
	}
	_, err = file.Write(text)
	if err == nil {
		err = file.Sync()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("key ring in %s: %w", f.Where(), err), os.Remove(file.Name()))
	}
	return file.Name(), nil
}
