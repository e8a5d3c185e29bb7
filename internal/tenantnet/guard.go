// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"io"
	"net/http"
)

// Limits of what a server may do to us with its answers.
type Limits struct {
	// MaxBody bytes of an answer, after decompression; zero means no limit.
	MaxBody int64
	// Unlimited says which requests MaxBody is not for, such as watches, whose
	// answers do not end. Nil: none.
	Unlimited func(*http.Request) bool
	// AllowHTTP accepts plain http.
	AllowHTTP bool
	// NoRedirects makes an error of every redirect. It is for transports above
	// which a credential is added to each request, redirected or not, so that
	// nobody could keep it from going along.
	NoRedirects bool
}

// Guard wraps a transport so that it keeps the limits.
func Guard(next http.RoundTripper, l Limits) http.RoundTripper { return &guard{next: next, limits: l} }

type guard struct {
	next   http.RoundTripper
	limits Limits
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != "https" && !g.limits.AllowHTTP {
		// The contract of a RoundTripper: the body is closed also on errors.
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, ErrPlainHTTP
	}
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if g.limits.NoRedirects && isRedirect(res.StatusCode) {
		_ = res.Body.Close()
		return nil, &RedirectError{Problem: "elsewhere"}
	}
	unlimited := g.limits.MaxBody <= 0 || g.limits.Unlimited != nil && g.limits.Unlimited(req)
	// After a protocol switch the body is the connection, in both directions.
	if !unlimited && res.StatusCode != http.StatusSwitchingProtocols {
		res.Body = &limitedBody{body: res.Body, left: g.limits.MaxBody}
	}
	return res, nil
}

// CloseIdleConnections lets http.Client reach through to the transport.
func (g *guard) CloseIdleConnections() {
	if closer, ok := g.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func isRedirect(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return true
	}
	return false
}

// limitedBody fails where an answer goes on beyond the limit. Ending it there
// as if it were complete would let a cut-off answer pass for a whole one.
type limitedBody struct {
	body io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	// One byte more than allowed tells an answer that fits from one that does not.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.body.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}

// Close implements io.Closer.
func (b *limitedBody) Close() error { return b.body.Close() }
