// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// Apply implements Deployments.
func (d *DB) Apply(ctx context.Context, c Change) ([]Operation, error) {
	var announced []Operation
	err := d.transact(ctx, "write the decision", func(tx *sql.Tx) error {
		announced = nil
		if c.Tenant != nil {
			if err := d.addTenant(ctx, tx, *c.Tenant); err != nil {
				return err
			}
		}
		for _, ref := range c.Remove {
			if _, err := tx.ExecContext(ctx, deleteApplication, ref.ID, ref.Tenant); err != nil {
				return fmt.Errorf("remove application %s: %w", ref.ID, err)
			}
		}
		if c.Insert != nil {
			if err := d.insertApplication(ctx, tx, *c.Insert); err != nil {
				return err
			}
		}
		if c.Update != nil {
			if err := d.updateApplication(ctx, tx, *c.Update); err != nil {
				return err
			}
		}
		for _, n := range c.Announce {
			o, err := d.announce(ctx, tx, n)
			if err != nil {
				return err
			}
			announced = append(announced, o)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return announced, nil
}

// A tenant's rows are added where missing and left alone where present. If
// another decision has meanwhile given the tenant's local environment to another
// instance, the last of these does nothing, and the application that follows
// in the same transaction finds no access to refer to: domain.ErrMissingParent.
const (
	insertTenant = `
INSERT INTO cluster_user (id, namespace, created_on) VALUES ($1, $2, $3)
ON CONFLICT DO NOTHING`
	insertLocalEnvironment = `
INSERT INTO managed_environment (id, tenant, name, kind, created_on) VALUES ($1, $2, $3, 'local', $4)
ON CONFLICT DO NOTHING`
	insertNamespaceMapping = `
INSERT INTO kubernetes_to_db_resource_mapping
	(kubernetes_resource_type, kubernetes_resource_uid, db_relation_type, db_relation_key, tenant)
VALUES ('Namespace', $1, $2, $3, $4)
ON CONFLICT DO NOTHING`
	insertAccess = `
INSERT INTO cluster_access (tenant, environment_id, instance_id, created_on) VALUES ($1, $2, $3, $4)
ON CONFLICT DO NOTHING`
)

func (d *DB) addTenant(ctx context.Context, tx *sql.Tx, t Tenant) error {
	environment, now := domain.LocalEnvironment(t.ID), d.now()
	if _, err := tx.ExecContext(ctx, insertTenant, t.ID, t.Namespace, now); err != nil {
		return fmt.Errorf("add tenant %s: %w", t.ID, err)
	}
	if _, err := tx.ExecContext(ctx, insertLocalEnvironment, environment, t.ID, t.Namespace, now); err != nil {
		return fmt.Errorf("add the local environment of tenant %s: %w", t.ID, err)
	}
	if _, err := tx.ExecContext(ctx, insertNamespaceMapping, t.ID, "ManagedEnvironment", environment, t.ID); err != nil {
		return fmt.Errorf("map the namespace of tenant %s: %w", t.ID, err)
	}
	if _, err := tx.ExecContext(ctx, insertAccess, t.ID, environment, t.Instance, now); err != nil {
		return fmt.Errorf("give tenant %s access to instance %s: %w", t.ID, t.Instance, err)
	}
	return nil
}

// That the row is gone already is what was wanted, so it is no conflict. The
// owner is part of the condition: a wrong reference removes nothing.
const deleteApplication = `DELETE FROM application WHERE id = $1 AND tenant = $2`

const (
	insertApplication = `
INSERT INTO application
	(id, tenant, name, spec, instance_id, environment_id, generation, version, created_on, updated_on)
VALUES ($1, $2, $3, $4, $5, $6, $7, 1, $8, $8)`
	insertLink = `
INSERT INTO deployment_to_application_mapping (application_id, tenant, namespace, name) VALUES ($1, $2, $3, $4)`
)

func (d *DB) insertApplication(ctx context.Context, tx *sql.Tx, n NewApplication) error {
	a, l := n.Application, n.Link
	_, err := tx.ExecContext(ctx, insertApplication,
		a.ID, a.Tenant, a.Name, a.Spec.Encode(), a.Instance, a.Environment, a.Generation, d.now())
	if err != nil {
		return fmt.Errorf("add application %s: %w", a.ID, err)
	}
	if _, err := tx.ExecContext(ctx, insertLink, l.Application, l.Tenant, l.Namespace, l.Name); err != nil {
		return fmt.Errorf("link application %s to its deployment: %w", l.Application, err)
	}
	return nil
}

const updateApplication = `
UPDATE application
SET spec = $4, instance_id = $5, environment_id = $6, generation = $7, version = version + 1, updated_on = $8
WHERE id = $1 AND tenant = $2 AND version = $3`

func (d *DB) updateApplication(ctx context.Context, tx *sql.Tx, a Application) error {
	result, err := tx.ExecContext(ctx, updateApplication,
		a.ID, a.Tenant, a.Version, a.Spec.Encode(), a.Instance, a.Environment, a.Generation, d.now())
	if err != nil {
		return fmt.Errorf("update application %s: %w", a.ID, err)
	}
	rows, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("update application %s: %w", a.ID, err)
	}
	if rows == 0 {
		return fmt.Errorf("application %s at version %d: %w", a.ID, a.Version, domain.ErrConflict)
	}
	return nil
}

// One operation waits for a resource at most, and a further change reuses it,
// so that a storm of edits costs one. Nothing is lost by that, whichever of
// reuse and Finish comes first; they meet on the operation's row lock:
//
//   - Reuse first: the version has grown when Finish gets the row, so Finish, which
//     names the version that its Task saw, changes nothing and reports a
//     conflict. The agent reads again and finds this transaction's application,
//     which was committed together with the version.
//   - Finish first: the row waits no longer, so it has left the partial index.
//     ON CONFLICT, having waited for Finish to commit, looks into the index
//     again, finds nothing, and inserts a new operation, which somebody will read
//     after this transaction has committed.
//   - Task reads the operation and its resource in one statement, hence in one
//     snapshot: a Task that saw the older application saw the older version, too.
const announceOperation = `
INSERT INTO operation
	(id, tenant, instance_id, resource_type, resource_id, state, version, created_on, last_state_update)
VALUES ($1, $2, $3, $4, $5, 'Waiting', 1, $6, $6)
ON CONFLICT (instance_id, resource_type, resource_id) WHERE state = 'Waiting'
DO UPDATE SET version = operation.version + 1, last_state_update = excluded.last_state_update
RETURNING id, tenant, instance_id, resource_type, resource_id, state, human_readable_state, version, created_on`

func (d *DB) announce(ctx context.Context, tx *sql.Tx, n NewOperation) (Operation, error) {
	o, err := scanOperation(tx.QueryRowContext(ctx, announceOperation,
		n.ID, n.Tenant, n.Instance, n.ResourceType, n.ResourceID, d.now()))
	if err != nil {
		return Operation{}, fmt.Errorf("announce %s %s: %w", n.ResourceType, n.ResourceID, err)
	}
	return o, nil
}
