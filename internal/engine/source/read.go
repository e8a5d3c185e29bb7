// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"strings"
)

const (
	// maxHeader is longer than what cat-file prints about one object.
	maxHeader = 128
	// blobBytes of files that were read are kept in memory, those of up to
	// smallBlob bytes.
	blobBytes, smallBlob = 32 << 20, 64 << 10
)

// read gets the contents of files, each that differs once.
func (c *Cache) read(ctx context.Context, t target, commit string, files []Entry) ([][]byte, error) {
	contents := map[string][]byte{}
	var missing []Entry
	for _, file := range files {
		if _, ok := contents[file.ID]; ok {
			continue
		}
		content, ok := c.blobs.get(t.id + "/" + file.ID)
		if contents[file.ID] = content; !ok {
			missing = append(missing, file)
		}
	}
	if len(missing) > 0 {
		read, err := c.readClone(ctx, t, commit, missing)
		if err != nil {
			return nil, err
		}
		for id, content := range read {
			contents[id] = content
			if len(content) <= smallBlob {
				// A copy: what was read together would be kept together.
				c.blobs.put(t.id+"/"+id, bytes.Clone(content), len(content)+len(id)+maxHeader)
			}
		}
	}
	out := make([][]byte, len(files))
	var total int64
	for i, file := range files {
		out[i] = contents[file.ID]
		if total += int64(len(out[i])); total > c.limits.ReadBytes {
			return nil, c.readTooLarge(t)
		}
	}
	return out, nil
}

// readClone reads files out of the clone: first how large they are, so that
// nothing is unpacked that is too large.
func (c *Cache) readClone(ctx context.Context, t target, commit string, files []Entry) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.limits.Timeout)
	defer cancel()
	var question strings.Builder
	for _, file := range files {
		question.WriteString(file.ID + "\n")
	}
	var contents map[string][]byte
	err := c.with(ctx, t, commit, func(one *clone) error {
		command := Command{
			Args: []string{"cat-file", "--batch-check"}, Env: c.local(one.folder),
			Stdin: []byte(question.String()), MaxOutput: int64(len(files)) * maxHeader,
		}
		answer, err := c.runner.Run(ctx, command)
		if err != nil {
			return err
		}
		total, err := c.checkSizes(t, answer, files)
		if err != nil {
			return err
		}
		command.Args, command.MaxOutput = []string{"cat-file", "--batch", "--buffer"}, total+command.MaxOutput
		if answer, err = c.runner.Run(ctx, command); err != nil {
			return err
		}
		contents, err = parseContents(t, answer)
		return err
	})
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return nil, errors.Join(ErrTimeout, err)
	}
	return contents, err
}

func (c *Cache) readTooLarge(t target) error {
	return t.fail(ErrReadTooLarge, "split what is deployed into several applications", "has files of more than %s together", size(c.limits.ReadBytes))
}

// checkSizes reads "id type size" or "id missing" for each file, in order. A file
// that is missing is one that the server left out for its size, see filter.
func (c *Cache) checkSizes(t target, answer []byte, files []Entry) (int64, error) {
	lines := strings.Split(strings.TrimSuffix(string(answer), "\n"), "\n")
	if len(lines) != len(files) {
		return 0, t.garbled()
	}
	var total int64
	for i, file := range files {
		fields := strings.Fields(lines[i])
		if len(fields) == 2 && fields[1] == "missing" {
			return 0, c.fileTooLarge(t, file)
		}
		if len(fields) != 3 || fields[0] != file.ID || fields[1] != "blob" {
			return 0, t.garbled()
		}
		bytes, err := strconv.ParseInt(fields[2], 10, 64)
		switch {
		case err != nil:
			return 0, t.garbled()
		case bytes > c.limits.FileBytes:
			return 0, c.fileTooLarge(t, file)
		}
		if total += bytes; total > c.limits.ReadBytes {
			return 0, c.readTooLarge(t)
		}
	}
	return total, nil
}

func (c *Cache) fileTooLarge(t target, file Entry) error {
	return t.fail(ErrFileTooLarge, "keep it out of what is deployed", "has a file of more than %s: %s", size(c.limits.FileBytes), file.Path)
}

func (t target) garbled() error {
	return t.fail(ErrHostileTree, "rewrite the commit with git", "has a file that is not one")
}

// parseContents reads "id blob size", the content and a line's end, one after the
// other.
func parseContents(t target, answer []byte) (map[string][]byte, error) {
	contents := map[string][]byte{}
	for len(answer) > 0 {
		header, rest, ok := bytes.Cut(answer, []byte("\n"))
		fields := strings.Fields(string(header))
		if !ok || len(fields) != 3 {
			return nil, t.garbled()
		}
		length, err := strconv.Atoi(fields[2])
		if err != nil || length < 0 || length >= len(rest) {
			return nil, t.garbled()
		}
		contents[fields[0]] = rest[:length:length]
		answer = rest[length+1:]
	}
	return contents, nil
}
