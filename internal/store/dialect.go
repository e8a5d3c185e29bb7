// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// Fault says what an error of the database means for the one who asked.
type Fault int

const (
	// FaultOther is a mistake in this program, the schema or the data.
	FaultOther Fault = iota
	// FaultDuplicate is a unique key that is taken; somebody else was faster.
	FaultDuplicate
	// FaultMissingParent is a foreign key that points nowhere.
	FaultMissingParent
	// FaultContended is a transaction that the database gave up because of another
	// one (serialisation failure, deadlock). Nothing of it stays, and running it again
	// is expected of the client.
	FaultContended
	// FaultUnavailable is a database that is away or about to be, or that has kept
	// us waiting too long.
	FaultUnavailable
	// FaultRefused is a database that answers, but not to us: a wrong password, a
	// database or a permission that is not there. Somebody has to change a setting.
	FaultRefused
)

// Dialect is what differs between the databases below a statement.
type Dialect interface {
	// Classify says what an error of the driver means.
	Classify(err error) Fault
	// Time gives the value that stands for a time in this database.
	Time(t time.Time) any
}

// sentinel is what callers match; nil for what they can do nothing about.
func (f Fault) sentinel() error {
	switch f {
	case FaultDuplicate, FaultContended:
		return domain.ErrConflict
	case FaultMissingParent:
		return domain.ErrMissingParent
	case FaultUnavailable:
		return domain.ErrUnavailable
	case FaultRefused:
		return ErrRefused
	default:
		return nil
	}
}

// Explain names what was tried and gives the error its meaning. Both stay in the
// chain: the sentinel for the program, the database's words for the operator.
// Where the caller's own context has ended, that is why, whatever the driver made of it.
func Explain(ctx context.Context, d Dialect, doing string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", doing, ctx.Err())
	}
	if meaning := d.Classify(err).sentinel(); meaning != nil {
		return fmt.Errorf("%s: %w: %w", doing, meaning, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
