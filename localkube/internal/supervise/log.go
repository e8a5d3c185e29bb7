// SPDX-License-Identifier: Apache-2.0

package supervise

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
)

// logLimit is the size at which a log is put aside at the next start. One
// older log is kept: <name>.old.
const logLimit = 16 << 20

// openLog opens a log for appending. Every child starts with its log's last
// start still readable, and a cluster that is restarted for years does not
// fill the disk.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > logLimit {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
}

// tailWindow is how much of a log's end Tail looks at.
const tailWindow = 32 << 10

// Tail returns up to n of the last lines of a file, none where it cannot be
// read: it is used to explain another error and must not hide it.
func Tail(path string, n int) []string {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil
	}
	start := max(0, size-tailWindow)
	buf := make([]byte, size-start)
	if _, err := f.ReadAt(buf, start); err != nil && !errors.Is(err, io.EOF) {
		return nil
	}
	if start > 0 {
		// The window opened inside a line; the part is of no use.
		if _, rest, ok := bytes.Cut(buf, []byte{'\n'}); ok {
			buf = rest
		}
	}
	text := strings.TrimRight(string(buf), "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-n):]
}
