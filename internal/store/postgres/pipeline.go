// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/weir-gitops/weir/internal/store"
)

// pipeline runs steps in one transaction. All of them, with the begin, go to the
// server together; where no step has to be judged by how many rows it touched,
// so does the commit, and the whole transaction is one round trip.
//
// That is as safe as one statement after the other. The server runs them in
// order and, after the first that fails, skips the rest up to the end of the
// batch, the commit too. The transaction is then open and broken, and rolled back.
func (s *Store) pipeline(ctx context.Context, steps []store.Step) error {
	conn, err := s.pool.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	return conn.Raw(func(raw any) error {
		c := raw.(*stdlib.Conn).Conn()
		err := runSteps(ctx, c, steps)
		if c.PgConn().TxStatus() != 'I' {
			return errors.Join(err, rollback(ctx, c))
		}
		return err
	})
}

func runSteps(ctx context.Context, c *pgx.Conn, steps []store.Step) error {
	judged := slices.ContainsFunc(steps, func(s store.Step) bool { return s.Affected != nil })
	batch := &pgx.Batch{}
	batch.Queue("begin")
	for _, s := range steps {
		args, err := values(s.Args)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Doing, err)
		}
		batch.Queue(s.SQL, args...)
	}
	if !judged {
		batch.Queue("commit")
	}
	results := c.SendBatch(ctx, batch)
	err := takeResults(results, steps)
	if err == nil && !judged {
		_, err = results.Exec()
	}
	// Close reads what is left; after a failure that is the same failure again.
	if closed := results.Close(); err == nil {
		err = closed
	}
	if err != nil || !judged {
		return err
	}
	_, err = c.Exec(ctx, "commit")
	return err
}

func takeResults(results pgx.BatchResults, steps []store.Step) error {
	if _, err := results.Exec(); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	for _, s := range steps {
		if err := takeResult(results, s); err != nil {
			return fmt.Errorf("%s: %w", s.Doing, err)
		}
	}
	return nil
}

func takeResult(results pgx.BatchResults, s store.Step) error {
	if s.Row != nil {
		return s.Row(results.QueryRow())
	}
	tag, err := results.Exec()
	if err != nil || s.Affected == nil {
		return err
	}
	return s.Affected(tag.RowsAffected())
}

// values gives arguments the plain types that database/sql would.
func values(args []any) ([]any, error) {
	out := make([]any, len(args))
	for i, a := range args {
		v, err := driver.DefaultParameterConverter.ConvertValue(a)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

// rollback leaves the connection fit for the next user, or closes it: also where
// the context has ended, since nobody else would.
func rollback(ctx context.Context, c *pgx.Conn) error {
	if c.IsClosed() {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer cancel()
	if _, err := c.Exec(ctx, "rollback"); err != nil {
		return c.Close(ctx)
	}
	return nil
}
