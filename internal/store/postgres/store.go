// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/weir-gitops/weir/internal/store"
)

// Store is a store on PostgreSQL.
type Store struct {
	*store.DB

	pool   *sql.DB
	config *pgx.ConnConfig
}

var _ store.Store = (*Store)(nil)

type settings struct {
	connections int
	clock       func() time.Time
}

// Option changes how a store is opened.
type Option func(*settings)

// WithConnections sets how many connections the pool may have.
func WithConnections(n int) Option { return func(s *settings) { s.connections = n } }

// WithClock sets the clock whose times are written.
func WithClock(clock func() time.Time) Option { return func(s *settings) { s.clock = clock } }

const (
	defaultConnections = 16
	// Connections are replaced now and then, so that a pool finds its way back to
	// a server that was away and spreads over several behind one address.
	connectionLifetime = 30 * time.Minute
	connectTimeout     = 10 * time.Second
)

// Open connects to the database and refuses one with a newer schema. It does not
// migrate. An error that matches domain.ErrUnavailable can pass; one that
// matches store.ErrRefused or store.ErrSchemaNewer needs somebody.
func Open(ctx context.Context, dsn string, options ...Option) (*Store, error) {
	s := settings{connections: defaultConnections}
	for _, option := range options {
		option(&s)
	}
	config, err := parse(dsn)
	if err != nil {
		return nil, err
	}
	pool := stdlib.OpenDB(*config)
	pool.SetMaxOpenConns(s.connections)
	pool.SetMaxIdleConns(s.connections)
	pool.SetConnMaxLifetime(connectionLifetime)
	opened := &Store{pool: pool, config: config}
	opened.DB = store.NewDB(store.Config{Read: pool, Write: pool, Dialect: dialect{}, Clock: s.clock, Pipeline: opened.pipeline})
	if err := opened.check(ctx); err != nil {
		return nil, errors.Join(err, opened.Close())
	}
	return opened, nil
}

// OpenAndMigrate is Open and Migrate.
func OpenAndMigrate(ctx context.Context, dsn string, options ...Option) (*Store, error) {
	s, err := Open(ctx, dsn, options...)
	if err != nil {
		return nil, err
	}
	if err := s.Migrate(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// parse reads the connection string and fills in what it leaves open.
func parse(dsn string) (*pgx.ConnConfig, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, fmt.Errorf("the database's address is not a PostgreSQL connection string such as postgres://user:password@host:5432/weir: %s",
			redacted(err))
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = connectTimeout
	}
	// A listener that hears nothing finds a dead peer by these, in half a minute.
	config.DialFunc = (&net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}).DialContext
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "weir"
	}
	// A process that stops in the middle of a transaction must not hold the rows
	// that its successor needs.
	if config.RuntimeParams["idle_in_transaction_session_timeout"] == "" {
		config.RuntimeParams["idle_in_transaction_session_timeout"] = "30s"
	}
	return config, nil
}

// check reaches the server and looks at its schema's version.
func (s *Store) check(ctx context.Context) error {
	if err := s.Ping(ctx); err != nil {
		return err
	}
	var migrated bool
	err := s.pool.QueryRowContext(ctx, `SELECT to_regclass($1) IS NOT NULL`, store.VersionTable).Scan(&migrated)
	if err != nil {
		return store.Explain(ctx, dialect{}, "look for the schema", err)
	}
	return s.Migrations().Check(ctx, migrated)
}

// Migrate brings the schema to this program's version. Processes that do so at
// the same time take turns, and the later ones find nothing left to do.
func (s *Store) Migrate(ctx context.Context) error {
	if err := s.Migrations().Up(ctx); err != nil {
		return store.Explain(ctx, dialect{}, "prepare the database", err)
	}
	return nil
}

// Migrations gives the schema's history.
func (s *Store) Migrations() store.Migrations {
	return store.Migrations{DB: s.pool, Dialect: goose.DialectPostgres, Locker: turn{}}
}

// turn is an advisory lock that lasts as long as its session: a process that
// dies while migrating gives it up without anybody's help.
type turn struct{}

// turnKey is any number that nobody else in this database uses.
const turnKey int64 = 0x77656972_6d696772

// SessionLock waits for the turn as long as the context allows.
func (turn) SessionLock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_lock($1)`, turnKey); err != nil {
		return fmt.Errorf("wait for another process to finish migrating: %w", err)
	}
	return nil
}

// SessionUnlock gives the turn up.
func (turn) SessionUnlock(ctx context.Context, conn *sql.Conn) error {
	if _, err := conn.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, turnKey); err != nil {
		return fmt.Errorf("end the turn at migrating: %w", err)
	}
	return nil
}
