// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// VersionTable holds which migrations a database has had.
const VersionTable = "schema_version"

// Migrations is how a database gets its schema.
type Migrations struct {
	DB *sql.DB
	// Dialect is goose's name of the database, and of the folder of migrations.
	Dialect goose.Dialect
	// Locker keeps two processes from migrating at once; nil where there is only one.
	Locker lock.SessionLocker
}

func (m Migrations) provider() (*goose.Provider, error) {
	files, err := fs.Sub(migrations, "migrations/"+m.folder())
	if err != nil {
		return nil, fmt.Errorf("find the migrations: %w", err)
	}
	options := []goose.ProviderOption{goose.WithTableName(VersionTable), goose.WithDisableGlobalRegistry(true)}
	if m.Locker != nil {
		options = append(options, goose.WithSessionLocker(m.Locker))
	}
	p, err := goose.NewProvider(m.Dialect, m.DB, files, options...)
	if err != nil {
		return nil, fmt.Errorf("read the migrations: %w", err)
	}
	return p, nil
}

func (m Migrations) folder() string {
	if m.Dialect == goose.DialectPostgres {
		return "postgres"
	}
	return "sqlite"
}

// Up brings the schema to the version of this program.
func (m Migrations) Up(ctx context.Context) error {
	p, err := m.provider()
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// UpTo brings the schema to an earlier version, as an earlier program would have.
func (m Migrations) UpTo(ctx context.Context, version int64) error {
	p, err := m.provider()
	if err != nil {
		return err
	}
	if _, err := p.UpTo(ctx, version); err != nil {
		return fmt.Errorf("migrate the database to version %d: %w", version, err)
	}
	return nil
}

// Versions lists the versions that this program knows, in order.
func (m Migrations) Versions() ([]int64, error) {
	p, err := m.provider()
	if err != nil {
		return nil, err
	}
	var versions []int64
	for _, source := range p.ListSources() {
		versions = append(versions, source.Version)
	}
	return versions, nil
}

const selectVersion = `SELECT coalesce(max(version_id), 0) FROM schema_version WHERE is_applied`

// Check refuses a database that a later program has migrated: this one would
// not understand what it reads, or would break what it writes. An older schema,
// or none, is in order; migrating is the caller's decision. The caller says
// whether there is a version table at all, which each database tells in its own way.
func (m Migrations) Check(ctx context.Context, migrated bool) error {
	if !migrated {
		return nil
	}
	versions, err := m.Versions()
	if err != nil {
		return err
	}
	var has int64
	if err := m.DB.QueryRowContext(ctx, selectVersion).Scan(&has); err != nil {
		return fmt.Errorf("read the schema's version: %w", err)
	}
	if knows := versions[len(versions)-1]; has > knows {
		return fmt.Errorf("%w: it is at version %d, this program knows %d; start the newer release, or restore a backup from before the upgrade",
			ErrSchemaNewer, has, knows)
	}
	return nil
}
