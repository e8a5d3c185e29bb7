// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
)

// Sentinels, for errors.Is.
var (
	// ErrDenied: the address is one that tenants may not reach.
	ErrDenied = errors.New("address is not allowed")
	// ErrUnreachable: the address is allowed, and does not answer.
	ErrUnreachable = errors.New("unreachable")
	// ErrRedirect: the server sent us to where we do not go.
	ErrRedirect = errors.New("redirect is not followed")
	// ErrPlainHTTP: the URL is not https.
	ErrPlainHTTP = errors.New("only https is allowed")
	// ErrTooLarge: the answer is longer than it may be.
	ErrTooLarge = errors.New("answer is too large")
	// ErrPolicy: the operator's policy contradicts itself or cannot be read.
	ErrPolicy = errors.New("policy for tenants' addresses")
)

// DeniedError says that no connection was attempted, and why.
type DeniedError struct {
	// Host is what the tenant wrote.
	Host string
	// Kind is what it is or leads to.
	Kind Kind
}

// Error gives the sentence that the tenant reads. It does not contain what the
// name resolved to.
func (e *DeniedError) Error() string {
	problem, remedy := e.Kind.explain()
	return fmt.Sprintf("%q %s; %s", clipped(e.Host), problem, remedy)
}

// Is makes errors.Is(err, ErrDenied) true.
func (e *DeniedError) Is(target error) bool { return target == ErrDenied }

// UnreachableError says that an allowed address did not answer.
type UnreachableError struct {
	Host    string
	Problem string
	cause   error
}

// Error gives the sentence that the tenant reads. The cause is not part of it:
// it names IP addresses, and those of our resolvers.
func (e *UnreachableError) Error() string { return fmt.Sprintf("%q %s", clipped(e.Host), e.Problem) }

// Is makes errors.Is(err, ErrUnreachable) true.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

// Unwrap gives the cause.
func (e *UnreachableError) Unwrap() error { return e.cause }

// Timeout says whether it was silence that ended the attempt.
func (e *UnreachableError) Timeout() bool { return isTimeout(e.cause) }

// unreachable puts a failed lookup or connection into words.
func unreachable(host string, cause error) error {
	problem := "cannot be reached"
	var dns *net.DNSError
	switch {
	case isTimeout(cause):
		problem = "did not answer in time"
	case errors.Is(cause, context.Canceled):
		problem = "was not waited for"
	case errors.As(cause, &dns) && dns.IsNotFound:
		problem = "has no address; check the name"
	case errors.As(cause, &dns):
		problem = "could not be looked up"
	case errors.Is(cause, syscall.ECONNREFUSED):
		problem = "refused the connection; check the port"
	}
	return &UnreachableError{Host: host, Problem: problem, cause: cause}
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.As(err, &timeout) && timeout.Timeout()
}

// RedirectError says that a redirect was not followed.
type RedirectError struct {
	// Problem says what is wrong with it.
	Problem string
}

// Error gives the sentence that the tenant reads. Where the redirect leads is
// the server's text and stays out of it.
func (e *RedirectError) Error() string {
	return "the server redirects " + e.Problem + "; use the address that it redirects to"
}

// Is makes errors.Is(err, ErrRedirect) true.
func (e *RedirectError) Is(target error) bool { return target == ErrRedirect }

// clipped keeps a message readable whatever a tenant wrote.
func clipped(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
