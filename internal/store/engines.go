// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

const (
	insertCluster = `
INSERT INTO gitops_engine_cluster (id, created_on) VALUES ($1, $2)
ON CONFLICT DO NOTHING`
	upsertInstance = `
INSERT INTO gitops_engine_instance (id, cluster_id, namespace, kind, ready, created_on) VALUES ($1, $2, $3, $4, TRUE, $5)
ON CONFLICT (id) DO UPDATE SET namespace = excluded.namespace, kind = excluded.kind, ready = TRUE`
)

// RegisterEngine implements Engines.
func (d *DB) RegisterEngine(ctx context.Context, i Instance) error {
	return d.transact(ctx, "register the engine", func(tx *sql.Tx) error {
		now := d.now()
		// The migration made the internal user; a database that lost it gets it back.
		if _, err := tx.ExecContext(ctx, insertTenant, domain.InternalTenant, "", now); err != nil {
			return fmt.Errorf("add the internal user: %w", err)
		}
		if _, err := tx.ExecContext(ctx, insertCluster, i.Cluster, now); err != nil {
			return fmt.Errorf("add engine cluster %s: %w", i.Cluster, err)
		}
		if _, err := tx.ExecContext(ctx, upsertInstance, i.ID, i.Cluster, i.Namespace, i.Kind, now); err != nil {
			return fmt.Errorf("add engine instance %s: %w", i.ID, err)
		}
		if _, err := tx.ExecContext(ctx, insertNamespaceMapping,
			i.Cluster, "GitopsEngineCluster", i.Cluster, domain.InternalTenant); err != nil {
			return fmt.Errorf("map engine cluster %s: %w", i.Cluster, err)
		}
		if _, err := tx.ExecContext(ctx, insertNamespaceMapping,
			i.ID, "GitopsEngineInstance", i.ID, domain.InternalTenant); err != nil {
			return fmt.Errorf("map engine instance %s: %w", i.ID, err)
		}
		return nil
	})
}

const selectInstances = `SELECT id, cluster_id, namespace, kind FROM gitops_engine_instance ORDER BY id`

// Instances implements Engines.
func (d *DB) Instances(ctx context.Context) ([]Instance, error) {
	return list(ctx, d, "list engine instances", func(row Scanner) (Instance, error) {
		var i Instance
		err := row.Scan(&i.ID, &i.Cluster, &i.Namespace, &i.Kind)
		return i, err
	}, selectInstances)
}
