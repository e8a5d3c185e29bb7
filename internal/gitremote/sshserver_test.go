// SPDX-License-Identifier: Apache-2.0

package gitremote_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// sshKey is a key in the form in which tenants have it.
type sshKey struct {
	raw     crypto.Signer
	private string
	signer  ssh.Signer
}

func newKey(t *testing.T, kind string) sshKey {
	t.Helper()
	raw, err := map[string]func() (crypto.Signer, error){
		"ed25519": func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
		"ecdsa":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"rsa1024": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) },
		"rsa2048": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"rsa4096": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
	}[kind]()
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(raw)
	if err != nil {
		t.Fatal(err)
	}
	return sshKey{raw: raw, private: string(pem.EncodeToMemory(block)), signer: signer}
}

// sshServer is an SSH server that hands commands to a shell, as OpenSSH does, and
// so to the real git.
type sshServer struct {
	address  string
	hostKeys []ssh.Signer
	// accepts are the public keys that may log in.
	accepts []ssh.PublicKey
	// folder is where commands run.
	folder string

	mu       sync.Mutex
	commands []string
	users    []string
}

func (s *sshServer) start(t *testing.T) {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		for _, accepted := range s.accepts {
			if string(accepted.Marshal()) == string(key.Marshal()) {
				return &ssh.Permissions{}, nil
			}
		}
		return nil, errors.New("unknown key")
	}}
	for _, key := range s.hostKeys {
		config.AddHostKey(key)
	}
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

func (s *sshServer) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
	defer func() { _ = conn.Close() }()
	login, channels, requests, err := ssh.NewServerConn(conn, config)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.users = append(s.users, login.User())
	s.mu.Unlock()
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
			s.run(ctx, payload.Command, channel)
			break
		}
		go ssh.DiscardRequests(requests)
	}
}

func (s *sshServer) run(ctx context.Context, command string, channel ssh.Channel) {
	s.mu.Lock()
	s.commands = append(s.commands, command)
	s.mu.Unlock()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Dir, shell.Stdout, shell.Stderr = s.folder, channel, channel.Stderr()
	// Not shell.Stdin: the command would be waited for until the client writes.
	input, err := shell.StdinPipe()
	if err != nil {
		return
	}
	go func() {
		buffer := make([]byte, 4)
		n, _ := channel.Read(buffer)
		_, _ = input.Write(buffer[:n])
		_ = input.Close()
	}()
	status := uint32(0)
	var exit *exec.ExitError
	if err := shell.Run(); errors.As(err, &exit) {
		status = uint32(exit.ExitCode())
	}
	_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
	_ = channel.Close()
}

func (s *sshServer) ran() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.commands, "\n")
}

func (s *sshServer) logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.users)
}
