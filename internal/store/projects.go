// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"

	"github.com/weir-gitops/weir/internal/domain"
)

// ProjectUse is one thing that a tenant's project has to allow: a repository, and
// a namespace of an environment.
type ProjectUse struct {
	Repository  string
	Environment domain.EnvironmentID
	Namespace   string
	// ClusterResources says that the environment lets resources without a
	// namespace be deployed.
	ClusterResources bool
}

const selectProjectUses = `
SELECT DISTINCT a.repo_url, a.environment_id, a.namespace, COALESCE(c.cluster_resources, FALSE)
FROM application a
JOIN managed_environment e ON e.tenant = a.tenant AND e.id = a.environment_id
LEFT JOIN cluster_credentials c ON c.tenant = e.tenant AND c.id = e.credentials_id
WHERE a.tenant = $1
ORDER BY 1, 2, 3`

// ProjectUses implements Projects.
func (d *DB) ProjectUses(ctx context.Context, tenant domain.TenantID) ([]ProjectUse, error) {
	return list(ctx, d, "read what a tenant deploys", func(row Scanner) (ProjectUse, error) {
		var u ProjectUse
		err := row.Scan(&u.Repository, &u.Environment, &u.Namespace, &u.ClusterResources)
		return u, err
	}, selectProjectUses, tenant)
}
