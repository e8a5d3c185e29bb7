// SPDX-License-Identifier: Apache-2.0

package pg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"
)

// shared is the one server of a test binary. It is state of the package because
// a test binary is what it belongs to: TestMain ends it, any test may start it.
var shared struct {
	mu     sync.Mutex
	server *Server
	err    error
}

// Main runs a package's tests and then stops the server that they shared. It is
// for TestMain, and does not return.
func Main(m *testing.M) { os.Exit(Run(m)) }

// Run is Main for a TestMain that has more to clean up: it returns the exit
// code.
func Run(m *testing.M) int {
	code := m.Run()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server != nil {
		if err := shared.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
			code = max(code, 1)
		}
	}
	return code
}

// Shared gives the test binary's server and starts it for the first who asks. It
// fails the test where there is no PostgreSQL, and skips it only with -short.
func Shared(t testing.TB) *Server {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.server == nil && shared.err == nil {
		// The test that happens to be first must not end it.
		shared.server, shared.err = Start(context.WithoutCancel(t.Context()), Options{})
	}
	refuse(t, shared.err)
	return shared.server
}

// New starts a server of the test's own, for tests that stop it or need other
// options.
func New(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	refuse(t, err)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return s
}

func refuse(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, ErrNoBinaries) && testing.Short() {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// counter makes the names of databases different.
var counter atomic.Int64

func databaseName(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(t.Name()))
	return fmt.Sprintf("t%d_%.40s", counter.Add(1), name)
}

// NewDatabase gives the address of a migrated database that goes with the test.
func (s *Server) NewDatabase(t testing.TB) string {
	t.Helper()
	return s.newDatabase(t, s.CreateDatabase)
}

// NewEmptyDatabase gives the address of a database without a schema that goes
// with the test.
func (s *Server) NewEmptyDatabase(t testing.TB) string {
	t.Helper()
	return s.newDatabase(t, s.CreateEmptyDatabase)
}

func (s *Server) newDatabase(t testing.TB, create func(context.Context, string) (string, error)) string {
	t.Helper()
	name := databaseName(t)
	dsn, err := create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// The test's own context has ended by now.
		if err := s.DropDatabase(context.WithoutCancel(t.Context()), name); err != nil && s.running() {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	return dsn
}

func (s *Server) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process != nil
}

// IgnoreLeaks has goleak overlook the goroutine that waits for a server.
func IgnoreLeaks() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/weir-gitops/weir/internal/testkit/pg.(*process).run")
}
