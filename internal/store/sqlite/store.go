// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/pressly/goose/v3"

	"github.com/weir-gitops/weir/internal/store"
)

// Store is a store in a SQLite file.
type Store struct {
	*store.DB

	writer *sql.DB
	reader *sql.DB
	lock   *processLock
	hooks  *hooks
}

var _ store.Store = (*Store)(nil)

type settings struct {
	readers int
	clock   func() time.Time
}

// Option changes how a store is opened.
type Option func(*settings)

// WithReaders sets how many connections may read at the same time.
func WithReaders(n int) Option { return func(s *settings) { s.readers = n } }

// WithClock sets the clock whose times are written.
func WithClock(clock func() time.Time) Option { return func(s *settings) { s.clock = clock } }

const defaultReaders = 4

// Open opens the file, makes it where it is missing, and refuses one with a
// newer schema (store.ErrSchemaNewer) or that another process has open
// (store.ErrInUse). It does not migrate. Its folder has to exist.
func Open(ctx context.Context, path string, options ...Option) (*Store, error) {
	s := settings{readers: defaultReaders}
	for _, option := range options {
		option(&s)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("find the database file: %w", err)
	}
	lock, err := acquire(path + ".lock")
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", path, err)
	}
	if err := private(path); err != nil {
		return nil, errors.Join(fmt.Errorf("make the database file: %w", err), lock.release())
	}
	opened, err := open(path, lock, s)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), lock.release())
	}
	if err := opened.check(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("database %s: %w", path, err), opened.Close())
	}
	return opened, nil
}

// OpenAndMigrate is Open and Migrate.
func OpenAndMigrate(ctx context.Context, path string, options ...Option) (*Store, error) {
	s, err := Open(ctx, path, options...)
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// private makes the file, where it is missing, for our eyes only; SQLite gives
// the files beside it the same permissions.
func private(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // #nosec G304 -- the operator names the database
	if err != nil {
		return err
	}
	return file.Close()
}

func open(path string, lock *processLock, s settings) (*Store, error) {
	writer, err := sql.Open("sqlite", dsn(path, url.Values{"_txlock": {"immediate"}}))
	if err != nil {
		return nil, err
	}
	reader, err := sql.Open("sqlite", dsn(path, url.Values{"_query_only": {"1"}}))
	if err != nil {
		return nil, errors.Join(err, writer.Close())
	}
	// Both keep their connections: opening one runs all its pragmas.
	writer.SetMaxOpenConns(1)
	writer.SetMaxIdleConns(1)
	reader.SetMaxOpenConns(s.readers)
	reader.SetMaxIdleConns(s.readers)
	h := &hooks{}
	return &Store{
		DB: store.NewDB(store.Config{
			Read: reader, Write: writer, Dialect: dialect{}, Clock: s.clock, Wrote: h.run,
		}),
		writer: writer, reader: reader, lock: lock, hooks: h,
	}, nil
}

// dsn names the file and what holds for every connection to it.
func dsn(path string, more url.Values) string {
	more.Set("_busy_timeout", "5000")
	more.Set("_journal_mode", "WAL")
	more.Set("_synchronous", "FULL")
	more.Set("_foreign_keys", "1")
	more.Set("_dqs", "0")
	more.Set("_defensive", "1")
	u := url.URL{Scheme: "file", Path: path, RawQuery: more.Encode()}
	return u.String()
}

// check opens the file and looks at its schema's version. The writer comes
// first, because it is the one that may have to make the file.
func (s *Store) check(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	var migrated bool
	err := s.writer.QueryRowContext(ctx,
		`SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = $1`, store.VersionTable).Scan(&migrated)
	if err != nil {
		return store.Explain(ctx, dialect{}, "look for the schema", err)
	}
	return s.Migrations().Check(ctx, migrated)
}

// Migrate brings the schema to this program's version.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.Migrations().Up(ctx); err != nil {
		return store.Explain(ctx, dialect{}, "prepare the database", err)
	}
	return nil
}

// Migrations gives the schema's history. There is no lock to take: the process
// has the file to itself.
func (s *Store) Migrations() store.Migrations {
	return store.Migrations{DB: s.writer, Dialect: goose.DialectSQLite3}
}

// OnCommit has f called after each commit that wrote something, by the goroutine
// that wrote. It must not block.
func (s *Store) OnCommit(f func()) { s.hooks.add(f) }

// Close ends all connections and lets another process have the file.
func (s *Store) Close() error { return errors.Join(s.DB.Close(), s.lock.release()) }

// hooks is who wants to know of commits.
type hooks struct {
	mu  sync.RWMutex
	all []func()
}

func (h *hooks) add(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, f)
}

func (h *hooks) run() {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for _, f := range h.all {
		f()
	}
}
