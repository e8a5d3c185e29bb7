// SPDX-License-Identifier: Apache-2.0

package gitserve_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/weir-gitops/weir/internal/gitserve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const repositoryName = "team/app.git"

// serve runs a server over a folder with one repository of one commit.
func serve(t *testing.T, push bool) (*gitserve.Server, *gitserve.Repository) {
	t.Helper()
	root := t.TempDir()
	repo, err := gitserve.Create(t.Context(), filepath.Join(root, repositoryName), gitserve.Commit{
		Message: "First",
		Files:   map[string]string{"app/a.yaml": "a: 1\n", "README.md": "hello\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gitserve.Listen(t.Context(), gitserve.Options{Root: root, Address: "127.0.0.1:0", Push: push})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the server ended with %v", err)
		}
	})
	return server, repo
}

// git runs the git program as a user would.
func git(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "LC_ALL=C",
		"GIT_AUTHOR_NAME=T", "GIT_AUTHOR_EMAIL=t@example.com", "GIT_COMMITTER_NAME=T", "GIT_COMMITTER_EMAIL=t@example.com")
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git(t, dir, args...)
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func TestCloneSeesTheCommitsOnDisk(t *testing.T) {
	server, repo := serve(t, false)
	second, err := repo.Commit(t.Context(), gitserve.Commit{
		Message: "Second", Files: map[string]string{"app/b.yaml": "b: 2\n"}, Removed: []string{"README.md"},
	})
	if err != nil {
		t.Fatal(err)
	}

	work := filepath.Join(t.TempDir(), "clone")
	mustGit(t, "", "clone", "--quiet", server.URL(repositoryName), work)

	if got := mustGit(t, work, "rev-parse", "HEAD"); got != second {
		t.Errorf("the clone is at %s, the repository at %s", got, second)
	}
	if got, want := mustGit(t, work, "ls-files"), "app/a.yaml\napp/b.yaml"; got != want {
		t.Errorf("the clone holds %q, want %q", got, want)
	}
	if got, want := mustGit(t, work, "log", "--format=%s"), "Second\nFirst"; got != want {
		t.Errorf("the clone's history is %q, want %q", got, want)
	}
}

func TestPushOnlyWhereAllowed(t *testing.T) {
	for _, tt := range []struct {
		name  string
		push  bool
		bytes int
	}{
		{"allowed", true, 100},
		// More than git sends in one piece: the body comes in chunks.
		{"allowed, large", true, 3 << 20},
		{"not allowed", false, 100},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, repo := serve(t, tt.push)
			before, err := repo.Head(t.Context(), gitserve.DefaultBranch)
			if err != nil {
				t.Fatal(err)
			}
			work := filepath.Join(t.TempDir(), "clone")
			mustGit(t, "", "clone", "--quiet", server.URL(repositoryName), work)
			noise := make([]byte, tt.bytes)
			if _, err := rand.Read(noise); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(work, "noise"), []byte(base64.StdEncoding.EncodeToString(noise)), 0o600); err != nil {
				t.Fatal(err)
			}
			mustGit(t, work, "add", "noise")
			mustGit(t, work, "commit", "--quiet", "--message=Noise")
			out, err := git(t, work, "push", "--quiet", "origin", "HEAD")

			want := before
			if tt.push {
				want = mustGit(t, work, "rev-parse", "HEAD")
			}
			if tt.push != (err == nil) {
				t.Errorf("push: %v\n%s", err, out)
			}
			if got, err := repo.Head(t.Context(), gitserve.DefaultBranch); err != nil || got != want {
				t.Errorf("the repository is at %s (%v), want %s", got, err, want)
			}
		})
	}
}

func TestOnlyTheProtocolIsServed(t *testing.T) {
	server, _ := serve(t, true)
	root := "http://" + server.Address()
	for _, tt := range []struct {
		name, method, url, host string
		want                    int
	}{
		{"the advertisement", "GET", "/team/app.git/info/refs?service=git-upload-pack", "", http.StatusOK},
		{"as localhost", "GET", "/team/app.git/info/refs?service=git-upload-pack", "localhost", http.StatusOK},
		{"a repository that is not there", "GET", "/other.git/info/refs?service=git-upload-pack", "", http.StatusNotFound},
		{"the older protocol", "GET", "/team/app.git/info/refs", "", http.StatusNotFound},
		{"another service", "GET", "/team/app.git/info/refs?service=git-shell", "", http.StatusNotFound},
		{"a file", "GET", "/team/app.git/config", "", http.StatusNotFound},
		{"a file, by post", "POST", "/team/app.git/config", "", http.StatusNotFound},
		{"the folder", "GET", "/", "", http.StatusNotFound},
		{"a name that climbs out", "GET", "/team/../../x.git/info/refs?service=git-upload-pack", "", http.StatusNotFound},
		{"the same, encoded", "GET", "/team/%2e%2e/%2e%2e/x.git/info/refs?service=git-upload-pack", "", http.StatusNotFound},
		{"a hidden folder", "GET", "/.git/info/refs?service=git-upload-pack", "", http.StatusNotFound},
		{"another site's name for this machine", "GET", "/team/app.git/info/refs?service=git-upload-pack", "rebound.example.com", http.StatusMisdirectedRequest},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), tt.method, root+tt.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = tt.host
			res, err := http.DefaultTransport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			if res.StatusCode != tt.want {
				t.Errorf("answered %s, want %d", res.Status, tt.want)
			}
		})
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
}

func TestListenRefuses(t *testing.T) {
	busy, _ := serve(t, false)
	for _, tt := range []struct {
		name, address string
		root          string
		want          error
	}{
		{"an address that others reach", "0.0.0.0:0", t.TempDir(), gitserve.ErrNotLoopback},
		{"a name", "example.com:80", t.TempDir(), gitserve.ErrNotLoopback},
		{"a folder that is not there", "127.0.0.1:0", filepath.Join(t.TempDir(), "x"), fs.ErrNotExist},
		{"a port that is taken", busy.Address(), t.TempDir(), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := gitserve.Listen(t.Context(), gitserve.Options{Root: tt.root, Address: tt.address})
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestWithoutGit(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if err := gitserve.Check(t.Context()); !errors.Is(err, gitserve.ErrNoGit) {
		t.Errorf("got %v, want %v", err, gitserve.ErrNoGit)
	}
}
