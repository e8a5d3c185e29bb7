// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// CRKind is a tenant kind whose link rows are in api_cr_to_database_mapping.
type CRKind string

// The tenant kinds besides GitOpsDeployment, which has a table of its own.
const (
	KindSyncRun     CRKind = "GitOpsDeploymentSyncRun"
	KindEnvironment CRKind = "GitOpsDeploymentManagedEnvironment"
	KindCredential  CRKind = "GitOpsDeploymentRepositoryCredential"
)

// relation is the row that a CR of the kind stands for.
func (k CRKind) relation() domain.ResourceType {
	switch k {
	case KindSyncRun:
		return domain.ResourceSyncOperation
	case KindEnvironment:
		return domain.ResourceManagedEnvironment
	default:
		return domain.ResourceRepositoryCredential
	}
}

// CRLink is a row of api_cr_to_database_mapping: which CR a row stands for. The
// CR's UID is the row's id.
type CRLink struct {
	Kind      CRKind
	UID       string
	Tenant    domain.TenantID
	Namespace string
	Name      string
}

const (
	insertCRLink = `
INSERT INTO api_cr_to_database_mapping (cr_type, cr_uid, cr_namespace, cr_name, tenant, db_relation_type, db_relation_key)
VALUES ($1, $2, $3, $4, $5, $6, $2)
ON CONFLICT DO NOTHING`
	deleteCRLink = `DELETE FROM api_cr_to_database_mapping WHERE cr_type = $1 AND cr_uid = $2 AND tenant = $3`
)

func addCRLink(l CRLink) Step {
	return Step{
		Doing: fmt.Sprintf("link %s %s", l.Kind, l.UID),
		SQL:   insertCRLink, Args: []any{string(l.Kind), l.UID, l.Namespace, l.Name, l.Tenant, string(l.Kind.relation())},
	}
}

func removeCRLink(k CRKind, uid string, tenant domain.TenantID) Step {
	return Step{
		Doing: fmt.Sprintf("unlink %s %s", k, uid),
		SQL:   deleteCRLink, Args: []any{string(k), uid, tenant},
	}
}

// affected asks that a guarded statement has touched its row.
func affected(rows int64) error {
	if rows == 0 {
		return domain.ErrConflict
	}
	return nil
}

const selectCRLinks = `
SELECT cr_type, cr_uid, tenant, cr_namespace, cr_name FROM api_cr_to_database_mapping
WHERE (cr_type, cr_uid) > ($1, $2) ORDER BY cr_type, cr_uid LIMIT $3`

// CRLinks implements Inventory.
func (d *DB) CRLinks(ctx context.Context, after CRLink, limit int) ([]CRLink, error) {
	return list(ctx, d, "list link rows", func(row Scanner) (CRLink, error) {
		var l CRLink
		err := row.Scan(&l.Kind, &l.UID, &l.Tenant, &l.Namespace, &l.Name)
		return l, err
	}, selectCRLinks, string(after.Kind), after.UID, limit)
}
