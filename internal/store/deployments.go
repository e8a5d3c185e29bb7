// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// The newest operation is the one with the largest id: ids are made so.
const selectChains = `
SELECT l.namespace, l.name, ` + applicationColumns + `, ` + stateColumns + `, ` + operationColumns + `
FROM deployment_to_application_mapping l
JOIN application a ON a.id = l.application_id
LEFT JOIN application_state s ON s.application_id = a.id
LEFT JOIN operation o ON o.id = (
	SELECT newest.id FROM operation newest
	WHERE newest.resource_type = 'Application' AND newest.resource_id = a.id
	ORDER BY newest.id DESC LIMIT 1)
WHERE l.namespace = $1 AND l.name = $2
ORDER BY a.id`

// Chains implements Deployments. An application whose spec was damaged by hand
// comes back with an empty one: it then differs from what the CR asks for, and
// taking in the CR repairs it.
func (d *DB) Chains(ctx context.Context, namespace, name string) ([]Chain, error) {
	return list(ctx, d, "read what belongs to a deployment", scanChain, selectChains, namespace, name)
}

func scanChain(row Scanner) (Chain, error) {
	var (
		link        Link
		application applicationRow
		state       stateRow
		operation   operationRow
	)
	dest := []any{&link.Namespace, &link.Name}
	dest = append(dest, application.dest()...)
	dest = append(dest, state.dest()...)
	dest = append(dest, operation.dest()...)
	if err := row.Scan(dest...); err != nil {
		return Chain{}, err
	}
	a, err := application.decoded()
	if err != nil {
		a.Spec = domain.ApplicationSpec{}
	}
	link.Application, link.Tenant = a.ID, a.Tenant
	chain := Chain{Link: link, Application: a}
	if state.present() {
		chain.State = state.state()
	}
	if operation.present() {
		o := operation.operation()
		chain.Operation = &o
	}
	return chain, nil
}

// A settled tenant stays where it is, ready or not. Otherwise the instance that
// serves the fewest tenants is proposed; the second half costs nothing for a
// settled one, because its condition is decided before any row is read.
const selectPlacement = `
SELECT i.id, i.namespace, TRUE
FROM cluster_access c JOIN gitops_engine_instance i ON i.id = c.instance_id
WHERE c.tenant = $1 AND c.environment_id = $2
UNION ALL
SELECT proposal.id, proposal.namespace, FALSE
FROM (
	SELECT i.id, i.namespace
	FROM gitops_engine_instance i LEFT JOIN cluster_access c ON c.instance_id = i.id
	WHERE i.ready AND NOT EXISTS (SELECT 1 FROM cluster_access WHERE tenant = $1 AND environment_id = $2)
	GROUP BY i.id, i.namespace
	ORDER BY count(DISTINCT c.tenant), i.id
	LIMIT 1) AS proposal`

// Placement implements Deployments.
func (d *DB) Placement(ctx context.Context, tenant domain.TenantID) (Placement, error) {
	var p Placement
	err := d.again(ctx, "find an engine instance for the tenant", func() error {
		return d.read.QueryRowContext(ctx, selectPlacement, tenant, domain.LocalEnvironment(tenant)).
			Scan(&p.Instance, &p.Namespace, &p.Settled)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Placement{}, fmt.Errorf("a ready engine instance: %w", domain.ErrNotFound)
	}
	return p, err
}

const selectLatestOperation = `
SELECT ` + operationColumns + ` FROM operation o
WHERE o.resource_type = $1 AND o.resource_id = $2
ORDER BY o.id DESC LIMIT 1`

// LatestOperation implements Deployments.
func (d *DB) LatestOperation(ctx context.Context, t domain.ResourceType, id string) (Operation, error) {
	var o Operation
	err := d.again(ctx, "read the latest operation", func() (err error) {
		o, err = scanOperation(d.read.QueryRowContext(ctx, selectLatestOperation, t, id))
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		return Operation{}, fmt.Errorf("an operation on %s %s: %w", t, id, domain.ErrNotFound)
	}
	return o, err
}
