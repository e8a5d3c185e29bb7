// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// Why nothing is skipped is argued in the package's documentation. All values
// of Since come from one statement and so from one snapshot. A cursor is given
// out at most up to xmax, so a larger one was given by another server, for
// example the one that this database was restored from.
func changeLog() store.ChangeLog {
	return store.ChangeLog{
		Since: `
SELECT place.next, place.horizon, place.ends, c.seq, c.topic, c.tenant, c.key, c.resource_type, c.resource, c.state, c.instance
FROM (
	SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS next,
	       pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS ends,
	       horizon
	FROM change_log_horizon) AS place
LEFT JOIN change_log c ON c.xid >= $1::bigint::text::xid8
ORDER BY c.seq LIMIT $2`,
		Now: `SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint`,
		// Not what a transaction that still runs may be older than: the horizon
		// would then be beyond the cursor that Now gives.
		Trim: `
DELETE FROM change_log WHERE at < $1 AND xid < pg_snapshot_xmin(pg_current_snapshot())
RETURNING xid::text::bigint + 1`,
	}
}

// ChangesSince implements store.Changes.
func (s *Store) ChangesSince(ctx context.Context, after store.Cursor) ([]store.Event, store.Cursor, error) {
	return s.ReadChanges(ctx, changeLog(), after)
}

// Now implements store.Changes.
func (s *Store) Now(ctx context.Context) (store.Cursor, error) { return s.CursorNow(ctx, changeLog()) }

// TrimChanges implements store.Changes.
func (s *Store) TrimChanges(ctx context.Context, before time.Time) (int, error) {
	return s.Trim(ctx, changeLog(), before)
}
