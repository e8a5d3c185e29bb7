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

// The application is found by its id alone. Its own tenant column says whose it
// is; were the operation's asked for as well, an operation with a wrong tenant
// would read as "the application is gone" and take it down.
const selectTask = `
SELECT ` + operationColumns + `, ` + applicationColumns + `
FROM operation o
LEFT JOIN application a ON o.resource_type = 'Application' AND a.id = o.resource_id
WHERE o.id = $1`

// Task implements Operations: one statement for each kind of resource.
func (d *DB) Task(ctx context.Context, t domain.ResourceType, id domain.OperationID) (Task, error) {
	switch t {
	case domain.ResourceSyncOperation:
		return d.syncTask(ctx, id)
	case domain.ResourceManagedEnvironment:
		return d.environmentTask(ctx, id)
	case domain.ResourceRepositoryCredential:
		return d.credentialTask(ctx, id)
	default:
		return d.applicationTask(ctx, id)
	}
}

// applicationTask: a spec that was damaged by hand is an error here, because the
// agent must not carry out half of what a tenant asked for.
func (d *DB) applicationTask(ctx context.Context, id domain.OperationID) (Task, error) {
	var (
		operation   operationRow
		application applicationRow
	)
	if err := d.one(ctx, "read an operation on an application", selectTask, []any{id}, append(operation.dest(), application.dest()...)...); err != nil {
		return Task{}, err
	}
	task := Task{Operation: operation.operation()}
	if application.present() {
		a, err := application.decoded()
		if err != nil {
			return Task{}, err
		}
		task.Application = &a
	}
	return task, nil
}

const selectOperation = `SELECT ` + operationColumns + ` FROM operation o WHERE o.id = $1`

// Operation implements Operations.
func (d *DB) Operation(ctx context.Context, id domain.OperationID) (Operation, error) {
	var r operationRow
	err := d.one(ctx, "read an operation", selectOperation, []any{id}, r.dest()...)
	return r.operation(), err
}

// Why naming the version is enough is argued beside announceOperation. Beyond
// that, a late worker must not take back what another has already ended: a
// completed operation stays completed, and a failed one can only still succeed.
const finishOperation = `
UPDATE operation
SET state = $3, human_readable_state = $4, last_state_update = $5
WHERE id = $1 AND version = $2
  AND (state IN ('Waiting', 'In_Progress') OR state = $3 OR (state = 'Failed' AND $3 = 'Completed'))`

// Finish implements Operations. Doing it twice is the same as once, so a caller
// whose first answer was lost may repeat it.
func (d *DB) Finish(
	ctx context.Context, id domain.OperationID, version int64, s domain.OperationState, message string,
) error {
	rows, err := d.change(ctx, "finish an operation", finishOperation, id, version, s, storable(message), d.now())
	if err != nil {
		return err
	}
	if rows == 0 {
		return d.whyUnfinished(ctx, id, version)
	}
	return nil
}

const selectOperationVersion = `SELECT version FROM operation WHERE id = $1`

// whyUnfinished finds out why Finish touched no row. It costs a statement, so
// it is asked only then. What it reads is younger than what Finish saw, which at
// worst turns a conflict into "not found": both send the caller to read again.
func (d *DB) whyUnfinished(ctx context.Context, id domain.OperationID, version int64) error {
	var now int64
	err := d.again(ctx, "read an operation", func() error {
		return d.read.QueryRowContext(ctx, selectOperationVersion, id).Scan(&now)
	})
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return fmt.Errorf("operation %s: %w", id, domain.ErrNotFound)
	case err != nil:
		return err
	default:
		return fmt.Errorf("operation %s at version %d, now %d: %w", id, version, now, domain.ErrConflict)
	}
}

const selectUnfinished = `
SELECT ` + operationColumns + ` FROM operation o
WHERE o.state IN ('Waiting', 'In_Progress') AND o.id > $2 AND ($1 = '' OR o.instance_id = $1)
ORDER BY o.id LIMIT $3`

// Unfinished implements Operations.
func (d *DB) Unfinished(
	ctx context.Context, instance domain.InstanceID, after domain.OperationID, limit int,
) ([]Operation, error) {
	return list(ctx, d, "list unfinished operations", scanOperation, selectUnfinished, instance, after, limit)
}

const collectOperations = `
DELETE FROM operation WHERE id IN (
	SELECT o.id FROM operation o
	WHERE o.state IN ('Completed', 'Failed') AND o.last_state_update < $1
	  AND (o.gc_expiration IS NULL OR o.gc_expiration < $2)
	  AND (o.state = 'Completed' OR EXISTS (
		SELECT 1 FROM operation newer
		WHERE newer.resource_type = o.resource_type AND newer.resource_id = o.resource_id AND newer.id > o.id))
	ORDER BY o.last_state_update LIMIT $3)
AND state IN ('Completed', 'Failed')`

// Collect implements Operations. The state is asked for once more on the row
// that is deleted, because an operation may change between being chosen and
// being deleted.
func (d *DB) Collect(ctx context.Context, endedBefore time.Time, limit int) (int, error) {
	rows, err := d.change(ctx, "collect ended operations", collectOperations, d.dialect.Time(endedBefore), d.now(), limit)
	return int(rows), err
}
