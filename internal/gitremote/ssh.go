// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"golang.org/x/crypto/ssh"
)

// exitNoCommand is what a shell says of a program that is not there.
const exitNoCommand = 127

func (r Remote) checkSSH(ctx context.Context, c Credential, o Options) error {
	signer, err := r.signer(c)
	if err != nil {
		return err
	}
	keys, err := r.hostKeys(o)
	if err != nil {
		return err
	}
	conn, err := o.Dialer.DialContext(ctx, "tcp", r.Address())
	if err != nil {
		return r.connectionError(ctx, err)
	}
	defer func() { _ = conn.Close() }()
	// The SSH library knows no contexts. Closing the connection ends whatever it
	// waits for, at the deadline and when the caller gives up.
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	client, err := r.handshake(ctx, conn, signer, keys)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	return r.listReferences(ctx, client)
}

func (r Remote) handshake(ctx context.Context, conn net.Conn, signer ssh.Signer, keys *hostKeys) (*ssh.Client, error) {
	config := &ssh.ClientConfig{
		User: r.user,
		Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// Never ssh.InsecureIgnoreHostKey: that nothing is checked is a decision of
		// the options and remembered with them.
		HostKeyCallback:   keys.check,
		HostKeyAlgorithms: keys.algorithms(),
		ClientVersion:     "SSH-2.0-weir",
	}
	c, channels, requests, err := ssh.NewClientConn(conn, r.Address(), config)
	if err == nil {
		return ssh.NewClient(c, channels, requests), nil
	}
	var kinds *ssh.AlgorithmNegotiationError
	switch {
	case keys.problem != "":
		return nil, r.fail(ErrHostKey, keys.problem, "check the host; if its key has changed, ask the operator of this service to change known_hosts", err)
	case ctx.Err() != nil || isNetwork(err):
		return nil, r.connectionError(ctx, err)
	case errors.As(err, &kinds) && len(keys.known) > 0:
		return nil, r.fail(ErrHostKey, "shows another kind of host key than the one that is known, or shares no algorithm with us", "ask the operator of this service to check known_hosts", err)
	case !keys.seen:
		return nil, r.fail(ErrNotGit, "does not speak SSH as we do", "check host and port", err)
	}
	// The library has no type for it: past the host key, what is left to be
	// refused by an answer is the login.
	return nil, r.fail(ErrInvalidCredentials, "refuses the SSH key", "add its public half to the repository or to the account that reads it", err)
}

// listReferences runs git-upload-pack on the server and reads the beginning of
// what it says.
func (r Remote) listReferences(ctx context.Context, client *ssh.Client) error {
	session, err := client.NewSession()
	if err != nil {
		return r.sessionError(ctx, err)
	}
	defer func() { _ = session.Close() }()
	output, err := session.StdoutPipe()
	if err != nil {
		return r.sessionError(ctx, err)
	}
	input, err := session.StdinPipe()
	if err != nil {
		return r.sessionError(ctx, err)
	}
	if err := session.Start("git-upload-pack " + quote(r.remotePath())); err != nil {
		return r.sessionError(ctx, err)
	}
	err = readAdvertisement(output, false)
	if err == nil {
		// A flush says that nothing is wanted, and lets the program end in peace.
		_, _ = io.WriteString(input, "0000")
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return r.verdict(ctx, err)
	}
	return r.exitError(ctx, session.Wait())
}

// exitError explains a program that ended without a word. What it wrote to its
// error output differs from host to host, and is not read.
func (r Remote) exitError(ctx context.Context, err error) error {
	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return r.connectionError(ctx, ctx.Err())
	case errors.As(err, &exit) && exit.ExitStatus() == exitNoCommand:
		return r.fail(ErrNotGit, "is on a host without git", "check the host", err)
	case errors.As(err, &exit):
		return r.fail(ErrNotFound, "does not exist, or may not be read with this SSH key", "check the path and who may read it", err)
	}
	return r.fail(ErrNotGit, "ends its answer before it has begun", "check the URL", err)
}

// sessionError is for a server that lets us in and then does not do what Git
// needs.
func (r Remote) sessionError(ctx context.Context, err error) error {
	if ctx.Err() != nil || isNetwork(err) {
		return r.connectionError(ctx, err)
	}
	return r.fail(ErrNotGit, "is on a host that does not run git for this SSH key", "check the host, and that the key may read repositories", err)
}

// remotePath is the path as git would send it: one that begins with ~ in the
// home folder of that user, without the slash before it.
func (r Remote) remotePath() string {
	if strings.HasPrefix(r.path, "/~") {
		return r.path[1:]
	}
	return r.path
}

// quote makes one word of a path for any shell: everything stands in single
// quotes, but for single quotes and exclamation marks, which some shells expand
// even there.
func quote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}
