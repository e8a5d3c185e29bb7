// SPDX-License-Identifier: Apache-2.0

package store

import "errors"

var (
	// ErrCursorTooOld says that events after the cursor may have been trimmed, or
	// there are more of them than are worth reading one by one, or the cursor is another
	// database's. Whoever follows the log starts again from Now and looks at everything.
	ErrCursorTooOld = errors.New("the change log does not reach back to this cursor")
	// ErrSchemaNewer says that a later release has migrated the database.
	ErrSchemaNewer = errors.New("the database's schema is newer than this program")
	// ErrRefused says that the database answers, but does not let us do what we need.
	ErrRefused = errors.New("refused by the database")
	// ErrBadNotification says that what was heard is no event of ours. Anybody may NOTIFY
	// by hand; whoever listens goes on, after reading the log to be sure.
	ErrBadNotification = errors.New("a notification that is no event")
	// ErrInUse says that another process has the SQLite file open.
	ErrInUse = errors.New("in use by another process")
)
