// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// The row is taken from the application itself, so a report on one that is gone,
// or on another tenant's, inserts nothing. Of reports on the same engine object
// only a later one replaces; another engine object is always news, because
// reports reach us through one watch, which does not go back to a deleted object.
const upsertState = `
INSERT INTO application_state
	(application_id, tenant, engine_uid, sequence, health, health_message, sync, revision, detail, updated_on)
SELECT a.id, a.tenant, $3, $4, $5, $6, $7, $8, $9, $10
FROM application a WHERE a.id = $1 AND a.tenant = $2
ON CONFLICT (application_id) DO UPDATE SET
	engine_uid = excluded.engine_uid, sequence = excluded.sequence, health = excluded.health,
	health_message = excluded.health_message, sync = excluded.sync, revision = excluded.revision,
	detail = excluded.detail, updated_on = excluded.updated_on
WHERE application_state.engine_uid <> excluded.engine_uid OR application_state.sequence < excluded.sequence`

// SaveState implements States.
func (d *DB) SaveState(ctx context.Context, s domain.ApplicationState) (bool, error) {
	detail, err := json.Marshal(s.Detail)
	if err != nil {
		return false, fmt.Errorf("encode the state of application %s: %w", s.Application, err)
	}
	rows, err := d.change(ctx, "store an application's state", upsertState,
		s.Application, s.Tenant, s.EngineUID, s.Sequence, storable(s.Health), storable(s.HealthMessage),
		storable(s.Sync), storable(s.Revision), storable(string(detail)), d.now())
	if errors.Is(err, domain.ErrMissingParent) {
		// The application went between being read and being referred to.
		return false, nil
	}
	return rows > 0, err
}

// The bound is given for both sides of the join: the planner does not carry an
// inequality over, and would read the states from the first one on.
const selectObserved = `
SELECT s.application_id, s.engine_uid, s.sequence
FROM application_state s JOIN application a ON a.id = s.application_id
WHERE s.application_id > $2 AND a.id > $2 AND ($1 = '' OR a.instance_id = $1)
ORDER BY a.id LIMIT $3`

// ObservedStates implements States.
func (d *DB) ObservedStates(
	ctx context.Context, instance domain.InstanceID, after domain.ApplicationID, limit int,
) ([]Observed, error) {
	return list(ctx, d, "list observed states", func(row Scanner) (Observed, error) {
		var o Observed
		err := row.Scan(&o.Application, &o.EngineUID, &o.Sequence)
		return o, err
	}, selectObserved, instance, after, limit)
}
