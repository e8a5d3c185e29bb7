// SPDX-License-Identifier: Apache-2.0

package store

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// moment reads a time from either database: PostgreSQL gives times, SQLite the
// microseconds that its dialect wrote. A NULL is the zero time.
type moment struct{ time.Time }

// Scan is database/sql's.
func (m *moment) Scan(value any) error {
	switch v := value.(type) {
	case nil:
		m.Time = time.Time{}
	case time.Time:
		m.Time = v.UTC()
	case int64:
		m.Time = time.UnixMicro(v).UTC()
	default:
		return fmt.Errorf("a time cannot be read from %T", value)
	}
	return nil
}

// text reads a column that an outer join may leave NULL.
type text struct{ sql.Null[string] }

const applicationColumns = `a.id, a.tenant, a.name, a.spec, a.instance_id, a.environment_id, a.generation, a.version`

// applicationRow takes the columns of applicationColumns, all NULL where an
// outer join found none.
type applicationRow struct {
	id, tenant, name, spec, instance, environment text
	generation, version                           sql.Null[int64]
}

func (r *applicationRow) dest() []any {
	return []any{&r.id, &r.tenant, &r.name, &r.spec, &r.instance, &r.environment, &r.generation, &r.version}
}

func (r *applicationRow) present() bool { return r.id.Valid }

// application gives the row without its spec, which may be damaged.
func (r *applicationRow) application() Application {
	return Application{
		ID:          domain.ApplicationID(r.id.V),
		Tenant:      domain.TenantID(r.tenant.V),
		Name:        r.name.V,
		Instance:    domain.InstanceID(r.instance.V),
		Environment: domain.EnvironmentID(r.environment.V),
		Generation:  r.generation.V,
		Version:     r.version.V,
	}
}

// decoded gives the row with its spec, or says that the spec cannot be read.
func (r *applicationRow) decoded() (Application, error) {
	a := r.application()
	spec, err := domain.DecodeApplicationSpec(r.spec.V)
	if err != nil {
		return a, fmt.Errorf("application %s: %w", a.ID, err)
	}
	a.Spec = spec
	return a, nil
}

const operationColumns = `o.id, o.tenant, o.instance_id, o.resource_type, o.resource_id, o.state, o.human_readable_state, o.version, o.created_on`

// operationRow takes the columns of operationColumns, all NULL where an outer
// join found none.
type operationRow struct {
	id, tenant, instance, resourceType, resource, state, message text
	version                                                      sql.Null[int64]
	created                                                      moment
}

func (r *operationRow) dest() []any {
	return []any{&r.id, &r.tenant, &r.instance, &r.resourceType, &r.resource, &r.state, &r.message, &r.version, &r.created}
}

func (r *operationRow) present() bool { return r.id.Valid }

func (r *operationRow) operation() Operation {
	return Operation{
		ID:           domain.OperationID(r.id.V),
		Tenant:       domain.TenantID(r.tenant.V),
		Instance:     domain.InstanceID(r.instance.V),
		ResourceType: domain.ResourceType(r.resourceType.V),
		ResourceID:   r.resource.V,
		State:        domain.OperationState(r.state.V),
		Message:      r.message.V,
		Version:      r.version.V,
		CreatedOn:    r.created.Time,
	}
}

func (r *operationRow) orNil() *Operation {
	if !r.present() {
		return nil
	}
	o := r.operation()
	return &o
}

func scanOperation(row Scanner) (Operation, error) {
	var r operationRow
	err := row.Scan(r.dest()...)
	return r.operation(), err
}

const stateColumns = `s.application_id, s.tenant, s.engine_uid, s.sequence, s.health, s.health_message, s.sync, s.revision, s.detail`

// stateRow takes the columns of stateColumns, all NULL where an outer join
// found none.
type stateRow struct {
	application, tenant, engineUID, health, healthMessage, sync, revision, detail text
	sequence                                                                      sql.Null[int64]
}

func (r *stateRow) dest() []any {
	return []any{
		&r.application, &r.tenant, &r.engineUID, &r.sequence, &r.health, &r.healthMessage, &r.sync, &r.revision, &r.detail,
	}
}

func (r *stateRow) present() bool { return r.application.Valid }

// state gives the row. A detail that somebody edited into something else is
// left out: the rest is still worth showing, and the next report replaces it.
func (r *stateRow) state() *domain.ApplicationState {
	s := &domain.ApplicationState{
		Application:   domain.ApplicationID(r.application.V),
		Tenant:        domain.TenantID(r.tenant.V),
		EngineUID:     r.engineUID.V,
		Sequence:      r.sequence.V,
		Health:        r.health.V,
		HealthMessage: r.healthMessage.V,
		Sync:          r.sync.V,
		Revision:      r.revision.V,
	}
	if json.Unmarshal([]byte(r.detail.V), &s.Detail) != nil {
		s.Detail = domain.StateDetail{}
	}
	return s
}

// storable makes text from outside acceptable to both databases: PostgreSQL
// takes neither invalid UTF-8 nor NUL, and an engine's error message may have
// both without being any less worth showing.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
