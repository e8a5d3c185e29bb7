// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options say how a server is to be.
type Options struct {
	// Durable has commits wait for the disk, as in production. Tests do without;
	// a benchmark that claims durability must not.
	Durable bool
	// CountStatements loads pg_stat_statements; see Statements.
	CountStatements bool
	// Settings are further settings, by name.
	Settings map[string]string
}

// The roles: the service connects as an ordinary one that owns its databases, so
// tests notice what would need more; the administrator makes databases and
// reads statistics without being in them.
const (
	admin   = "admin"
	service = "weir"
)

// Server is a private PostgreSQL.
type Server struct {
	options  Options
	binaries string
	account  account
	folder   string
	guard    *guard
	password string

	// mu serialises starting and stopping.
	mu      sync.Mutex
	port    int
	process *process

	templateMu sync.Mutex
	template   bool
}

// Start makes a new, empty server and waits until it answers.
func Start(ctx context.Context, o Options) (*Server, error) {
	binaries, err := findBinaries()
	if err != nil {
		return nil, err
	}
	account, err := chooseAccount()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "weir-pg-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for PostgreSQL: %w", err)
	}
	g, err := newGuard(folder)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(folder))
	}
	s := &Server{
		options: o, binaries: binaries, account: account, folder: folder, guard: g, password: rand.Text(),
	}
	if err := s.create(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Server) create(ctx context.Context) error {
	if err := s.account.own(s.folder); err != nil {
		return fmt.Errorf("give PostgreSQL its folder: %w", err)
	}
	if err := s.initialise(ctx); err != nil {
		return err
	}
	if err := s.Restart(ctx); err != nil {
		return err
	}
	return s.asAdmin(ctx, "postgres", func(conn *pgx.Conn) error {
		// Utility statements take no parameters; both values are ours.
		_, err := conn.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", service, s.password))
		if err == nil && s.options.CountStatements {
			_, err = conn.Exec(ctx, "CREATE EXTENSION pg_stat_statements")
		}
		return err
	})
}

func (s *Server) data() string { return filepath.Join(s.folder, "data") }

func (s *Server) initialise(ctx context.Context) error {
	secret := filepath.Join(s.folder, "password")
	if err := os.WriteFile(secret, []byte(s.password+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the password file: %w", err)
	}
	if err := s.account.own(secret); err != nil {
		return fmt.Errorf("give PostgreSQL its password file: %w", err)
	}
	command := exec.CommandContext(ctx, filepath.Join(s.binaries, "initdb"),
		"--pgdata="+s.data(), "--username="+admin, "--pwfile="+secret, "--auth=scram-sha-256",
		"--encoding=UTF8", "--no-locale", "--no-sync")
	command.Dir = s.folder
	command.SysProcAttr = &syscall.SysProcAttr{Credential: s.account.credential}
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

const (
	startAttempts = 10
	startTimeout  = 30 * time.Second
	stopTimeout   = 20 * time.Second
)

// launch starts the server on a free port. Between finding the port and using it
// somebody else may take it; then another is tried. After the first success
// the port stays, so that clients find the server again after Restart; there,
// what has to be waited for is the children of a killed server, who let go of
// its memory one after the other.
func (s *Server) launch(ctx context.Context) error {
	var err error
	for attempt := range startAttempts {
		if attempt > 0 {
			pause(ctx, time.Duration(attempt)*100*time.Millisecond)
		}
		port := s.port
		if port == 0 {
			if port, err = freePort(ctx); err != nil {
				return err
			}
		}
		if err = s.launchOn(ctx, port); err == nil {
			s.port = port
			return nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	return err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func freePort(ctx context.Context) (int, error) {
	var c net.ListenConfig
	l, err := c.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	return port, l.Close()
}

func (s *Server) launchOn(ctx context.Context, port int) error {
	path := filepath.Join(s.folder, "log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("open PostgreSQL's log: %w", err)
	}
	defer func() { _ = log.Close() }()
	// Not CommandContext: the server outlives the context that started it.
	command := exec.Command(filepath.Join(s.binaries, "postgres"), s.arguments(port)...)
	command.Dir, command.Stdout, command.Stderr = s.folder, log, log
	p, err := start(command, s.account)
	if err != nil {
		return fmt.Errorf("start PostgreSQL: %w", err)
	}
	if err := s.answers(ctx, p, port); err != nil {
		text, _ := os.ReadFile(path)
		return fmt.Errorf("start PostgreSQL: %w\n%s", errors.Join(err, halt(p)), text)
	}
	s.process = p
	return nil
}

func (s *Server) arguments(port int) []string {
	settings := map[string]string{
		"listen_addresses":           "127.0.0.1",
		"port":                       strconv.Itoa(port),
		"unix_socket_directories":    "",
		"max_connections":            "200",
		"shared_buffers":             "64MB",
		"dynamic_shared_memory_type": "mmap", // in the folder, so that it goes with it
	}
	if !s.options.Durable {
		settings["fsync"], settings["synchronous_commit"], settings["full_page_writes"] = "off", "off", "off"
	}
	if s.options.CountStatements {
		settings["shared_preload_libraries"] = "pg_stat_statements"
	}
	for name, value := range s.options.Settings {
		settings[name] = value
	}
	arguments := []string{"-D", s.data()}
	for name, value := range settings {
		arguments = append(arguments, "-c", name+"="+value)
	}
	return arguments
}

// answers waits until the server takes connections.
func (s *Server) answers(ctx context.Context, p *process, port int) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.address(admin, "postgres", port))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.exited:
			return fmt.Errorf("it ended: %w", p.err)
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-tick.C:
		}
	}
}

// DSN is the address of a database, for the service's role.
func (s *Server) DSN(database string) string {
	return s.address(service, database, s.currentPort())
}

func (s *Server) currentPort() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.port
}

func (s *Server) address(role, database string, port int) string {
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(role, s.password),
		Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), Path: "/" + database,
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// Stop ends the server and removes all that it left. Stopping twice is harmless.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.guard == nil {
		return nil
	}
	g := s.guard
	s.guard = nil
	return errors.Join(s.halt(), g.dismiss())
}

// Restart ends the server in an orderly way, cutting all connections, and starts
// it again at the same address.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.halt(); err != nil {
		return err
	}
	return s.launch(ctx)
}

// Halt ends the server and keeps its data; Restart brings it back.
func (s *Server) Halt() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halt()
}

// Kill ends the server as a crash would, and keeps its data; Restart brings it
// back, with whatever it had made durable.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-p.exited
	return nil
}

func (s *Server) halt() error {
	if s.process == nil {
		return nil
	}
	p := s.process
	s.process = nil
	return halt(p)
}

// halt asks for a fast shutdown (SIGINT: connections are cut, data is written),
// and insists where that takes too long.
func halt(p *process) error {
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-p.exited:
		return nil
	case <-timer.C:
	}
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	<-p.exited
	return nil
}
