// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// How the beginning of an answer can be wrong.
var (
	errMalformed = errors.New("not in Git's protocol")
	// errRemote: the other side says so itself.
	errRemote = errors.New("the server reports an error")
)

// maxPacket is the longest pkt-line, its four digits of length included.
const maxPacket = 65520

// readPacket reads one pkt-line: four hexadecimal digits that count themselves,
// then the rest. A flush (0000) is nil.
func readPacket(r io.Reader) ([]byte, error) {
	var digits [4]byte
	if _, err := io.ReadFull(r, digits[:]); err != nil {
		return nil, err
	}
	length, err := strconv.ParseUint(string(digits[:]), 16, 16)
	switch {
	case err != nil || length > maxPacket || length > 0 && length <= 4:
		return nil, errMalformed
	case length == 0:
		return nil, nil
	}
	line := make([]byte, length-4)
	if _, err := io.ReadFull(r, line); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line, []byte("\n")), nil
}

// readAdvertisement reads as much of the list of references as shows that it is
// one: over HTTP the name of the service, which protocol 2 may leave out; then a
// version, a reference, or nothing where the repository is empty.
func readAdvertisement(r io.Reader, overHTTP bool) error {
	line, err := readPacket(r)
	if err != nil {
		return err
	}
	if overHTTP && string(line) == "# service=git-upload-pack" {
		if flush, err := readPacket(r); err != nil || flush != nil {
			return errors.Join(errMalformed, err)
		}
		if line, err = readPacket(r); err != nil {
			return err
		}
	} else if overHTTP && string(line) != "version 2" {
		return errMalformed
	}
	switch {
	case line == nil, string(line) == "version 1", string(line) == "version 2", isReference(line):
		return nil
	case bytes.HasPrefix(line, []byte("ERR ")):
		// Its text is the server's, and stays here.
		return errRemote
	}
	return errMalformed
}

// isReference recognises "<hash> <name>", the hash being SHA-1 or SHA-256.
func isReference(line []byte) bool {
	hash, name, found := bytes.Cut(line, []byte(" "))
	if !found || len(name) == 0 || len(hash) != 40 && len(hash) != 64 {
		return false
	}
	_, err := hex.DecodeString(string(hash))
	return err == nil
}

// verdict puts what readAdvertisement found into words.
func (r Remote) verdict(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errRemote):
		return r.fail(ErrNotFound, "is refused by its server", "check the path and who may read it", err)
	case errors.Is(err, errMalformed):
		return r.fail(ErrNotGit, "answers, but not in Git's protocol", "check the URL; it is the one that git clone takes", err)
	case ctx.Err() != nil || isTimeout(err):
		return r.connectionError(ctx, err)
	}
	return r.fail(ErrNotGit, "ends its answer before it has begun", "check the URL; it is the one that git clone takes", fmt.Errorf("advertisement: %w", err))
}
