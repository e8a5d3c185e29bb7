// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// maxCatchUp bounds how many events ChangesSince gives at once. Whoever is
// further behind than that is better off looking at everything, and memory
// stays bounded after a long outage.
const maxCatchUp = 100_000

// ChangeLog is how a dialect reads its change log. How a cursor names a place
// in it, and why nothing is skipped, is the dialect's to argue.
type ChangeLog struct {
	// Since takes the cursor and a limit and gives, in one statement, rows of
	// (next, horizon, end, seq, topic, tenant, key, resource_type, resource, state,
	// instance) in
	// the order of seq; where there is no event, one row whose seq and what
	// follows are NULL. Cursors below horizon have lost events, cursors above end are
	// not this database's.
	Since string
	// Now gives the cursor that covers everything committed so far.
	Now string
	// Trim takes a time, deletes the events before it, and gives for each of them
	// the smallest cursor that has not lost it.
	Trim string
}

// logRow is a row of ChangeLog.Since.
type logRow struct {
	next, horizon, end Cursor
	seq                sql.Null[int64]
	topic, tenant, key text
	resourceType       text
	resource, state    text
	instance           text
}

func scanLogRow(row Scanner) (logRow, error) {
	var r logRow
	err := row.Scan(&r.next, &r.horizon, &r.end,
		&r.seq, &r.topic, &r.tenant, &r.key, &r.resourceType, &r.resource, &r.state, &r.instance)
	return r, err
}

func (r logRow) event() Event {
	return Event{
		Sequence:     r.seq.V,
		Topic:        Topic(r.topic.V),
		Tenant:       domain.TenantID(r.tenant.V),
		Key:          r.key.V,
		ResourceType: domain.ResourceType(r.resourceType.V),
		Resource:     r.resource.V,
		State:        r.state.V,
		Instance:     domain.InstanceID(r.instance.V),
	}
}

// ReadChanges is ChangesSince over a dialect's log.
func (d *DB) ReadChanges(ctx context.Context, l ChangeLog, after Cursor) ([]Event, Cursor, error) {
	rows, err := list(ctx, d, "read the change log", scanLogRow, l.Since, int64(after), maxCatchUp+1)
	if err != nil {
		return nil, 0, err
	}
	if len(rows) == 0 {
		return nil, 0, fmt.Errorf("change_log_horizon has lost its row: %w", ErrCursorTooOld)
	}
	if after < rows[0].horizon || after > rows[0].end || len(rows) > maxCatchUp {
		return nil, 0, fmt.Errorf("cursor %d: %w", after, ErrCursorTooOld)
	}
	var events []Event
	for _, r := range rows {
		if r.seq.Valid {
			events = append(events, r.event())
		}
	}
	return events, rows[0].next, nil
}

// CursorNow is Now over a dialect's log.
func (d *DB) CursorNow(ctx context.Context, l ChangeLog) (Cursor, error) {
	var c Cursor
	err := d.again(ctx, "read the change log's end", func() error {
		return d.read.QueryRowContext(ctx, l.Now).Scan(&c)
	})
	return c, err
}

const raiseHorizon = `UPDATE change_log_horizon SET horizon = $1 WHERE horizon < $1`

// Trim is TrimChanges over a dialect's log. The horizon moves in the same
// transaction, so no reader sees events missing below an old horizon.
func (d *DB) Trim(ctx context.Context, l ChangeLog, before time.Time) (int, error) {
	var gone int
	err := d.transact(ctx, "trim the change log", func(tx *sql.Tx) error {
		var horizon int64
		var err error
		if gone, horizon, err = deleteEvents(ctx, tx, l.Trim, d.dialect.Time(before)); err != nil || gone == 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, raiseHorizon, horizon)
		return err
	})
	return gone, err
}

func deleteEvents(ctx context.Context, tx *sql.Tx, statement string, before any) (gone int, horizon int64, err error) {
	rows, err := tx.QueryContext(ctx, statement, before)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var reached int64
		if err := rows.Scan(&reached); err != nil {
			return 0, 0, err
		}
		gone++
		horizon = max(horizon, reached)
	}
	return gone, horizon, rows.Err()
}
