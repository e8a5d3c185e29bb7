// SPDX-License-Identifier: Apache-2.0

// Package githttps is a Git server inside a test that asks for a password, over
// TLS, with the real git behind it:
//
//	client ── TLS on loopback ── Server: who are you? ── gitserve ── git http-backend
//
// As Git hosts do, it keeps silent about what one may not see. Who may see what
// can change while it runs, as when a tenant's password is revoked.
package githttps

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/internal/gitserve"
)

// Login is who may read. The user of a token is whatever the client says: Git
// hosts look at the token alone.
type Login struct {
	User, Password string
	Token          bool
}

// Server is such a server.
type Server struct {
	// Authorities sign its certificate.
	Authorities *x509.CertPool

	url    string
	mu     sync.Mutex
	logins []Login
}

// Start runs a server with some repositories until the test ends.
func Start(t testing.TB, repositories ...string) *Server {
	t.Helper()
	target := serve(t, repositories)
	transport := &http.Transport{}
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	s := &Server{Authorities: x509.NewCertPool()}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		if !s.knows(user, password) {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	s.Authorities.AddCert(server.Certificate())
	s.url = server.URL
	return s
}

// serve runs the Git server behind.
func serve(t testing.TB, repositories []string) *url.URL {
	t.Helper()
	fail := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	for _, name := range repositories {
		_, err := gitserve.Create(t.Context(), filepath.Join(root, name), gitserve.Commit{Message: "x", Files: map[string]string{"deploy/a.yaml": "{}"}})
		fail(err)
	}
	server, err := gitserve.Listen(t.Context(), gitserve.Options{Root: root, Address: "127.0.0.1:0"})
	fail(err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	target, err := url.Parse(server.URL(""))
	fail(err)
	return target
}

// URL is the address of a repository.
func (s *Server) URL(repository string) string { return s.url + "/" + repository }

// Accept lets in these logins, and from now on no others.
func (s *Server) Accept(logins ...Login) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins = slices.Clone(logins)
}

func (s *Server) knows(user, password string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.logins, func(l Login) bool {
		return password != "" && l.Password == password && (l.Token || l.User == user)
	})
}
