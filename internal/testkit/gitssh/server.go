// SPDX-License-Identifier: Apache-2.0

// Package gitssh is an SSH server inside a test that hands commands to a shell, as
// OpenSSH does, and so to the real git:
//
//	client ── SSH on loopback ── Server ── sh -c ── git-upload-pack ── bare repository
//
// Who may log in can change while it runs, as when a tenant's key is revoked.
package gitssh

import (
	"context"
	"errors"
	"net"
	"os/exec"
	"slices"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Server is such a server.
type Server struct {
	// Address is host:port.
	Address string
	// Folder is where commands run.
	Folder string
	// HostKeys are the server's own: one ecdsa, one ed25519.
	HostKeys []ssh.Signer

	mu       sync.Mutex
	accepts  []ssh.PublicKey
	commands []string
	users    []string
}

// errUnknownKey is the server's whole answer to a stranger.
var errUnknownKey = errors.New("unknown key")

// Start runs a server until the test ends.
func Start(t testing.TB, folder string, accepts ...Key) *Server {
	t.Helper()
	s := &Server{Folder: folder, HostKeys: []ssh.Signer{NewKey(t, "ecdsa").Signer, NewKey(t, "ed25519").Signer}}
	s.Accept(accepts...)
	config := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if !s.knows(key) {
			return nil, errUnknownKey
		}
		return &ssh.Permissions{}, nil
	}}
	for _, key := range s.HostKeys {
		config.AddHostKey(key)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.Address = listener.Addr().String()
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
	return s
}

// URL is the address of a repository in the server's folder.
func (s *Server) URL(repository string) string {
	return "ssh://git@" + s.Address + s.Folder + "/" + repository
}

// Accept lets in who has one of these keys, and from now on nobody else.
func (s *Server) Accept(keys ...Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepts = nil
	for _, key := range keys {
		s.accepts = append(s.accepts, key.Signer.PublicKey())
	}
}

func (s *Server) knows(key ssh.PublicKey) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.accepts, func(accepted ssh.PublicKey) bool {
		return string(accepted.Marshal()) == string(key.Marshal())
	})
}

// Commands are those that were run.
func (s *Server) Commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.commands)
}

// Users are those who logged in, one for each time.
func (s *Server) Users() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.users)
}

func (s *Server) serve(ctx context.Context, conn net.Conn, config *ssh.ServerConfig) {
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

func (s *Server) run(ctx context.Context, command string, channel ssh.Channel) {
	s.mu.Lock()
	s.commands = append(s.commands, command)
	s.mu.Unlock()
	shell := exec.CommandContext(ctx, "sh", "-c", command)
	shell.Dir, shell.Stdout, shell.Stderr = s.Folder, channel, channel.Stderr()
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
