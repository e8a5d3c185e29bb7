// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"
)

// site is an HTTP server that records what arrives.
type site struct {
	*httptest.Server
	seen chan http.Header
	port string
}

func newSite(t *testing.T, secure bool, answer http.HandlerFunc) *site {
	t.Helper()
	s := &site{seen: make(chan http.Header, 16)}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.seen <- r.Header.Clone()
		answer(w, r)
	})
	if secure {
		s.Server = httptest.NewTLSServer(handler)
	} else {
		s.Server = httptest.NewServer(handler)
	}
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	s.port = u.Port()
	return s
}

func (s *site) roots() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return pool
}

func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }

func redirectTo(target string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, target, http.StatusFound) }
}

// get asks with a credential of every kind.
func get(t *testing.T, client *http.Client, target string) (string, error) {
	t.Helper()
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.SetBasicAuth("someone", "canary-password")
	req.Header.Set("Cookie", "canary=1")
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func resolverFor(hosts ...string) *names {
	n := &names{answers: map[string][][]string{}}
	for _, host := range hosts {
		n.answers[host+"."] = [][]string{{"127.0.0.1"}}
	}
	return n
}

func TestCredentialsStayWithTheirOrigin(t *testing.T) {
	last := newSite(t, false, ok)
	for _, c := range []struct {
		name, from, to string
		kept           bool
	}{
		{"same origin", "git.example", "/other", true},
		{"another host", "git.example", "http://evil.example:PORT/", false},
		{"a subdomain", "git.example", "http://pages.git.example:PORT/", false},
		{"another port", "git.example", "http://git.example:" + last.port + "/", false},
		{"an IP address", "git.example", "http://127.0.0.1:PORT/", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			var first *site
			first = newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/start" {
					ok(w, r)
					return
				}
				http.Redirect(w, r, strings.ReplaceAll(c.to, "PORT", first.port), http.StatusTemporaryRedirect)
			})
			d := dialerOf(t, Policy{AllowLoopback: true, Resolver: resolverFor("git.example", "evil.example", "pages.git.example")})
			body, err := get(t, d.HTTPClient(HTTPOptions{AllowHTTP: true}), "http://"+c.from+":"+first.port+"/start")
			if err != nil || body != "ok" {
				t.Fatalf("%q, %v", body, err)
			}
			if h := <-first.seen; h.Get("Authorization") == "" {
				t.Fatal("the first request had no credential")
			}
			second := first
			if c.name == "another port" {
				second = last
			}
			h := <-second.seen
			if kept := h.Get("Authorization") != "" && h.Get("Cookie") != ""; kept != c.kept {
				t.Errorf("credentials kept: %v, want %v", kept, c.kept)
			}
			if !c.kept && (h.Get("Authorization") != "" || h.Get("Cookie") != "") {
				t.Error("a credential went along")
			}
			if h.Get("Referer") != "" {
				t.Errorf("Referer is %q", h.Get("Referer"))
			}
		})
	}
}

// A → B → A: the credential does not come back, since B chose the path.
func TestCredentialsDoNotComeBack(t *testing.T) {
	var a, b *site
	a = newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/start" {
			http.Redirect(w, r, "http://b.example:"+b.port+"/", http.StatusFound)
			return
		}
		ok(w, r)
	})
	b = newSite(t, false, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://a.example:"+a.port+"/delete-everything", http.StatusFound)
	})
	d := dialerOf(t, Policy{AllowLoopback: true, Resolver: resolverFor("a.example", "b.example")})
	if _, err := get(t, d.HTTPClient(HTTPOptions{AllowHTTP: true}), "http://a.example:"+a.port+"/start"); err != nil {
		t.Fatal(err)
	}
	<-a.seen
	if h := <-a.seen; h.Get("Authorization") != "" {
		t.Error("the credential came back")
	}
}

func TestRedirectToLoopback(t *testing.T) {
	port, untouched := witness(t)
	for _, target := range []string{"http://127.0.0.1:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://2130706433:" + port, "http://inside.example:" + port} {
		// The first hop is on 127.0.0.2, which stands for a public address.
		listener, err := net.Listen("tcp", "127.0.0.2:0")
		if err != nil {
			t.Fatal(err)
		}
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: redirectTo(target)}}
		server.Start()
		d := dialerOf(t, Policy{Resolver: resolverFor("inside.example"), Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}})
		_, err = get(t, d.HTTPClient(HTTPOptions{AllowHTTP: true}), server.URL)
		if !errors.Is(err, ErrDenied) {
			t.Errorf("%s: %v, want %v", target, err, ErrDenied)
		}
		server.Close()
	}
	untouched()
}

func TestRedirectsThatAreNotFollowed(t *testing.T) {
	plain := newSite(t, false, ok)
	loop := newSite(t, false, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path+"x", http.StatusFound) })
	toHTTP := newSite(t, true, redirectTo(plain.URL))
	withUser := newSite(t, false, redirectTo("http://root:toor@127.0.0.1:"+plain.port))
	file := newSite(t, false, redirectTo("file:///etc/passwd"))
	away := newSite(t, false, redirectTo(plain.URL))
	d := dialerOf(t, Policy{AllowLoopback: true})
	for name, c := range map[string]struct {
		url string
		o   HTTPOptions
	}{
		"too many":       {loop.URL + "/", HTTPOptions{AllowHTTP: true, MaxRedirects: 2}},
		"https to http":  {toHTTP.URL, HTTPOptions{AllowHTTP: true, RootCAs: toHTTP.roots()}},
		"user name":      {withUser.URL, HTTPOptions{AllowHTTP: true}},
		"file":           {file.URL, HTTPOptions{AllowHTTP: true}},
		"another origin": {away.URL, HTTPOptions{AllowHTTP: true, SameOrigin: true}},
	} {
		if _, err := get(t, d.HTTPClient(c.o), c.url); !errors.Is(err, ErrRedirect) {
			t.Errorf("%s: %v, want %v", name, err, ErrRedirect)
		}
	}
	if got := len(loop.seen); got != 3 {
		t.Errorf("asked %d times, want the first and 2 redirects", got)
	}
	if got := len(plain.seen); got != 0 {
		t.Errorf("the target of a refused redirect saw %d requests", got)
	}
}

func TestPlainHTTPAndProxies(t *testing.T) {
	plain, proxy := newSite(t, false, ok), newSite(t, false, ok)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, proxy.URL)
	}
	d := dialerOf(t, Policy{AllowLoopback: true})
	if _, err := get(t, d.HTTPClient(HTTPOptions{}), plain.URL); !errors.Is(err, ErrPlainHTTP) {
		t.Errorf("plain http: %v, want %v", err, ErrPlainHTTP)
	}
	if len(plain.seen) != 0 {
		t.Error("the plain request was sent")
	}
	// The standard library reads the environment once for a process and leaves
	// loopback out, so what is certain is that the transport has no proxy function.
	if d.Transport(HTTPOptions{}).Proxy != nil {
		t.Error("the transport has a proxy")
	}
}

func TestLimitsOfAnswers(t *testing.T) {
	body := func(n int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("x", n)) }
	}
	bomb := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, strings.Repeat("x", 1<<20))
		_ = z.Close()
	}
	headers := func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 200<<10)) }
	d := dialerOf(t, Policy{AllowLoopback: true})
	o := HTTPOptions{AllowHTTP: true, MaxBody: 1000}
	if got, err := get(t, d.HTTPClient(o), newSite(t, false, body(1000)).URL); err != nil || len(got) != 1000 {
		t.Errorf("what fits: %d bytes, %v", len(got), err)
	}
	for name, answer := range map[string]http.HandlerFunc{"one too many": body(1001), "compressed": bomb} {
		if got, err := get(t, d.HTTPClient(o), newSite(t, false, answer).URL); !errors.Is(err, ErrTooLarge) || len(got) != 1000 {
			t.Errorf("%s: %d bytes, %v, want %v", name, len(got), err, ErrTooLarge)
		}
	}
	if _, err := get(t, d.HTTPClient(o), newSite(t, false, headers).URL); err == nil {
		t.Error("headers of 200 KiB passed")
	}
}

func TestDeadlineOfAnExchange(t *testing.T) {
	release := make(chan struct{})
	stuck := newSite(t, false, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	d := dialerOf(t, Policy{AllowLoopback: true})
	_, err := get(t, d.HTTPClient(HTTPOptions{AllowHTTP: true, Timeout: 50 * time.Millisecond}), stuck.URL)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestTransportChecksCertificates(t *testing.T) {
	server := newSite(t, true, ok)
	server.Config.ErrorLog = nil
	d := dialerOf(t, Policy{AllowLoopback: true})
	var unknown *tls.CertificateVerificationError
	if _, err := get(t, d.HTTPClient(HTTPOptions{}), server.URL); !errors.As(err, &unknown) {
		t.Errorf("unknown authority: %v", err)
	}
	if body, err := get(t, d.HTTPClient(HTTPOptions{RootCAs: server.roots()}), server.URL); err != nil || body != "ok" {
		t.Errorf("known authority: %q, %v", body, err)
	}
}

func TestGuardForTransportsThatAddCredentials(t *testing.T) {
	target := newSite(t, false, ok)
	away := newSite(t, false, redirectTo(target.URL))
	d := dialerOf(t, Policy{AllowLoopback: true})
	stream := func(r *http.Request) bool { return r.URL.Query().Has("watch") }
	client := &http.Client{Transport: Guard(d.Transport(HTTPOptions{}), Limits{AllowHTTP: true, NoRedirects: true, MaxBody: 1, Unlimited: stream})}
	if _, err := get(t, client, away.URL); !errors.Is(err, ErrRedirect) {
		t.Errorf("redirect: %v, want %v", err, ErrRedirect)
	}
	if len(target.seen) != 0 {
		t.Error("the redirect was followed")
	}
	if _, err := get(t, client, target.URL); !errors.Is(err, ErrTooLarge) {
		t.Errorf("limited: %v, want %v", err, ErrTooLarge)
	}
	if body, err := get(t, client, target.URL+"?watch=true"); err != nil || body != "ok" {
		t.Errorf("unlimited: %q, %v", body, err)
	}
}
