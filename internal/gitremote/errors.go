// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

// What can be wrong with a remote, for errors.Is.
var (
	// ErrInvalidURL: the address is not one that is taken. Nothing was sent.
	ErrInvalidURL = errors.New("invalid repository URL")
	// ErrNotFound: the server knows no such repository, or does not tell.
	ErrNotFound = errors.New("repository not found")
	// ErrInvalidCredentials: the credential is unusable, or the server refuses it.
	ErrInvalidCredentials = errors.New("invalid credentials")
	// ErrUnreachable: the server cannot be reached, fails, or does not answer in
	// time. The only one that is worth trying again.
	ErrUnreachable = errors.New("repository unreachable")
	// ErrDenied: the address is one that tenants may not reach. Nothing was sent.
	ErrDenied = errors.New("address denied")
	// ErrNotGit: what answers is not a Git repository.
	ErrNotGit = errors.New("not a Git repository")
	// ErrHostKey: the server's host key is unknown, revoked or another's.
	ErrHostKey = errors.New("host key not accepted")
)

// Error is what went wrong with one remote.
type Error struct {
	// Kind is one of the sentinels.
	Kind error
	// Remote is the address in its canonical form; empty where there is none.
	Remote string
	// Problem and Remedy are for the tenant.
	Problem, Remedy string
	cause           error
}

// Error gives the sentence that the tenant reads. The cause stays out of it, as
// other people's texts.
func (e *Error) Error() string {
	text := "repository "
	if e.Remote != "" {
		text += e.Remote + " "
	}
	text += e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

// fail makes an error about the remote.
func (r Remote) fail(kind error, problem, remedy string, cause error) error {
	return &Error{Kind: kind, Remote: r.String(), Problem: problem, Remedy: remedy, cause: cause}
}

// connectionError puts a failed connection or request into words.
func (r Remote) connectionError(ctx context.Context, err error) error {
	var denied *tenantnet.DeniedError
	var unreachable *tenantnet.UnreachableError
	var redirect *tenantnet.RedirectError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &denied):
		return r.fail(ErrDenied, "is not allowed: "+denied.Error(), "", err)
	case errors.As(err, &redirect):
		return r.fail(ErrInvalidURL, "cannot be used as it is: "+redirect.Error(), "", err)
	case errors.Is(err, tenantnet.ErrPlainHTTP):
		return r.fail(ErrInvalidURL, "leads to plain http", "use https://", err)
	case ctx.Err() != nil || isTimeout(err):
		return r.fail(ErrUnreachable, "did not answer in time", "check that the host is up and can be reached from the Internet", err)
	case errors.As(err, &certificate):
		return r.fail(ErrUnreachable, "has a certificate that is not trusted", "use a certificate of a public authority, for this host name", err)
	case errors.As(err, &unreachable):
		return r.fail(ErrUnreachable, "cannot be reached: "+unreachable.Error(), "", err)
	}
	return r.fail(ErrUnreachable, "cannot be reached", "check host and port", err)
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// isNetwork tells a broken connection from an answer that was understood and
// refused.
func isNetwork(err error) bool {
	var network *net.OpError
	return isTimeout(err) || errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed)
}
