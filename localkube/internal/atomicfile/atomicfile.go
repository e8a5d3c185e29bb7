// SPDX-License-Identifier: Apache-2.0

// Package atomicfile replaces a file in one step: a reader sees the old
// content or the new, never a part, and a crash leaves one of the two. The
// file is created with its final mode, so a secret is never readable by
// others, not even for a moment.
package atomicfile

import (
	"fmt"
	"os"
	"path/filepath"
)

// Write makes path hold data with the given mode.
func Write(path string, data []byte, mode os.FileMode) (err error) {
	// CreateTemp makes the file 0600; the name starts with a dot so that tools
	// that read whole folders pass it over.
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = tmp.Close()
			_ = os.Remove(tmp.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	if _, err = tmp.Write(data); err != nil {
		return err
	}
	if err = tmp.Chmod(mode); err != nil {
		return err
	}
	if err = tmp.Sync(); err != nil {
		return err
	}
	if err = tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}
