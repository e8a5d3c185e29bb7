// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/internal/gitremote"
)

// sshHost is an SSH server that hands commands to a shell in a folder, as a plain
// host would, for the one key that it knows.
type sshHost struct {
	address string
	folder  string
	key     ssh.PublicKey

	mu       sync.Mutex
	commands []string
}

func newSigner(t *testing.T) (ssh.Signer, string) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	return signer, string(pem.EncodeToMemory(block))
}

func (s *sshHost) start(t *testing.T, hostKey ssh.Signer) {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if string(key.Marshal()) == string(s.key.Marshal()) {
			return &ssh.Permissions{}, nil
		}
		return nil, errors.New("unknown key")
	}}
	config.AddHostKey(hostKey)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			running.Go(func() { s.serve(t.Context(), conn, config) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); running.Wait() })
}

func (s *sshHost) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = conn.Close() }()
	_, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for offered := range channels {
		channel, requests, err := offered.Accept()
		if err != nil {
			return
		}
		for request := range requests {
			var payload struct{ Command string }
			if request.Type != "exec" || ssh.Unmarshal(request.Payload, &payload) != nil {
				_ = request.Reply(false, nil)
				continue
			}
			_ = request.Reply(true, nil)
			s.mu.Lock()
			s.commands = append(s.commands, payload.Command)
			s.mu.Unlock()
			shell := exec.CommandContext(ctx, "sh", "-c", payload.Command)
			shell.Dir, shell.Stdout = s.folder, channel
			input, err := shell.StdinPipe()
			if err != nil {
				return
			}
			go func() {
				buffer := make([]byte, 64<<10)
				for {
					n, err := channel.Read(buffer)
					_, _ = input.Write(buffer[:n])
					if err != nil {
						_ = input.Close()
						return
					}
				}
			}()
			status := uint32(0)
			var exit *exec.ExitError
			if err := shell.Run(); errors.As(err, &exit) {
				status = uint32(exit.ExitCode())
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			_ = channel.Close()
			break
		}
		go ssh.DiscardRequests(requests)
	}
}

func TestSSH(t *testing.T) {
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("ssh is not installed")
	}
	web := newHost(t)
	_, commit := web.repository("a.git", map[string]string{"a": "1"})
	hostKey, _ := newSigner(t)
	otherKey, other := newSigner(t)
	login, private := newSigner(t)
	server := &sshHost{folder: web.folder, key: login.PublicKey()}
	server.start(t, hostKey)
	_, port, _ := net.SplitHostPort(server.address)
	// Under its name, which only the test's resolver knows, and under its port.
	known := knownhosts.Line([]string{"[" + host + "]:" + port}, hostKey.PublicKey())
	wrong := knownhosts.Line([]string{"[" + host + "]:" + port}, otherKey.PublicKey())
	repo := Repo{
		Project: "p", URL: "ssh://git@" + net.JoinHostPort(host, port) + filepath.Join(web.folder, "a.git"),
		Credential: gitremote.Credential{SSHPrivateKey: strings.TrimSpace(private)},
	}
	stranger := repo
	stranger.Credential.SSHPrivateKey = other
	keyless := repo
	keyless.Credential = gitremote.Credential{}

	with := func(known string) *Cache {
		return web.cache(t, func(o *Options) { o.KnownHosts = []byte(known + "\n") })
	}
	c := with(known)
	if got, err := c.Resolve(t.Context(), repo, "main"); err != nil || got != commit {
		t.Fatalf("%q, %v", got, err)
	}
	tree, err := c.Tree(t.Context(), repo, commit)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, files(t, tree, ".")); diff != "" {
		t.Error(diff)
	}
	if left, err := filepath.Glob(filepath.Join(c.private, "visit-*", "*")); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	for name, attempt := range map[string]struct {
		cache *Cache
		repo  Repo
		want  error
	}{
		"a stranger's key":   {c, stranger, gitremote.ErrInvalidCredentials},
		"no key":             {c, keyless, gitremote.ErrInvalidCredentials},
		"another host's key": {with(wrong), repo, gitremote.ErrHostKey},
		"no known host":      {with(""), repo, gitremote.ErrHostKey},
	} {
		server.mu.Lock()
		server.commands = nil
		server.mu.Unlock()
		if _, err := attempt.cache.Resolve(t.Context(), attempt.repo, "main"); !errors.Is(err, attempt.want) {
			t.Errorf("%s: %v, want %v", name, err, attempt.want)
		}
		server.mu.Lock()
		if len(server.commands) != 0 {
			t.Errorf("%s: ran %q", name, server.commands)
		}
		server.mu.Unlock()
	}
}

func TestTheKeyIsPrivate(t *testing.T) {
	var h *gitHost
	c := h.cache(t)
	home := t.TempDir()
	target, err := c.target(Repo{Project: "p", URL: "git@example.com:a", Credential: gitremote.Credential{SSHPrivateKey: "canary-key"}})
	if err != nil {
		t.Fatal(err)
	}
	addrs, err := c.options.Dialer.Addresses(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	command, err := c.sshCommand(target, addrs[0], home)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(command, "canary") || !strings.Contains(command, "'HostName=127.0.0.1'") {
		t.Error(command)
	}
	info, err := os.Stat(filepath.Join(home, "identity"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}
