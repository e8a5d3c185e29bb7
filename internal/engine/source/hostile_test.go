// SPDX-License-Identifier: Apache-2.0

package source

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// refuser is a Runner that starts nothing and remembers what it was to start.
type refuser struct {
	mu   sync.Mutex
	runs []string
}

func (r *refuser) Run(_ context.Context, command Command) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.runs = append(r.runs, strings.Join(command.Args, " "))
	return nil, &ProcessError{Verb: command.Args[0], cause: errors.New("refused")}
}

// starter lets the cache be opened.
func (r *refuser) ready(t *testing.T, o Options) *Cache {
	t.Helper()
	o.Runner = nil
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	c.runner = r
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestHostileURLsAndRevisionsStartNothing(t *testing.T) {
	var h *gitHost
	asked := &names{}
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{Resolver: asked})
	if err != nil {
		t.Fatal(err)
	}
	runner := &refuser{}
	c := runner.ready(t, h.options(t, func(o *Options) { o.Dialer = dialer }))
	id := strings.Repeat("a", 40)
	for _, url := range []string{
		"", "file:///etc/passwd", "/etc/passwd", "../x", "ext::sh -c id", "fd::17", "-oProxyCommand=id", "ssh://-oProxyCommand=id/x",
		"git@-oProxyCommand=id:x", "git@host:-x", "git://example.com/a", "http://example.com/a", "https://u:p@example.com/a",
		"https://example.com/a?b", "https://example.com/../a", "https://exa mple.com/a", "https://example.com/a\nb", "https://169.254.169.254/a",
		"https://127.0.0.1/a", "https://[::1]/a", "https://0x7f.1/a", "https://10.0.0.1/a", "ssh://git@127.0.0.1/a", "https://metadata.google.internal%2f/a",
	} {
		for name, call := range map[string]func(Repo) error{
			"Resolve": func(r Repo) error { _, err := c.Resolve(t.Context(), r, "main"); return err },
			"Short":   func(r Repo) error { _, err := c.Resolve(t.Context(), r, "abcdef01"); return err },
			"HEAD":    func(r Repo) error { _, err := c.Resolve(t.Context(), r, ""); return err },
		} {
			if err := call(Repo{Project: "p", URL: url}); !errors.Is(err, gitremote.ErrInvalidURL) && !errors.Is(err, gitremote.ErrDenied) {
				t.Errorf("%s(%q): %v", name, url, err)
			}
		}
	}
	for _, revision := range []string{
		"-x", "--upload-pack=id", "a b", "a..b", "a~1", "a^", "HEAD^{tree}", "a:b", "a\x00b", "a\nb", "@{u}", "@", "a@{1}", "*", "ma?n", "[a]", `a\b`,
		"/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a.", strings.Repeat("a", 256), "\xff",
	} {
		if _, err := c.Resolve(t.Context(), Repo{Project: "p", URL: "https://example.com/a"}, revision); !errors.Is(err, ErrInvalidRevision) {
			t.Errorf("Resolve(%q): %v", revision, err)
		}
		if err := c.Fetch(t.Context(), Repo{Project: "p", URL: "https://example.com/a"}, revision); !errors.Is(err, ErrInvalidRevision) {
			t.Errorf("Fetch(%q): %v", revision, err)
		}
	}
	if len(runner.runs) != 0 || asked.asked.Load() != 0 {
		t.Errorf("started %q, looked up %d names", runner.runs, asked.asked.Load())
	}
	// The runner is one that is asked: a good URL reaches it, once it was judged.
	if _, err := c.Resolve(t.Context(), Repo{Project: "p", URL: "https://93.184.215.14/a"}, id[:39]+"g"); len(runner.runs) == 0 {
		t.Errorf("a good URL starts nothing either: %v", err)
	}
}

func TestHostileTreesAreData(t *testing.T) {
	h := newHost(t)
	_, first := h.repository("a.git", map[string]string{"a.yaml": "a: 1\n"})
	mark := filepath.Join(t.TempDir(), "mark")
	// A filter that would run if anything were checked out.
	attributes := h.blob("a.git", "* filter=evil\n")
	hook := h.blob("a.git", "#!/bin/sh\ntouch "+mark+"\n")
	modules := h.blob("a.git", "[submodule \"x\"]\n\tpath = sub\n\turl = "+h.url("other.git")+"\n")
	pointer := h.blob("a.git", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
	link := h.blob("a.git", "/etc/passwd")
	lower, upper := h.blob("a.git", "lower"), h.blob("a.git", "upper")
	hooks := h.git("a.git", "100755 blob "+hook+"\tpost-checkout\n", "mktree")
	commit := h.commitTree("a.git", strings.Join([]string{
		"100644 blob " + attributes + "\t.gitattributes",
		"100644 blob " + modules + "\t.gitmodules",
		"100644 blob " + upper + "\tREADME",
		"040000 tree " + hooks + "\thooks",
		"120000 blob " + link + "\tlink.yaml",
		"100644 blob " + pointer + "\tmodel.bin",
		"100644 blob " + lower + "\treadme",
		"160000 commit " + first + "\tsub",
	}, "\n")+"\n")
	c := h.cache(t)
	tree, err := c.Tree(t.Context(), Repo{Project: "p", URL: h.url("a.git")}, commit)
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]Kind{}
	for entry := range tree.Walk(".") {
		kinds[entry.Path] = entry.Kind
	}
	want := map[string]Kind{
		".gitattributes": File, ".gitmodules": File, "README": File, "hooks": Folder, "hooks/post-checkout": File,
		"link.yaml": Symlink, "model.bin": File, "readme": File, "sub": Submodule,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	got := files(t, tree, ".")
	if got["README"] != "upper" || got["readme"] != "lower" {
		t.Errorf("names that differ in case: %q, %q", got["README"], got["readme"])
	}
	for _, name := range []string{"link.yaml", "sub", "hooks"} {
		if content, err := tree.ReadFile(t.Context(), name); !errors.Is(err, ErrNotAFile) {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a hook of the repository ran")
	}
	if asked := slices.ContainsFunc(h.requests(), func(r string) bool { return strings.Contains(r, "other.git") }); asked {
		t.Error("a submodule was asked for")
	}
}

// rawTree writes a tree that mktree would refuse.
func (h *gitHost) rawTree(name, mode, entry, id string) string {
	h.t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		h.t.Fatal(err)
	}
	tree := h.git(name, mode+" "+entry+"\x00"+string(raw), "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	commit := h.git(name, "", "commit-tree", "-m", "x", tree)
	h.git(name, "", "update-ref", "refs/heads/main", commit)
	return commit
}

func TestNamesThatLeaveTheTreeAreRefused(t *testing.T) {
	h := newHost(t)
	h.repository("a.git", map[string]string{"a": "1"})
	c := h.cache(t)
	blob := h.blob("a.git", "x")
	folder := h.git("a.git", "100644 blob "+blob+"\tpasswd\n", "mktree")
	for _, bad := range []struct{ mode, name, id string }{
		{"40000", "..", folder},
		{"100644", "..", blob},
		{"100644", ".", blob},
		{"40000", ".git", folder},
		{"40000", ".GIT", folder},
		{"100644", "a/../../b", blob},
		{"100644", "/etc/passwd", blob},
		{"100644", "a/b", blob},
	} {
		commit := h.rawTree("a.git", bad.mode, bad.name, bad.id)
		if _, err := c.Tree(t.Context(), Repo{Project: "p", URL: h.url("a.git")}, commit); !errors.Is(err, ErrHostileTree) {
			t.Errorf("a tree with %q: %v", bad.name, err)
		}
	}
}

func TestLimits(t *testing.T) {
	h := newHost(t)
	// Does not compress: seeded by its own place.
	var noise bytes.Buffer
	for i := range 100_000 {
		noise.WriteString(fingerprint("noise", fmt.Sprint(i)))
	}
	content := map[string]string{"big.bin": noise.String(), "ok.yaml": "a: 1\n", "two.yaml": "b: 2\n"}
	_, commit := h.repository("a.git", content)
	h.repository("deaf.git", content)
	h.git("deaf.git", "", "config", "uploadpack.allowFilter", "false")
	r, deaf := Repo{Project: "p", URL: h.url("a.git")}, Repo{Project: "p", URL: h.url("deaf.git")}
	deafCommit := h.git("deaf.git", "", "rev-parse", "main")
	with := func(l Limits) *Cache { return h.cache(t, func(o *Options) { o.Limits = l }) }

	t.Run("file", func(t *testing.T) {
		c := with(Limits{FileBytes: 1 << 20, RepositoryBytes: 2 << 20})
		tree, err := c.Tree(t.Context(), r, commit)
		if err != nil {
			t.Fatal(err)
		}
		// The large file was not even sent.
		if got, err := tree.ReadFile(t.Context(), "ok.yaml"); err != nil || string(got) != "a: 1\n" {
			t.Errorf("%q, %v", got, err)
		}
		if _, err := tree.ReadFile(t.Context(), "big.bin"); !errors.Is(err, ErrFileTooLarge) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("file, from a server that cannot leave it out", func(t *testing.T) {
		c := with(Limits{FileBytes: 1 << 20})
		tree, err := c.Tree(t.Context(), deaf, deafCommit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.ReadFile(t.Context(), "big.bin"); !errors.Is(err, ErrFileTooLarge) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("repository", func(t *testing.T) {
		c := with(Limits{FileBytes: 1 << 20, RepositoryBytes: 1 << 20})
		err := c.Fetch(t.Context(), deaf, deafCommit)
		if !errors.Is(err, ErrRepositoryTooLarge) || !strings.Contains(err.Error(), "1 MiB") {
			t.Errorf("got %v", err)
		}
		if left, err := os.ReadDir(c.clones); err != nil || len(left) != 0 {
			t.Errorf("left %v, %v", left, err)
		}
	})
	t.Run("read", func(t *testing.T) {
		c := with(Limits{ReadBytes: 8})
		tree, err := c.Tree(t.Context(), r, commit)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tree.Read(t.Context(), slices.Collect(tree.Walk("."))...); !errors.Is(err, ErrReadTooLarge) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("files", func(t *testing.T) {
		if _, err := with(Limits{Files: 2}).Tree(t.Context(), r, commit); !errors.Is(err, ErrTooManyFiles) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("time", func(t *testing.T) {
		c := with(Limits{Timeout: 300 * time.Millisecond})
		hold := make(chan struct{})
		h.mu.Lock()
		h.hold = hold
		h.mu.Unlock()
		defer func() { h.mu.Lock(); h.hold = nil; h.mu.Unlock(); close(hold) }()
		if _, err := c.Resolve(t.Context(), r, "main"); !errors.Is(err, ErrTimeout) {
			t.Errorf("got %v", err)
		}
	})
}

func TestPruneKeepsWhatWasUsedLast(t *testing.T) {
	h := newHost(t)
	_, commit := h.repository("a.git", map[string]string{"a": strings.Repeat("x", 100)})
	options := h.options(t)
	c, err := New(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	fetch := func(c *Cache, project string) {
		t.Helper()
		if err := c.Fetch(t.Context(), Repo{Project: project, URL: h.url("a.git")}, commit); err != nil {
			t.Fatal(err)
		}
	}
	for _, project := range []string{"p", "q", "r"} {
		fetch(c, project)
	}
	fetch(c, "p")
	if _, err := New(t.Context(), options); !errors.Is(err, ErrInUse) {
		t.Errorf("a second cache in the folder: %v", err)
	}
	id := func(project string) string {
		target, err := c.target(Repo{Project: project, URL: h.url("a.git")})
		if err != nil {
			t.Fatal(err)
		}
		return target.id
	}
	for i, project := range []string{"q", "r", "p"} {
		at := time.Now().Add(time.Duration(i-10) * time.Hour)
		if err := os.Chtimes(filepath.Join(c.clones, id(project)), at, at); err != nil {
			t.Fatal(err)
		}
	}
	one := c.clone(id("p")).weigh()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	// The next process has room for two: the one that was used longest ago goes.
	options.Limits.CacheBytes = 2*one + one/2
	again := h.cache(t, func(o *Options) { *o = options })
	exists := func(project string) bool {
		_, err := os.Stat(filepath.Join(again.clones, id(project)))
		return err == nil
	}
	if exists("q") || !exists("r") || !exists("p") {
		t.Errorf("q %v, r %v, p %v; want q gone", exists("q"), exists("r"), exists("p"))
	}
	fetch(again, "q")
	if exists("r") || !exists("q") || !exists("p") {
		t.Errorf("r %v, q %v, p %v; want r gone", exists("r"), exists("q"), exists("p"))
	}
}

// rebinding answers with a public address once and with this machine after.
type rebinding struct{ asked int }

func (r *rebinding) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	r.asked++
	return []netip.Addr{netip.MustParseAddr("192.168.0.1")}, nil
}

func TestPrivateAddressesAreDenied(t *testing.T) {
	var h *gitHost
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{Resolver: &rebinding{}})
	if err != nil {
		t.Fatal(err)
	}
	runner := &refuser{}
	c := runner.ready(t, h.options(t, func(o *Options) { o.Dialer = dialer }))
	_, err = c.Resolve(t.Context(), Repo{Project: "p", URL: "https://git.example.org/a"}, "main")
	if !errors.Is(err, gitremote.ErrDenied) || len(runner.runs) != 0 {
		t.Errorf("%v, started %q", err, runner.runs)
	}
}
