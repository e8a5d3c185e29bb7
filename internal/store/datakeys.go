// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// DataKey is a row of data_key: a tenant's key, wrapped by a key of the ring.
type DataKey struct {
	ID     string
	Tenant domain.TenantID
	// RingKey is the id of the ring's key that Wrapped is encrypted by.
	RingKey string
	Wrapped []byte
}

const dataKeyColumns = `id, tenant, ring_key_id, wrapped`

func scanDataKey(row Scanner) (DataKey, error) {
	var k DataKey
	err := row.Scan(&k.ID, &k.Tenant, &k.RingKey, &k.Wrapped)
	return k, err
}

const useDataKey = `UPDATE data_key SET used_on = $2 WHERE tenant = $1 RETURNING ` + dataKeyColumns

// TenantDataKey implements DataKeys.
func (d *DB) TenantDataKey(ctx context.Context, tenant domain.TenantID) (DataKey, error) {
	return d.dataKey(ctx, "look for the data key of tenant "+string(tenant), func() *sql.Row {
		return d.write.QueryRowContext(ctx, useDataKey, tenant, d.now())
	})
}

const selectDataKey = `SELECT ` + dataKeyColumns + ` FROM data_key WHERE tenant = $1 AND id = $2`

// DataKey implements DataKeys.
func (d *DB) DataKey(ctx context.Context, tenant domain.TenantID, id string) (DataKey, error) {
	return d.dataKey(ctx, "read data key "+id, func() *sql.Row {
		return d.read.QueryRowContext(ctx, selectDataKey, tenant, id)
	})
}

func (d *DB) dataKey(ctx context.Context, doing string, query func() *sql.Row) (DataKey, error) {
	var k DataKey
	err := d.again(ctx, doing, func() (err error) {
		k, err = scanDataKey(query())
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = fmt.Errorf("%s: %w", doing, domain.ErrNotFound)
	}
	return k, err
}

const (
	// A retired ring key stays retired. No key is named for the conflict: ring_key has
	// two, and either may be the one on which PostgreSQL meets another's row.
	insertRingKey = `INSERT INTO ring_key (id, live) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	// Of two at once, the second waits for the first on the tenant's unique key
	// and then gets its row, of which it changes only the time.
	insertDataKey = `
INSERT INTO data_key (id, tenant, ring_key_id, wrapped, created_on, used_on) VALUES ($1, $2, $3, $4, $5, $5)
ON CONFLICT (tenant) DO UPDATE SET used_on = excluded.used_on
RETURNING ` + dataKeyColumns
)

// AddDataKey implements DataKeys.
func (d *DB) AddDataKey(ctx context.Context, k DataKey) (DataKey, error) {
	var current DataKey
	err := d.transactSteps(ctx, "add a data key for tenant "+string(k.Tenant), func() []Step {
		return []Step{
			{Doing: "note ring key " + k.RingKey, SQL: insertRingKey, Args: []any{k.RingKey, true}},
			{
				Doing: "insert it", SQL: insertDataKey, Args: []any{k.ID, k.Tenant, k.RingKey, k.Wrapped, d.now()},
				Row: func(row Scanner) (err error) {
					current, err = scanDataKey(row)
					return err
				},
			},
		}
	})
	return current, err
}

const selectDataKeysToRewrap = `
SELECT ` + dataKeyColumns + ` FROM data_key
WHERE ring_key_id <> $1 AND id > $2 ORDER BY id LIMIT $3`

// DataKeysToRewrap implements DataKeys.
func (d *DB) DataKeysToRewrap(ctx context.Context, ringKey, after string, limit int) ([]DataKey, error) {
	return list(ctx, d, "list data keys to wrap anew", scanDataKey, selectDataKeysToRewrap, ringKey, after, limit)
}

const rewrapDataKey = `
UPDATE data_key SET ring_key_id = $4, wrapped = $5
WHERE id = $1 AND tenant = $2 AND ring_key_id = $3`

// RewrapDataKey implements DataKeys.
func (d *DB) RewrapDataKey(ctx context.Context, was DataKey, ringKey string, wrapped []byte) error {
	return d.transactSteps(ctx, "wrap data key "+was.ID+" anew", func() []Step {
		return []Step{
			{Doing: "note ring key " + ringKey, SQL: insertRingKey, Args: []any{ringKey, true}},
			{
				Doing: "update it", SQL: rewrapDataKey, Args: []any{was.ID, was.Tenant, was.RingKey, ringKey, wrapped},
				Affected: func(rows int64) error {
					if rows == 0 {
						return fmt.Errorf("wrapped by ring key %s: %w", was.RingKey, domain.ErrConflict)
					}
					return nil
				},
			},
		}
	})
}

const countDataKeys = `SELECT ring_key_id, count(*) FROM data_key GROUP BY ring_key_id`

// CountDataKeys implements DataKeys.
func (d *DB) CountDataKeys(ctx context.Context) (map[string]int, error) {
	type count struct {
		ringKey string
		n       int
	}
	rows, err := list(ctx, d, "count data keys", func(row Scanner) (count, error) {
		var c count
		err := row.Scan(&c.ringKey, &c.n)
		return c, err
	}, countDataKeys)
	if err != nil {
		return nil, err
	}
	counts := make(map[string]int, len(rows))
	for _, c := range rows {
		counts[c.ringKey] = c.n
	}
	return counts, nil
}

// The foreign key refuses while a data key refers to the live row. Where no data
// key ever did, the tombstone is made all the same.
const retireRingKey = `UPDATE ring_key SET live = FALSE WHERE id = $1 AND live`

// RetireRingKey implements DataKeys.
func (d *DB) RetireRingKey(ctx context.Context, id string) error {
	doing := "retire ring key " + id
	err := d.transactSteps(ctx, doing, func() []Step {
		return []Step{
			{Doing: "note it", SQL: insertRingKey, Args: []any{id, false}},
			{Doing: "update it", SQL: retireRingKey, Args: []any{id}},
		}
	})
	if errors.Is(err, domain.ErrMissingParent) {
		return fmt.Errorf("%s: it still wraps data keys: %w", doing, domain.ErrConflict)
	}
	return err
}

// Both conditions are judged again by PostgreSQL on the newest row where another
// transaction has just asked for the key; a tenant that comes in this moment has
// had a key of its own added or asked for a moment before, so used_on protects it.
const sweepDataKeys = `
DELETE FROM data_key WHERE used_on < $1 AND id IN (
	SELECT k.id FROM data_key k
	WHERE k.used_on < $1 AND NOT EXISTS (SELECT 1 FROM cluster_user u WHERE u.id = k.tenant)
	ORDER BY k.used_on LIMIT $2)`

// SweepDataKeys implements DataKeys.
func (d *DB) SweepDataKeys(ctx context.Context, unusedSince time.Time, limit int) (int, error) {
	n, err := d.change(ctx, "sweep data keys of tenants that are gone", sweepDataKeys, d.dialect.Time(unusedSince), limit)
	return int(n), err
}
