// SPDX-License-Identifier: Apache-2.0

package gitserve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// ErrNotLoopback says that a server was to listen where other machines could
// reach it.
var ErrNotLoopback = errors.New("not a loopback address")

// grace is how long requests may take to end when the server stops.
const grace = 2 * time.Second

// Options of a server.
type Options struct {
	// Root is the folder with the bare repositories.
	Root string
	// Address is a loopback host and port; port 0 takes a free one.
	Address string
	// Push lets everybody on this machine push.
	Push bool
	Log  *slog.Logger
}

// Server serves the repositories of one folder.
type Server struct {
	listener net.Listener
	server   *http.Server
	requests sync.WaitGroup

	mu      sync.Mutex
	stopped bool
}

// Listen opens the port. Serving starts with Run.
func Listen(ctx context.Context, o Options) (*Server, error) {
	program, err := backend(ctx)
	if err != nil {
		return nil, err
	}
	root, err := filepath.Abs(o.Root)
	if err != nil {
		return nil, fmt.Errorf("folder of repositories: %w", err)
	}
	if info, err := os.Stat(root); err != nil {
		return nil, fmt.Errorf("folder of repositories: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("folder of repositories: %s is no folder", root)
	}
	listener, err := listenLoopback(ctx, o.Address)
	if err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{listener: listener}
	s.server = &http.Server{
		Handler:           s.counted(guard(o.Push, serveWith(program, root, o))),
		ReadHeaderTimeout: 5 * time.Second,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn),
	}
	return s, nil
}

func listenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("address of the Git server: %w", err)
	}
	if !isLoopback(host) {
		return nil, fmt.Errorf("address of the Git server: %s: %w", host, ErrNotLoopback)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("address of the Git server: %w", err)
	}
	return listener, nil
}

func serveWith(program, root string, o Options) http.Handler {
	messages := slog.NewLogLogger(o.Log.Handler(), slog.LevelWarn)
	env := append(environment(), "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1")
	if o.Push {
		env = append(env, "GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=http.receivepack", "GIT_CONFIG_VALUE_0=true")
	}
	return &cgi.Handler{Path: program, Dir: root, Env: env, Logger: messages, Stderr: messages.Writer()}
}

// Address is the host and port that the server listens on.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Port is the port that the server listens on.
func (s *Server) Port() int { return s.listener.Addr().(*net.TCPAddr).Port }

// URL is what a client clones.
func (s *Server) URL(repository string) string { return "http://" + s.Address() + "/" + repository }

// Run serves until the context ends, and returns when no request is left.
func (s *Server) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		polite, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if s.server.Shutdown(polite) != nil {
			// Their connections go, and with them the git processes' reasons to live.
			_ = s.server.Close()
		}
	})
	err := s.server.Serve(s.listener)
	if !stop() {
		<-stopped
	}
	s.drain()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close gives the port back where Run was never called.
func (s *Server) Close() error { return s.listener.Close() }

// counted lets Run wait for the handlers, which the HTTP server's Close does
// not. A connection that was accepted before the end may begin its request
// after it; the lock decides whether that one is waited for or refused.
func (s *Server) counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			http.Error(w, "stopping", http.StatusServiceUnavailable)
			return
		}
		s.requests.Add(1)
		s.mu.Unlock()
		defer s.requests.Done()
		next.ServeHTTP(w, r)
	})
}

// drain refuses further requests and waits for those that run.
func (s *Server) drain() {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.requests.Wait()
}
