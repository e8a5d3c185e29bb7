// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/store/sqlite"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// cluster is the test binary's control plane, for the one test that needs it.
var cluster struct {
	once    sync.Once
	started *controlplane.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := pg.Run(m)
	if cluster.started != nil {
		if err := cluster.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

const canary = "canary-9f3c1b77-secret"

// newSQLite gives a migrated store and the path of its file.
func newSQLite(t testing.TB) (*sqlite.Store, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weir.db")
	s, err := sqlite.OpenAndMigrate(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, path
}

func newPostgres(t testing.TB, dsn string) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), dsn, postgres.WithConnections(4))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openRaw(t testing.TB, driver, dsn string) *sql.DB {
	t.Helper()
	raw, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := raw.Close(); err != nil {
			t.Error(err)
		}
	})
	return raw
}

// newRingFile gives a file with a new ring.
func newRingFile(t testing.TB) *seal.File {
	t.Helper()
	f := seal.NewFile(filepath.Join(t.TempDir(), "ring.json"))
	if err := f.Create(t.Context(), newRing(t)); err != nil {
		t.Fatal(err)
	}
	return f
}

func newRing(t testing.TB) *seal.Ring {
	t.Helper()
	return must(t)(seal.NewRing())
}

func newSealer(t testing.TB, source seal.Source, keys seal.DataKeys) *seal.Sealer {
	t.Helper()
	s, err := seal.NewSealer(t.Context(), source, keys)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func load(t testing.TB, source seal.Source) *seal.Ring {
	t.Helper()
	return must(t)(source.Load(t.Context()))
}

func must(t testing.TB) func(*seal.Ring, error) *seal.Ring {
	return func(r *seal.Ring, err error) *seal.Ring {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

func place(tenant domain.TenantID, row string) seal.Place {
	return seal.Place{Tenant: tenant, Table: "repository_credentials", Row: row, Column: "sealed_password"}
}

func sealed(t testing.TB, s *seal.Sealer, p seal.Place, value string) seal.Sealed {
	t.Helper()
	v, err := s.Seal(t.Context(), p, []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// opens sees that a value opens to what was sealed.
func opens(t testing.TB, s *seal.Sealer, p seal.Place, v seal.Sealed, want string) {
	t.Helper()
	got, err := s.Open(t.Context(), p, v)
	if err != nil || string(got) != want {
		t.Errorf("opened to %d bytes, %v; want what was sealed", len(got), err)
	}
}

func wantError(t testing.TB, doing string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got %v, want %v", doing, err, want)
	}
}

// countingSource counts how often the ring is read.
type countingSource struct {
	seal.Source
	loads atomic.Int64
}

func (s *countingSource) Load(ctx context.Context) (*seal.Ring, error) {
	s.loads.Add(1)
	return s.Source.Load(ctx)
}

var errInjected = errors.New("injected")

// failing lets a number of re-wrappings succeed, and fails the rest.
type failing struct {
	seal.DataKeys
	left int
}

func (f *failing) RewrapDataKey(ctx context.Context, was store.DataKey, ringKey string, wrapped []byte) error {
	if f.left == 0 {
		return errInjected
	}
	f.left--
	return f.DataKeys.RewrapDataKey(ctx, was, ringKey, wrapped)
}
