// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// HistoryEntry is a row of deployment_history.
type HistoryEntry struct {
	domain.DeploymentRecord
	Namespace string
	Name      string
}

// The names come from the deployment's link row, so nothing is recorded of an
// application that is gone. An end that is seen twice is one entry.
const insertHistory = `
INSERT INTO deployment_history
	(id, tenant, application_id, deployment_uid, deployment_namespace, deployment_name, trigger, revision, result, message,
	 resources_changed, started_on, finished_on)
SELECT $1, l.tenant, l.application_id, l.application_id, l.namespace, l.name, $4, $5, $6, $7, $8, $9, $10
FROM deployment_to_application_mapping l WHERE l.application_id = $2 AND l.tenant = $3
ON CONFLICT (id) DO NOTHING`

// RecordDeployment implements History.
func (d *DB) RecordDeployment(ctx context.Context, r domain.DeploymentRecord) error {
	_, err := d.change(ctx, "record a deployment", insertHistory,
		r.ID, r.Application, r.Tenant, storable(r.Trigger), storable(r.Revision), string(r.Result), storable(r.Message), r.Resources,
		d.dialect.Time(r.Started), d.dialect.Time(r.Finished))
	if err != nil {
		return fmt.Errorf("of application %s: %w", r.Application, err)
	}
	return nil
}

const selectHistory = `
SELECT id, tenant, application_id, deployment_namespace, deployment_name, trigger, revision, result, message, resources_changed, started_on, finished_on
FROM deployment_history WHERE tenant = $1 AND application_id = $2
ORDER BY started_on DESC, id DESC LIMIT $3`

// History implements History.
func (d *DB) History(ctx context.Context, tenant domain.TenantID, id domain.ApplicationID, limit int) ([]HistoryEntry, error) {
	return list(ctx, d, "read a deployment's history", func(row Scanner) (HistoryEntry, error) {
		var (
			h                 HistoryEntry
			started, finished moment
		)
		err := row.Scan(&h.ID, &h.Tenant, &h.Application, &h.Namespace, &h.Name, &h.Trigger, &h.Revision, &h.Result, &h.Message, &h.Resources, &started, &finished)
		h.Started, h.Finished = started.Time, finished.Time
		return h, err
	}, selectHistory, tenant, id, limit)
}
