// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	defaultTimeout      = 30 * time.Second
	defaultMaxBody      = 1 << 20
	defaultMaxHeader    = 64 << 10
	defaultMaxRedirects = 5
)

// HTTPOptions of a client. Zero values are the defaults.
type HTTPOptions struct {
	// Timeout of a whole exchange, redirects and body included; 30 seconds.
	Timeout time.Duration
	// MaxBody bytes of an answer, after decompression; 1 MiB.
	MaxBody int64
	// MaxHeader bytes of an answer's headers; 64 KiB.
	MaxHeader int64
	// MaxRedirects in a row; 5.
	MaxRedirects int
	// SameOrigin refuses redirects to another origin instead of following them
	// without the credential.
	SameOrigin bool
	// AllowHTTP accepts plain http: for a laptop.
	AllowHTTP bool
	// RootCAs in place of the system's.
	RootCAs *x509.CertPool
}

func (o HTTPOptions) withDefaults() HTTPOptions {
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = defaultMaxBody
	}
	if o.MaxHeader <= 0 {
		o.MaxHeader = defaultMaxHeader
	}
	if o.MaxRedirects <= 0 {
		o.MaxRedirects = defaultMaxRedirects
	}
	return o
}

// HTTPClient makes a client for URLs that tenants choose. It keeps its
// connections for a while; who makes one for a single request closes them with
// CloseIdleConnections.
func (d *Dialer) HTTPClient(o HTTPOptions) *http.Client {
	o = o.withDefaults()
	return &http.Client{
		Transport:     Guard(d.Transport(o), Limits{MaxBody: o.MaxBody, AllowHTTP: o.AllowHTTP}),
		CheckRedirect: redirects{max: o.MaxRedirects, sameOrigin: o.SameOrigin}.check,
		Timeout:       o.Timeout,
	}
}

// Transport makes the part of HTTPClient that connects. Alone it has no limit on
// bodies and knows no redirects.
func (d *Dialer) Transport(o HTTPOptions) *http.Transport {
	o = o.withDefaults()
	return &http.Transport{
		DialContext: d.DialContext,
		// A proxy from the environment would resolve and connect in our place.
		Proxy:                  nil,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: o.RootCAs},
		TLSHandshakeTimeout:    d.timeout,
		ResponseHeaderTimeout:  o.Timeout,
		MaxResponseHeaderBytes: o.MaxHeader,
		MaxIdleConnsPerHost:    2,
		IdleConnTimeout:        30 * time.Second,
		ForceAttemptHTTP2:      true,
	}
}

// redirects decides about each redirect. That the address is allowed is for the
// dialer to say when it is dialled.
type redirects struct {
	max        int
	sameOrigin bool
}

// check is called with the next request, into which the client has copied the
// headers of the first, and may still take some away.
func (r redirects) check(next *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	switch {
	case len(via) > r.max:
		return &RedirectError{Problem: "too many times"}
	case next.URL.Scheme != "https" && next.URL.Scheme != "http":
		return &RedirectError{Problem: "to something that is not https"}
	case last.Scheme == "https" && next.URL.Scheme != "https":
		return &RedirectError{Problem: "from https to http"}
	case next.URL.User != nil:
		// The client would send what the server wrote there as our credential.
		return &RedirectError{Problem: "to an address with a user name in it"}
	}
	same := origin(next.URL) == origin(first)
	for _, request := range via {
		// Once away, always away: who sends us back chooses what we ask for
		// there with the credential.
		same = same && origin(request.URL) == origin(first)
	}
	if !same {
		if r.sameOrigin {
			return &RedirectError{Problem: "to another host, port or scheme"}
		}
		for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "Private-Token", "X-Api-Key"} {
			next.Header.Del(name)
		}
	}
	// The path of a private repository is no business of the next server's.
	next.Header.Del("Referer")
	return nil
}

// origin is scheme, host and port. The standard client also lets credentials
// pass to subdomains and other ports; on shared hosts those are other people.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + strings.ToLower(u.Hostname()) + ":" + port
}
