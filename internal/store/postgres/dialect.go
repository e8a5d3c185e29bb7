// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/weir-gitops/weir/internal/store"
)

type dialect struct{}

// Time is how PostgreSQL keeps it: to the microsecond.
func (dialect) Time(t time.Time) any { return t.UTC().Truncate(time.Microsecond) }

// Classify goes by SQLSTATE where the server said something, and otherwise by
// the kind of what went wrong on the way to it.
func (dialect) Classify(err error) store.Fault {
	var said *pgconn.PgError
	if errors.As(err, &said) {
		return classifyState(said.Code)
	}
	if onTheWay(err) {
		return store.FaultUnavailable
	}
	return store.FaultOther
}

// The states that mean something to us; see the appendix "Error Codes" of
// PostgreSQL's manual.
const (
	uniqueViolation       = "23505"
	exclusionViolation    = "23P01"
	foreignKeyViolation   = "23503"
	serializationFailure  = "40001"
	deadlockDetected      = "40P01"
	lockNotAvailable      = "55P03"
	queryCanceled         = "57014"
	readOnlyTransaction   = "25006"
	idleInTransaction     = "25P03"
	insufficientPrivilege = "42501"
	databaseMissing       = "3D000"

	classConnection    = "08"
	classAuthorization = "28"
	classResources     = "53"
	classIntervention  = "57"
	classSystem        = "58"
)

func classifyState(code string) store.Fault {
	switch code {
	case uniqueViolation, exclusionViolation:
		return store.FaultDuplicate
	case foreignKeyViolation:
		return store.FaultMissingParent
	case serializationFailure, deadlockDetected:
		return store.FaultContended
	case readOnlyTransaction, idleInTransaction, queryCanceled, lockNotAvailable:
		// A standby that has not been promoted yet; a transaction of ours that slept
		// too long; a statement that an operator or a timeout ended.
		return store.FaultUnavailable
	case insufficientPrivilege, databaseMissing:
		return store.FaultRefused
	}
	switch code[:min(2, len(code))] {
	case classConnection, classResources, classIntervention, classSystem:
		return store.FaultUnavailable
	case classAuthorization:
		return store.FaultRefused
	}
	return store.FaultOther
}

// onTheWay reports whether the connection, not the server, is at fault.
func onTheWay(err error) bool {
	var (
		connecting *pgconn.ConnectError
		network    net.Error
	)
	switch {
	case errors.As(err, &connecting), errors.As(err, &network):
		return true
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), errors.Is(err, pgconn.ErrConnClosed):
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return true
	case errors.Is(err, context.DeadlineExceeded):
		// Not the caller's deadline, which is looked at before; one of the driver's.
		return true
	}
	return pgconn.SafeToRetry(err)
}

// redacted keeps a connection string out of an error message: what cannot be
// parsed cannot be searched for the password in it either.
func redacted(err error) string {
	var parsing *pgconn.ParseConfigError
	if !errors.As(err, &parsing) {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), parsing.ConnString, "…")
}
