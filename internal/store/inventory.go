// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/weir-gitops/weir/internal/domain"
)

const selectLinks = `
SELECT application_id, tenant, namespace, name FROM deployment_to_application_mapping
WHERE application_id > $1 ORDER BY application_id LIMIT $2`

// Links implements Inventory.
func (d *DB) Links(ctx context.Context, after domain.ApplicationID, limit int) ([]Link, error) {
	return list(ctx, d, "list deployments' link rows", func(row Scanner) (Link, error) {
		var l Link
		err := row.Scan(&l.Application, &l.Tenant, &l.Namespace, &l.Name)
		return l, err
	}, selectLinks, after, limit)
}

const selectApplications = `
SELECT ` + applicationColumns + ` FROM application a
WHERE a.id > $2 AND ($1 = '' OR a.instance_id = $1)
ORDER BY a.id LIMIT $3`

// Applications implements Inventory. A damaged spec fails the page: a row left
// out would look as if the application were gone, and one with an empty spec as
// if that were wanted. Taking in the CR again repairs it.
func (d *DB) Applications(
	ctx context.Context, instance domain.InstanceID, after domain.ApplicationID, limit int,
) ([]Application, error) {
	return list(ctx, d, "list applications", func(row Scanner) (Application, error) {
		var r applicationRow
		if err := row.Scan(r.dest()...); err != nil {
			return Application{}, err
		}
		return r.decoded()
	}, selectApplications, instance, after, limit)
}
