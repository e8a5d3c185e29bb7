// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// SyncOperation is a row of sync_operation.
type SyncOperation struct {
	ID          domain.SyncOperationID
	Tenant      domain.TenantID
	Application domain.ApplicationID
	// Deployment is the name that the CR gives.
	Deployment string
	// Revision to sync to; empty for the newest of the target revision.
	Revision string
	// RunningLimit is how many syncs of the tenant may run at once; 0 for any
	// number.
	RunningLimit int
	Result       domain.SyncResult
}

// SyncChain is everything the database knows about one GitOpsDeploymentSyncRun.
type SyncChain struct {
	Link CRLink
	// Sync is nil where its application has gone and taken it along.
	Sync *SyncOperation
	// Operation is the newest operation on it, nil where there is none any more.
	Operation *Operation
}

// SyncRef names a sync operation together with its owner.
type SyncRef struct {
	ID     domain.SyncOperationID
	Tenant domain.TenantID
}

// NewSync is a sync operation and the link to its CR.
type NewSync struct {
	Sync SyncOperation
	Link CRLink
}

const (
	insertSync = `
INSERT INTO sync_operation (id, tenant, application_id, deployment_name, revision, desired_state, running_limit, created_on)
VALUES ($1, $2, $3, $4, $5, 'Running', $6, $7)`
	deleteSync = `DELETE FROM sync_operation WHERE id = $1 AND tenant = $2`
	// The syncs of an application end with it, and so must the links to them, which
	// no foreign key can follow.
	deleteSyncLinks = `
DELETE FROM api_cr_to_database_mapping WHERE cr_type = 'GitOpsDeploymentSyncRun' AND tenant = $2
AND cr_uid IN (SELECT s.id FROM sync_operation s WHERE s.application_id = $1)`
)

func (d *DB) insertSync(n NewSync) []Step {
	s := n.Sync
	return []Step{
		{
			Doing: fmt.Sprintf("add sync operation %s", s.ID),
			SQL:   insertSync, Args: []any{s.ID, s.Tenant, s.Application, s.Deployment, s.Revision, s.RunningLimit, d.now()},
		},
		addCRLink(n.Link),
	}
}

func removeSync(r SyncRef) []Step {
	return []Step{
		{Doing: fmt.Sprintf("remove sync operation %s", r.ID), SQL: deleteSync, Args: []any{r.ID, r.Tenant}},
		removeCRLink(KindSyncRun, string(r.ID), r.Tenant),
	}
}

const syncColumns = `s.id, s.tenant, s.application_id, s.deployment_name, s.revision, s.running_limit,
	s.phase, s.message, s.synced_revision, s.health, s.sync, s.started_on, s.finished_on`

// syncRow takes the columns of syncColumns, all NULL where an outer join found
// none.
type syncRow struct {
	id, tenant, application, deployment, revision  text
	limit                                          sql.Null[int64]
	phase, message, syncedRevision, health, status text
	started, finished                              moment
}

func (r *syncRow) dest() []any {
	return []any{
		&r.id, &r.tenant, &r.application, &r.deployment, &r.revision, &r.limit,
		&r.phase, &r.message, &r.syncedRevision, &r.health, &r.status, &r.started, &r.finished,
	}
}

func (r *syncRow) sync() *SyncOperation {
	if !r.id.Valid {
		return nil
	}
	return &SyncOperation{
		ID: domain.SyncOperationID(r.id.V), Tenant: domain.TenantID(r.tenant.V), Application: domain.ApplicationID(r.application.V),
		Deployment: r.deployment.V, Revision: r.revision.V, RunningLimit: int(r.limit.V),
		Result: domain.SyncResult{
			Phase: domain.SyncPhase(r.phase.V), Message: r.message.V, Revision: r.syncedRevision.V, Health: r.health.V, Sync: r.status.V,
			StartedAt: r.started.Time, FinishedAt: r.finished.Time,
		},
	}
}

const selectSyncChains = `
SELECT l.cr_uid, l.tenant, l.cr_namespace, l.cr_name, ` + syncColumns + `, ` + operationColumns + `
FROM api_cr_to_database_mapping l
LEFT JOIN sync_operation s ON s.tenant = l.tenant AND s.id = l.db_relation_key
LEFT JOIN operation o ON o.id = (
	SELECT newest.id FROM operation newest
	WHERE newest.resource_type = 'SyncOperation' AND newest.resource_id = l.db_relation_key
	ORDER BY newest.id DESC LIMIT 1)
WHERE l.cr_type = 'GitOpsDeploymentSyncRun' AND l.cr_namespace = $1 AND l.cr_name = $2
ORDER BY l.cr_uid`

// SyncChains implements SyncRuns.
func (d *DB) SyncChains(ctx context.Context, namespace, name string) ([]SyncChain, error) {
	return list(ctx, d, "read what belongs to a sync run", func(row Scanner) (SyncChain, error) {
		c := SyncChain{Link: CRLink{Kind: KindSyncRun}}
		var (
			s  syncRow
			op operationRow
		)
		dest := append([]any{&c.Link.UID, &c.Link.Tenant, &c.Link.Namespace, &c.Link.Name}, s.dest()...)
		if err := row.Scan(append(dest, op.dest()...)...); err != nil {
			return c, err
		}
		c.Sync, c.Operation = s.sync(), op.orNil()
		return c, nil
	}, selectSyncChains, namespace, name)
}

// A result that has been written to its end is not written again: whatever comes
// later is about another sync, or late.
const updateSyncResult = `
UPDATE sync_operation
SET phase = $2, message = $3, synced_revision = $4, health = $5, sync = $6, started_on = $7, finished_on = $8
WHERE id = $1 AND finished_on IS NULL`

// SaveSyncResult implements SyncRuns.
func (d *DB) SaveSyncResult(ctx context.Context, id domain.SyncOperationID, r domain.SyncResult) error {
	_, err := d.change(ctx, "store how a sync has gone", updateSyncResult, id, string(r.Phase), storable(r.Message),
		storable(r.Revision), storable(r.Health), storable(r.Sync), d.timeOrNull(r.StartedAt), d.timeOrNull(r.FinishedAt))
	return err
}

const selectSyncTask = `
SELECT ` + operationColumns + `, ` + syncColumns + `, s.id IS NOT NULL AND EXISTS (
	SELECT 1 FROM sync_operation earlier
	WHERE earlier.application_id = s.application_id AND earlier.finished_on IS NULL
	  AND (earlier.created_on < s.created_on OR (earlier.created_on = s.created_on AND earlier.id < s.id)))
FROM operation o
LEFT JOIN sync_operation s ON o.resource_type = 'SyncOperation' AND s.id = o.resource_id
WHERE o.id = $1`

func (d *DB) syncTask(ctx context.Context, id domain.OperationID) (Task, error) {
	var (
		op      operationRow
		s       syncRow
		earlier bool
	)
	err := d.one(ctx, "read an operation on a sync", selectSyncTask, []any{id}, append(append(op.dest(), s.dest()...), &earlier)...)
	return Task{Operation: op.operation(), Sync: s.sync(), EarlierSync: earlier}, err
}
