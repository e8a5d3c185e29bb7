// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// A cursor is the seq of the last event it covers. One transaction writes at a
// time, so the events of a later one have larger numbers than those of every
// earlier one, committed or not: a reader who has seen a number has seen all
// below it. Since reads in one statement, hence in one snapshot.
func changeLog() store.ChangeLog {
	return store.ChangeLog{
		Since: `
SELECT place.ends, place.horizon, place.ends, c.seq, c.topic, c.tenant, c.key, c.resource_type, c.resource, c.state, c.instance
FROM (
	SELECT horizon, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change_log'), 0) AS ends
	FROM change_log_horizon) AS place
LEFT JOIN change_log c ON c.seq > $1
ORDER BY c.seq LIMIT $2`,
		Now:  `SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'change_log'), 0)`,
		Trim: `DELETE FROM change_log WHERE at < $1 RETURNING seq`,
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
