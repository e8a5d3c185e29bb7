// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// scratch is the bare client's table, shaped and filled like the rows that the
// service keeps, in a database of its own on the same server: the same log, the
// same disk, and statements that are not counted as the service's.
type scratch struct{ conn *pgx.Conn }

const (
	createScratch = `
CREATE TABLE row_like (
	id text PRIMARY KEY, tenant text NOT NULL, name text NOT NULL, spec jsonb NOT NULL,
	version bigint NOT NULL, created_on timestamptz NOT NULL DEFAULT now())`
	writeScratch = `
INSERT INTO row_like (id, tenant, name, spec, version) VALUES ($1, $2, $3, $4, 1)
ON CONFLICT (id) DO UPDATE SET spec = excluded.spec, version = row_like.version + 1`
	readScratch = `SELECT tenant, name, spec, version FROM row_like WHERE id = $1`
)

func (r *Rig) openScratch(ctx context.Context) (*scratch, error) {
	conn, err := pgx.Connect(ctx, r.postgres.DSN(scratchDatabase))
	if err != nil {
		return nil, fmt.Errorf("connect to the scratch database: %w", err)
	}
	if _, err := conn.Exec(ctx, "DROP TABLE IF EXISTS row_like"); err != nil {
		return nil, fmt.Errorf("prepare the scratch database: %w", err)
	}
	if _, err := conn.Exec(ctx, createScratch); err != nil {
		return nil, fmt.Errorf("prepare the scratch database: %w", err)
	}
	return &scratch{conn}, nil
}

// commit writes one row; a statement outside of a transaction is one.
func (s *scratch) commit(ctx context.Context, id string, spec any) error {
	_, err := s.conn.Exec(ctx, writeScratch, id, floorNamespace, id, spec)
	return err
}

func (s *scratch) read(ctx context.Context, id string) error {
	var tenant, name string
	var spec map[string]any
	var version int64
	return s.conn.QueryRow(ctx, readScratch, id).Scan(&tenant, &name, &spec, &version)
}

// OperationRows counts the operations that have not been collected yet. It asks
// as the service's role, so it must not be called while statements are counted.
func (r *Rig) OperationRows(ctx context.Context) (int, error) {
	var n int
	err := r.askService(ctx, `SELECT count(*) FROM operation`, &n)
	return n, err
}

// PostgresVersion says which PostgreSQL runs.
func (r *Rig) PostgresVersion(ctx context.Context) (string, error) {
	var v string
	err := r.askService(ctx, `SHOW server_version`, &v)
	return v, err
}

func (r *Rig) askService(ctx context.Context, question string, answer any) error {
	conn, err := pgx.Connect(ctx, r.postgres.DSN(serviceDatabase))
	if err != nil {
		return fmt.Errorf("connect to the service's database: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if err := conn.QueryRow(ctx, question).Scan(answer); err != nil {
		return fmt.Errorf("ask the service's database: %w", err)
	}
	return nil
}
