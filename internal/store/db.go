// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// DB runs the statements that both databases share. The packages postgres and
// sqlite embed it and add what only they can do.
//
// Isolation. PostgreSQL runs these transactions at READ COMMITTED, and that is
// enough, because no transaction here writes what it derived from an earlier
// read of its own: the reading was done before, by the caller, and each
// statement carries with it the condition under which its decision still holds
// (a version in WHERE, a unique key, a foreign key). Such a condition is judged
// against the newest committed row, after waiting for whoever has it locked, so
// two decisions on the same row are always one after the other. What READ
// COMMITTED would allow beyond that, two reads in one transaction that disagree,
// cannot happen where a transaction does not read. SQLite has one writer at a
// time and nothing to argue.
type DB struct {
	read, write *sql.DB
	dialect     Dialect
	clock       func() time.Time
	wrote       func()
	pipeline    func(ctx context.Context, steps []Step) error
}

// Config is what a DB is made of.
type Config struct {
	// Read and Write are the same pool where the database does not care.
	Read, Write *sql.DB
	Dialect     Dialect
	// Clock gives the times that are written; time.Now where nil.
	Clock func() time.Time
	// Wrote is called after each commit; may be nil.
	Wrote func()
	// Pipeline runs steps in one transaction with as few round trips as the
	// database allows; nil where there is nothing to be saved.
	Pipeline func(ctx context.Context, steps []Step) error
}

// NewDB makes a DB. It does not connect.
func NewDB(c Config) *DB {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Wrote == nil {
		c.Wrote = func() {}
	}
	return &DB{read: c.Read, write: c.Write, dialect: c.Dialect, clock: c.Clock, wrote: c.Wrote, pipeline: c.Pipeline}
}

// Ping says whether the database answers.
func (d *DB) Ping(ctx context.Context) error {
	return d.again(ctx, "reach the database", func() error { return d.write.PingContext(ctx) })
}

// Close ends all connections.
func (d *DB) Close() error {
	if d.read == d.write {
		return d.write.Close()
	}
	return errors.Join(d.read.Close(), d.write.Close())
}

const (
	attempts     = 6
	firstBackoff = 2 * time.Millisecond
)

// again runs a piece of work that is one statement or one whole transaction,
// and runs it again, a bounded number of times, where the database says that
// it lost against another one and left nothing behind. It gives what finally
// comes back its meaning.
func (d *DB) again(ctx context.Context, doing string, work func() error) error {
	backoff := firstBackoff
	for attempt := 1; ; attempt++ {
		err := work()
		if err == nil {
			return nil
		}
		if attempt == attempts || d.dialect.Classify(err) != FaultContended || !pause(ctx, rand.N(backoff)+backoff/2) {
			return Explain(ctx, d.dialect, doing, err)
		}
		backoff *= 2
	}
}

// pause waits, and reports whether the context let it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// transact runs work in one transaction, again from its begin where that is
// called for. Work must therefore keep nothing from a run that failed.
func (d *DB) transact(ctx context.Context, doing string, work func(tx *sql.Tx) error) error {
	err := d.again(ctx, doing, func() error {
		tx, err := d.write.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		// After Commit this does nothing; after a failure, the failure is the news.
		defer func() { _ = tx.Rollback() }()
		if err := work(tx); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err == nil {
		d.wrote()
	}
	return err
}

// Step is one statement of a transaction whose statements do not depend on each
// other's results.
type Step struct {
	// Doing names it in an error.
	Doing string
	SQL   string
	Args  []any
	// Affected, where set, judges how many rows it touched; an error undoes the
	// transaction.
	Affected func(rows int64) error
	// Row, where set, takes the one row that it returns.
	Row func(row Scanner) error
}

// transactSteps runs steps in one transaction, and all of them again, made anew,
// where that is called for.
func (d *DB) transactSteps(ctx context.Context, doing string, steps func() []Step) error {
	if d.pipeline == nil {
		return d.transact(ctx, doing, func(tx *sql.Tx) error {
			for _, s := range steps() {
				if err := s.run(ctx, tx); err != nil {
					return fmt.Errorf("%s: %w", s.Doing, err)
				}
			}
			return nil
		})
	}
	err := d.again(ctx, doing, func() error { return d.pipeline(ctx, steps()) })
	if err == nil {
		d.wrote()
	}
	return err
}

func (s Step) run(ctx context.Context, tx *sql.Tx) error {
	if s.Row != nil {
		return s.Row(tx.QueryRowContext(ctx, s.SQL, s.Args...))
	}
	result, err := tx.ExecContext(ctx, s.SQL, s.Args...)
	if err != nil || s.Affected == nil {
		return err
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return err
	}
	return s.Affected(rows)
}

// change runs one writing statement and returns how many rows it touched.
func (d *DB) change(ctx context.Context, doing, statement string, args ...any) (int64, error) {
	var rows int64
	err := d.again(ctx, doing, func() error {
		result, err := d.write.ExecContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		rows, err = result.RowsAffected()
		return err
	})
	if err == nil && rows > 0 {
		d.wrote()
	}
	return rows, err
}

// Scanner is a row, or the rows of a result.
type Scanner interface{ Scan(dest ...any) error }

// list runs one reading statement and collects its rows.
func list[T any](ctx context.Context, d *DB, doing string, one func(Scanner) (T, error), statement string, args ...any) ([]T, error) {
	var all []T
	err := d.again(ctx, doing, func() error {
		all = nil
		rows, err := d.read.QueryContext(ctx, statement, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			item, err := one(rows)
			if err != nil {
				return err
			}
			all = append(all, item)
		}
		return rows.Err()
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// now is the time to write.
func (d *DB) now() any { return d.dialect.Time(d.clock()) }

// timeOrNull is a time to write, NULL for one that has not come.
func (d *DB) timeOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return d.dialect.Time(t)
}

// one runs a reading statement that gives one row; domain.ErrNotFound where it
// gives none.
func (d *DB) one(ctx context.Context, doing, statement string, args []any, dest ...any) error {
	err := d.again(ctx, doing, func() error {
		return d.read.QueryRowContext(ctx, statement, args...).Scan(dest...)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("%s: %w", doing, domain.ErrNotFound)
	}
	return err
}
