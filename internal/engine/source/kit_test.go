// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// host is a name that the certificate of httptest is for, and that nobody but
// the test's resolver takes to this machine.
const host = "example.com"

// gitHost is a real Git server with a front: TLS, a password, and counts.
type gitHost struct {
	t      *testing.T
	folder string
	front  *httptest.Server
	// password is required where it is set.
	password string
	// hold keeps requests waiting until it is closed; nil does not.
	hold chan struct{}

	listings, packs, bytes atomic.Int64
	mu                     sync.Mutex
	seen                   []string
}

func newHost(t *testing.T) *gitHost {
	t.Helper()
	h := &gitHost{t: t, folder: t.TempDir()}
	server, err := gitserve.Listen(t.Context(), gitserve.Options{Root: h.folder, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(ctx) }()
	behind, err := url.Parse("http://" + server.Address())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(behind); r.Out.Host = behind.Host }, Transport: &http.Transport{DisableKeepAlives: true}}
	h.front = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.serve(w, r, proxy) }))
	t.Cleanup(func() {
		h.front.Close()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *gitHost) serve(w http.ResponseWriter, r *http.Request, next http.Handler) {
	h.mu.Lock()
	h.seen = append(h.seen, r.Method+" "+r.URL.Path)
	hold := h.hold
	h.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	if _, password, _ := r.BasicAuth(); h.password != "" && password != h.password {
		w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if strings.HasPrefix(r.URL.Path, "/moved/") {
		http.Redirect(w, r, strings.TrimPrefix(r.URL.RequestURI(), "/moved"), http.StatusMovedPermanently)
		return
	}
	if r.Method == http.MethodGet {
		h.listings.Add(1)
	} else {
		h.packs.Add(1)
	}
	next.ServeHTTP(&countingWriter{ResponseWriter: w, bytes: &h.bytes}, r)
}

type countingWriter struct {
	http.ResponseWriter
	bytes *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}

func (h *gitHost) requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.seen...)
}

func (h *gitHost) url(name string) string {
	_, port, _ := net.SplitHostPort(h.front.Listener.Addr().String())
	return "https://" + net.JoinHostPort(host, port) + "/" + name
}

// repository makes one with a first commit.
func (h *gitHost) repository(name string, files map[string]string) (*gitserve.Repository, string) {
	h.t.Helper()
	repo, err := gitserve.Create(h.t.Context(), filepath.Join(h.folder, name), gitserve.Commit{Message: "first", Files: files})
	if err != nil {
		h.t.Fatal(err)
	}
	h.git(name, "", "config", "uploadpack.allowFilter", "true")
	commit, err := repo.Head(h.t.Context(), gitserve.DefaultBranch)
	if err != nil {
		h.t.Fatal(err)
	}
	return repo, commit
}

// git runs git in a served repository.
func (h *gitHost) git(name, stdin string, args ...string) string {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), "git", args...)
	cmd.Dir, cmd.Stdin = filepath.Join(h.folder, name), strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.Output()
	if err != nil {
		h.t.Fatalf("git %v: %v", args, err)
	}
	return strings.TrimSpace(string(out))
}

// commitTree puts a tree that mktree is told of on the branch main.
func (h *gitHost) commitTree(name, tree string) string {
	h.t.Helper()
	id := h.git(name, tree, "mktree", "--missing")
	commit := h.git(name, "", "commit-tree", "-m", "x", id)
	h.git(name, "", "update-ref", "refs/heads/main", commit)
	return commit
}

func (h *gitHost) blob(name, content string) string {
	h.t.Helper()
	return h.git(name, content, "hash-object", "-w", "--stdin")
}

// names resolves host to this machine, and nothing else to anything.
type names struct{ asked atomic.Int64 }

func (n *names) LookupNetIP(_ context.Context, _, name string) ([]netip.Addr, error) {
	n.asked.Add(1)
	if name != host+"." {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

func (h *gitHost) options(t *testing.T, change ...func(*Options)) Options {
	t.Helper()
	o := Options{Folder: t.TempDir(), Limits: Limits{Timeout: time.Minute}}
	if h != nil {
		o.CAFile = filepath.Join(t.TempDir(), "ca.pem")
		block := &pem.Block{Type: "CERTIFICATE", Bytes: h.front.Certificate().Raw}
		if err := os.WriteFile(o.CAFile, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{AllowLoopback: true, Resolver: &names{}})
	if err != nil {
		t.Fatal(err)
	}
	o.Dialer = dialer
	for _, c := range change {
		c(&o)
	}
	return o
}

func (h *gitHost) cache(t *testing.T, change ...func(*Options)) *Cache {
	t.Helper()
	c, err := New(t.Context(), h.options(t, change...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// eventually polls where only another process could tell.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("never: " + what)
		}
	}
}
