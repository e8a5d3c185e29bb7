// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"modernc.org/sqlite"
	code "modernc.org/sqlite/lib"

	"github.com/weir-gitops/weir/internal/store"
)

type dialect struct{}

// Time is microseconds since 1970, which sort and compare as integers.
func (dialect) Time(t time.Time) any { return t.UnixMicro() }

// Classify goes by SQLite's result code.
func (dialect) Classify(err error) store.Fault {
	var said *sqlite.Error
	if !errors.As(err, &said) {
		if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
			return store.FaultUnavailable
		}
		return store.FaultOther
	}
	switch said.Code() {
	case code.SQLITE_CONSTRAINT_UNIQUE, code.SQLITE_CONSTRAINT_PRIMARYKEY, code.SQLITE_CONSTRAINT_ROWID:
		return store.FaultDuplicate
	case code.SQLITE_CONSTRAINT_FOREIGNKEY:
		return store.FaultMissingParent
	}
	// The lower byte is the primary code; the rest says how it came about.
	switch said.Code() & 0xff {
	case code.SQLITE_BUSY, code.SQLITE_LOCKED:
		// SQLite has already waited for busy_timeout.
		return store.FaultUnavailable
	case code.SQLITE_FULL, code.SQLITE_IOERR, code.SQLITE_CANTOPEN, code.SQLITE_NOMEM:
		return store.FaultUnavailable
	case code.SQLITE_READONLY, code.SQLITE_PERM, code.SQLITE_AUTH, code.SQLITE_NOTADB:
		return store.FaultRefused
	}
	return store.FaultOther
}
