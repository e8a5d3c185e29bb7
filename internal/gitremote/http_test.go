// SPDX-License-Identifier: Apache-2.0

package gitremote_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit/gitssh"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// options let tests reach this machine.
func options(t *testing.T) gitremote.Options {
	t.Helper()
	d, err := tenantnet.NewDialer(tenantnet.Policy{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	return gitremote.Options{Dialer: d, Timeout: 20 * time.Second, AllowHTTP: true, AcceptAnyHostKey: true}
}

// check calls Check and looks for the canary in what it says.
func check(t *testing.T, repository string, c gitremote.Credential, o gitremote.Options) error {
	t.Helper()
	err := gitremote.Check(t.Context(), repository, c, o)
	if err != nil {
		var e *gitremote.Error
		if !errors.As(err, &e) {
			t.Errorf("%v is not an *Error", err)
		}
		if strings.Contains(err.Error(), canary) {
			t.Errorf("the secret is in %q", err)
		}
	}
	return err
}

// gitServer is the real git behind HTTP, with one repository, a.git.
func gitServer(t *testing.T) *url.URL {
	t.Helper()
	root := t.TempDir()
	if _, err := gitserve.Create(t.Context(), filepath.Join(root, "a.git"), gitserve.Commit{Message: "x", Files: map[string]string{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	server, err := gitserve.Listen(t.Context(), gitserve.Options{Root: root, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(server.URL(""))
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// protected is gitServer over TLS, for one user only. As Git hosts do it keeps
// silent about what the user may not see. What moved is redirected.
func protected(t *testing.T, protocol0 bool) (*httptest.Server, gitremote.Options) {
	t.Helper()
	transport := &http.Transport{}
	target := gitServer(t)
	proxy := &httputil.ReverseProxy{Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		if protocol0 {
			r.Out.Header.Del("Git-Protocol")
		}
	}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, moved := strings.CutPrefix(r.URL.Path, "/old"); moved {
			http.Redirect(w, r, rest+"?"+r.URL.RawQuery, http.StatusMovedPermanently)
			return
		}
		user, password, _ := r.BasicAuth()
		switch {
		case user == "blocked":
			w.WriteHeader(http.StatusForbidden)
		case user != "me" || password != canary:
			w.Header().Set("WWW-Authenticate", `Basic realm="`+password+`"`)
			http.Error(w, "wrong: "+password, http.StatusUnauthorized)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(func() { server.Close(); transport.CloseIdleConnections() })
	o := options(t)
	o.RootCAs = x509.NewCertPool()
	o.RootCAs.AddCert(server.Certificate())
	return server, o
}

func TestRealGitOverHTTPS(t *testing.T) {
	for name, protocol0 := range map[string]bool{"protocol 2": false, "protocol 0": true} {
		t.Run(name, func(t *testing.T) {
			server, o := protected(t, protocol0)
			if err := check(t, server.URL+"/a.git", gitremote.Credential{Username: "me", Password: canary}, o); err != nil {
				t.Errorf("the right password: %v", err)
			}
		})
	}
	server, o := protected(t, false)
	for _, c := range []struct {
		path       string
		credential gitremote.Credential
		want       error
	}{
		{"/a.git/", gitremote.Credential{Username: "me", Password: canary}, nil},
		// Moved on the same host: the password goes along.
		{"/old/a.git", gitremote.Credential{Username: "me", Password: canary}, nil},
		{"/a.git", gitremote.Credential{Username: "me", Password: canary + "x"}, gitremote.ErrInvalidCredentials},
		{"/a.git", gitremote.Credential{}, gitremote.ErrInvalidCredentials},
		{"/a.git", gitremote.Credential{Username: "blocked", Password: canary}, gitremote.ErrInvalidCredentials},
		{"/a.git", gitremote.Credential{SSHPrivateKey: canary}, gitremote.ErrInvalidCredentials},
		{"/a.git", gitremote.Credential{Username: "me:" + canary}, gitremote.ErrInvalidCredentials},
		{"/b.git", gitremote.Credential{Username: "me", Password: canary}, gitremote.ErrNotFound},
		{"/b", gitremote.Credential{Username: "me", Password: canary}, gitremote.ErrNotFound},
	} {
		if err := check(t, server.URL+c.path, c.credential, o); !errors.Is(err, c.want) {
			t.Errorf("%s with %v: %v, want %v", c.path, c.credential, err, c.want)
		}
	}
	o.RootCAs = nil
	if err := check(t, server.URL+"/a.git", gitremote.Credential{Username: "me", Password: canary}, o); !errors.Is(err, gitremote.ErrUnreachable) {
		t.Errorf("unknown authority: %v", err)
	}
}

func TestPlainHTTPNeedsTheOption(t *testing.T) {
	repository := gitServer(t).String() + "a.git"
	o := options(t)
	if err := check(t, repository, gitremote.Credential{}, o); err != nil {
		t.Errorf("with the option: %v", err)
	}
	o.AllowHTTP = false
	if err := check(t, repository, gitremote.Credential{}, o); !errors.Is(err, gitremote.ErrInvalidURL) {
		t.Errorf("without: %v", err)
	}
}

func TestAnswersThatAreNotGit(t *testing.T) {
	const service = "001e# service=git-upload-pack\n0000"
	hash := strings.Repeat("0", 40)
	for name, c := range map[string]struct {
		status     int
		kind, body string
		want       error
	}{
		"empty repository":     {200, "", service + "0000", nil},
		"first reference":      {200, "", service + "003d" + hash + " refs/heads/main\n", nil},
		"with parameters":      {200, "application/x-git-upload-pack-advertisement; charset=utf-8", service + "0000", nil},
		"version 1":            {200, "", service + "000eversion 1\n", nil},
		"version 2, bare":      {200, "", "000eversion 2\n", nil},
		"a web page":           {200, "text/html", "<html>" + canary, gitremote.ErrNotGit},
		"a dumb server":        {200, "text/plain", hash + "\trefs/heads/main\n", gitremote.ErrNotGit},
		"another service":      {200, "", "001f# service=git-receive-pack\n0000", gitremote.ErrNotGit},
		"no service":           {200, "", "003d" + hash + " refs/heads/main\n", gitremote.ErrNotGit},
		"no flush":             {200, "", "001e# service=git-upload-pack\n000eversion 1\n", gitremote.ErrNotGit},
		"no hash":              {200, "", service + "000b" + "zz main", gitremote.ErrNotGit},
		"no length":            {200, "", "zzzz" + canary, gitremote.ErrNotGit},
		"length of 3":          {200, "", "0003", gitremote.ErrNotGit},
		"too long a line":      {200, "", "ffff" + strings.Repeat("x", 1<<16), gitremote.ErrNotGit},
		"cut off":              {200, "", "001e# serv", gitremote.ErrNotGit},
		"nothing":              {200, "", "", gitremote.ErrNotGit},
		"an error":             {200, "", service + "0016ERR " + canary + "\n", gitremote.ErrNotFound},
		"teapot":               {418, "", canary, gitremote.ErrNotGit},
		"gone":                 {410, "", canary, gitremote.ErrNotFound},
		"server error":         {502, "", canary, gitremote.ErrUnreachable},
		"too many requests":    {429, "", canary, gitremote.ErrUnreachable},
		"redirect to nowhere":  {302, "", canary, gitremote.ErrNotGit},
		"no content, no error": {204, "", "", gitremote.ErrNotGit},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.kind == "" {
					c.kind = "application/x-git-upload-pack-advertisement"
				}
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			if err := check(t, server.URL+"/a", gitremote.Credential{}, options(t)); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestPasswordFollowsNoRedirect(t *testing.T) {
	seen := make(chan *http.Request, 4)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen <- r }))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusMovedPermanently)
	}))
	defer server.Close()
	err := check(t, server.URL+"/a", gitremote.Credential{Username: "me", Password: canary}, options(t))
	if !errors.Is(err, gitremote.ErrInvalidURL) || !errors.Is(err, tenantnet.ErrRedirect) {
		t.Errorf("with a password: %v", err)
	}
	if len(seen) != 0 {
		t.Errorf("the other server was asked with %q", (<-seen).Header)
	}
	// Without a password there is nothing to lose, and the answer counts.
	if err := check(t, server.URL+"/a", gitremote.Credential{}, options(t)); !errors.Is(err, gitremote.ErrNotGit) {
		t.Errorf("without: %v", err)
	}
	if r := <-seen; r.Header.Get("Authorization") != "" {
		t.Error("a credential out of nowhere")
	}
}

func TestDeniedAddresses(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := options(t)
	if o.Dialer, err = tenantnet.NewDialer(tenantnet.Policy{}); err != nil {
		t.Fatal(err)
	}
	key := gitssh.NewKey(t, "ed25519")
	address := listener.Addr().String()
	for _, repository := range []string{"https://" + address + "/a", "http://" + address + "/a", "ssh://git@" + address + "/a", "https://169.254.169.254/a", "git@127.0.0.1:a"} {
		err := check(t, repository, gitremote.Credential{Username: "me", Password: canary, SSHPrivateKey: key.Private}, o)
		if !errors.Is(err, gitremote.ErrDenied) {
			t.Errorf("%s: %v, want %v", repository, err, gitremote.ErrDenied)
		}
	}
	// Whoever had connected would wait in the queue before us.
	own, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	first, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if first.RemoteAddr().String() != own.LocalAddr().String() {
		t.Error("a connection was made to a denied address")
	}
	_, _, _ = own.Close(), first.Close(), listener.Close()
}
