// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// Apply implements Deployments. A decision is a list of statements that do not
// depend on each other's results, so a database that can take them all at once
// is asked once.
func (d *DB) Apply(ctx context.Context, c Change) ([]Operation, error) {
	var announced []Operation
	err := d.transactSteps(ctx, "write the decision", func() []Step {
		announced = nil
		var steps []Step
		if c.Tenant != nil {
			steps = append(steps, d.addTenant(*c.Tenant)...)
		}
		for _, ref := range c.Remove {
			steps = append(steps, removeApplication(ref)...)
		}
		if c.Insert != nil {
			steps = append(steps, d.insertApplication(*c.Insert)...)
		}
		if c.Update != nil {
			steps = append(steps, d.updateApplication(*c.Update))
		}
		steps = append(steps, d.applyOthers(c)...)
		for _, n := range c.Announce {
			steps = append(steps, d.announce(n, &announced))
		}
		return steps
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

func (d *DB) addTenant(t Tenant) []Step {
	environment, now := domain.LocalEnvironment(t.ID), d.now()
	return []Step{
		{Doing: fmt.Sprintf("add tenant %s", t.ID), SQL: insertTenant, Args: []any{t.ID, t.Namespace, now}},
		{
			Doing: fmt.Sprintf("add the local environment of tenant %s", t.ID),
			SQL:   insertLocalEnvironment, Args: []any{environment, t.ID, t.Namespace, now},
		},
		{
			Doing: fmt.Sprintf("map the namespace of tenant %s", t.ID),
			SQL:   insertNamespaceMapping, Args: []any{t.ID, "ManagedEnvironment", environment, t.ID},
		},
		{
			Doing: fmt.Sprintf("give tenant %s access to instance %s", t.ID, t.Instance),
			SQL:   insertAccess, Args: []any{t.ID, environment, t.Instance, now},
		},
	}
}

// That the row is gone already is what was wanted, so it is no conflict. The
// owner is part of the condition: a wrong reference removes nothing.
const deleteApplication = `DELETE FROM application WHERE id = $1 AND tenant = $2`

func removeApplication(ref ApplicationRef) []Step {
	doing := fmt.Sprintf("remove application %s", ref.ID)
	return []Step{
		{Doing: doing, SQL: deleteSyncLinks, Args: []any{ref.ID, ref.Tenant}},
		{Doing: doing, SQL: deleteApplication, Args: []any{ref.ID, ref.Tenant}},
	}
}

// applyOthers are the statements for the tenant kinds besides GitOpsDeployment.
func (d *DB) applyOthers(c Change) []Step {
	var steps []Step
	for _, ref := range c.RemoveSyncs {
		steps = append(steps, removeSync(ref)...)
	}
	if c.InsertSync != nil {
		steps = append(steps, d.insertSync(*c.InsertSync)...)
	}
	for _, ref := range c.RemoveEnvironments {
		steps = append(steps, removeEnvironment(ref)...)
	}
	if c.PutEnvironment != nil {
		steps = append(steps, d.putEnvironment(*c.PutEnvironment)...)
	}
	for _, ref := range c.RemoveCredentials {
		steps = append(steps, removeCredential(ref)...)
	}
	if c.PutCredential != nil {
		steps = append(steps, d.putCredential(*c.PutCredential)...)
	}
	if c.LeavesEnvironment != "" {
		steps = append(steps, forgetAbandoned(c.LeavesEnvironment))
	}
	return steps
}

const (
	insertApplication = `
INSERT INTO application
	(id, tenant, name, spec, repo_url, namespace, instance_id, environment_id, generation, version, created_on, updated_on)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1, $10, $10)`
	insertLink = `
INSERT INTO deployment_to_application_mapping (application_id, tenant, namespace, name) VALUES ($1, $2, $3, $4)`
)

func (d *DB) insertApplication(n NewApplication) []Step {
	a, l := n.Application, n.Link
	return []Step{
		{
			Doing: fmt.Sprintf("add application %s", a.ID),
			SQL:   insertApplication,
			Args: []any{
				a.ID, a.Tenant, a.Name, a.Spec.Encode(), a.Spec.RepoURL, a.Spec.Namespace, a.Instance, a.Environment, a.Generation, d.now(),
			},
		},
		{
			Doing: fmt.Sprintf("link application %s to its deployment", l.Application),
			SQL:   insertLink, Args: []any{l.Application, l.Tenant, l.Namespace, l.Name},
		},
	}
}

const updateApplication = `
UPDATE application
SET spec = $4, repo_url = $5, namespace = $6, instance_id = $7, environment_id = $8, generation = $9,
	version = version + 1, updated_on = $10
WHERE id = $1 AND tenant = $2 AND version = $3`

func (d *DB) updateApplication(a Application) Step {
	return Step{
		Doing: fmt.Sprintf("update application %s", a.ID),
		SQL:   updateApplication,
		Args: []any{
			a.ID, a.Tenant, a.Version, a.Spec.Encode(), a.Spec.RepoURL, a.Spec.Namespace, a.Instance, a.Environment, a.Generation, d.now(),
		},
		Affected: func(rows int64) error {
			if rows == 0 {
				return fmt.Errorf("at version %d: %w", a.Version, domain.ErrConflict)
			}
			return nil
		},
	}
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

func (d *DB) announce(n NewOperation, into *[]Operation) Step {
	return Step{
		Doing: fmt.Sprintf("announce %s %s", n.ResourceType, n.ResourceID),
		SQL:   announceOperation,
		Args:  []any{n.ID, n.Tenant, n.Instance, n.ResourceType, n.ResourceID, d.now()},
		Row: func(row Scanner) error {
			o, err := scanOperation(row)
			*into = append(*into, o)
			return err
		},
	}
}
