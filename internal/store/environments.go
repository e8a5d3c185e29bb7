// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// Environment is a remote cluster to deploy to: a row of managed_environment and
// its row of cluster_credentials.
type Environment struct {
	ID             domain.EnvironmentID
	Tenant         domain.TenantID
	Name           string
	AllowAutomated bool
	// Credentials is nil where the environment's CR is gone, and only deployments
	// that still point to it keep the row.
	Credentials *ClusterCredentials
}

// ClusterCredentials is how a cluster is reached.
type ClusterCredentials struct {
	Host string
	// SealedAccess is the encrypted access, sealed with the data key KeyID.
	SealedAccess []byte
	KeyID        string
	// SealedOrigin is a digest of what the tenant gave, sealed with the same key.
	SealedOrigin []byte

	// Namespaces limits the environment to them; none means all.
	Namespaces       []string
	ClusterResources bool

	// ServiceAccount is the account that Weir made on the cluster, as
	// namespace/name; empty where the given credentials are used. Its token expires.
	ServiceAccount string
	TokenExpires   time.Time

	// Version grows with each write; an update names the one it was decided on.
	Version int64
}

// EnvironmentChain is everything the database knows about one
// GitOpsDeploymentManagedEnvironment.
type EnvironmentChain struct {
	Link CRLink
	// Environment is nil where the row is gone.
	Environment *Environment
	Operation   *Operation
}

// EnvironmentRef names an environment together with its owner.
type EnvironmentRef struct {
	ID     domain.EnvironmentID
	Tenant domain.TenantID
}

// PutEnvironment adds or replaces an environment.
type PutEnvironment struct {
	Environment Environment
	Instance    domain.InstanceID
	Link        CRLink
}

const (
	// Which of these it is, the version says: credentials that were read must still
	// be there, or a late writer would bring back what has been removed meanwhile.
	insertClusterCredentials = `
INSERT INTO cluster_credentials
	(id, tenant, host, sealed_kubeconfig, key_id, namespaces, cluster_resources, service_account_namespace, service_account_name,
	 token_expires_on, sealed_origin, created_on)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	updateClusterCredentials = `
UPDATE cluster_credentials
SET host = $3, sealed_kubeconfig = $4, key_id = $5, namespaces = $6, cluster_resources = $7,
	service_account_namespace = $8, service_account_name = $9, token_expires_on = $10, sealed_origin = $11, version = version + 1
WHERE id = $1 AND tenant = $2 AND version = $12`
	putEnvironment = `
INSERT INTO managed_environment (id, tenant, name, kind, credentials_id, allow_automated, created_on)
VALUES ($1, $2, $3, 'remote', $1, $4, $5)
ON CONFLICT (id) DO UPDATE SET
	name = excluded.name, credentials_id = excluded.credentials_id, allow_automated = excluded.allow_automated
WHERE managed_environment.tenant = excluded.tenant AND managed_environment.kind = 'remote'`
	giveUpEnvironment        = `UPDATE managed_environment SET credentials_id = NULL WHERE id = $1 AND tenant = $2 AND kind = 'remote'`
	deleteClusterCredentials = `DELETE FROM cluster_credentials WHERE id = $1 AND tenant = $2`
	// An environment without credentials is kept only for the applications that
	// still name it.
	deleteAbandonedEnvironments = `
DELETE FROM managed_environment
WHERE tenant = $1 AND kind = 'remote' AND credentials_id IS NULL AND NOT EXISTS (
	SELECT 1 FROM application a WHERE a.tenant = managed_environment.tenant AND a.environment_id = managed_environment.id)`
)

func (d *DB) putEnvironment(p PutEnvironment) []Step {
	e, now := p.Environment, d.now()
	doing := fmt.Sprintf("write environment %s", e.ID)
	return []Step{
		d.putClusterCredentials(doing, e),
		{
			Doing: doing, SQL: putEnvironment,
			Args: []any{e.ID, e.Tenant, e.Name, e.AllowAutomated, now}, Affected: affected,
		},
		{Doing: doing, SQL: insertAccess, Args: []any{e.Tenant, e.ID, p.Instance, now}},
		addCRLink(p.Link),
	}
}

func (d *DB) putClusterCredentials(doing string, e Environment) Step {
	c := e.Credentials
	account, name, _ := strings.Cut(c.ServiceAccount, "/")
	put := Step{
		Doing: doing, SQL: insertClusterCredentials,
		Args: []any{
			e.ID, e.Tenant, c.Host, c.SealedAccess, c.KeyID, strings.Join(c.Namespaces, ","), c.ClusterResources,
			account, name, d.timeOrNull(c.TokenExpires), orNull(c.SealedOrigin),
		},
	}
	if c.Version == 0 {
		put.Args = append(put.Args, d.now())
	} else {
		put.SQL, put.Args, put.Affected = updateClusterCredentials, append(put.Args, c.Version), affected
	}
	return put
}

func removeEnvironment(r EnvironmentRef) []Step {
	doing := fmt.Sprintf("remove environment %s", r.ID)
	return []Step{
		{Doing: doing, SQL: giveUpEnvironment, Args: []any{r.ID, r.Tenant}},
		{Doing: doing, SQL: deleteClusterCredentials, Args: []any{r.ID, r.Tenant}},
		removeCRLink(KindEnvironment, string(r.ID), r.Tenant),
		forgetAbandoned(r.Tenant),
	}
}

func forgetAbandoned(tenant domain.TenantID) Step {
	return Step{Doing: "remove environments that nothing refers to", SQL: deleteAbandonedEnvironments, Args: []any{tenant}}
}

const environmentColumns = `e.id, e.tenant, e.name, e.allow_automated,
	c.id, c.host, c.sealed_kubeconfig, c.sealed_origin, c.key_id, c.namespaces, c.cluster_resources,
	c.service_account_namespace, c.service_account_name, c.token_expires_on, c.version`

// environmentRow takes the columns of environmentColumns, all NULL where an
// outer join found none.
type environmentRow struct {
	id, tenant, name                     text
	automated                            sql.Null[bool]
	credentials, host, keyID, namespaces text
	accountNamespace, accountName        text
	sealed, origin                       []byte
	clusterResources                     sql.Null[bool]
	expires                              moment
	version                              sql.Null[int64]
}

func (r *environmentRow) dest() []any {
	return []any{
		&r.id, &r.tenant, &r.name, &r.automated,
		&r.credentials, &r.host, &r.sealed, &r.origin, &r.keyID, &r.namespaces, &r.clusterResources,
		&r.accountNamespace, &r.accountName, &r.expires, &r.version,
	}
}

func (r *environmentRow) environment() *Environment {
	if !r.id.Valid {
		return nil
	}
	e := &Environment{
		ID: domain.EnvironmentID(r.id.V), Tenant: domain.TenantID(r.tenant.V), Name: r.name.V, AllowAutomated: r.automated.V,
	}
	if !r.credentials.Valid {
		return e
	}
	e.Credentials = &ClusterCredentials{
		Host: r.host.V, SealedAccess: r.sealed, SealedOrigin: r.origin, KeyID: r.keyID.V, ClusterResources: r.clusterResources.V,
		TokenExpires: r.expires.Time, Version: r.version.V,
	}
	if r.namespaces.V != "" {
		e.Credentials.Namespaces = strings.Split(r.namespaces.V, ",")
	}
	if r.accountName.V != "" {
		e.Credentials.ServiceAccount = r.accountNamespace.V + "/" + r.accountName.V
	}
	return e
}

const selectEnvironmentChains = `
SELECT l.cr_uid, l.tenant, l.cr_namespace, l.cr_name, ` + environmentColumns + `, ` + operationColumns + `
FROM api_cr_to_database_mapping l
LEFT JOIN managed_environment e ON e.tenant = l.tenant AND e.id = l.db_relation_key
LEFT JOIN cluster_credentials c ON c.id = e.credentials_id
LEFT JOIN operation o ON o.id = (
	SELECT newest.id FROM operation newest
	WHERE newest.resource_type = 'ManagedEnvironment' AND newest.resource_id = l.db_relation_key
	ORDER BY newest.id DESC LIMIT 1)
WHERE l.cr_type = 'GitOpsDeploymentManagedEnvironment' AND l.cr_namespace = $1 AND l.cr_name = $2
ORDER BY l.cr_uid`

// EnvironmentChains implements Environments.
func (d *DB) EnvironmentChains(ctx context.Context, namespace, name string) ([]EnvironmentChain, error) {
	return list(ctx, d, "read what belongs to an environment", func(row Scanner) (EnvironmentChain, error) {
		c := EnvironmentChain{Link: CRLink{Kind: KindEnvironment}}
		var (
			e  environmentRow
			op operationRow
		)
		dest := append([]any{&c.Link.UID, &c.Link.Tenant, &c.Link.Namespace, &c.Link.Name}, e.dest()...)
		if err := row.Scan(append(dest, op.dest()...)...); err != nil {
			return c, err
		}
		c.Environment, c.Operation = e.environment(), op.orNil()
		return c, nil
	}, selectEnvironmentChains, namespace, name)
}

const selectEnvironment = `
SELECT ` + environmentColumns + `
FROM managed_environment e LEFT JOIN cluster_credentials c ON c.id = e.credentials_id
WHERE e.tenant = $1 AND e.id = $2 AND e.kind = 'remote'`

// Environment implements Environments.
func (d *DB) Environment(ctx context.Context, tenant domain.TenantID, id domain.EnvironmentID) (Environment, error) {
	var r environmentRow
	if err := d.one(ctx, "read an environment", selectEnvironment, []any{tenant, id}, r.dest()...); err != nil {
		return Environment{}, err
	}
	return *r.environment(), nil
}

const selectEnvironmentTask = `
SELECT ` + operationColumns + `, ` + environmentColumns + `
FROM operation o
LEFT JOIN managed_environment e ON o.resource_type = 'ManagedEnvironment' AND e.id = o.resource_id AND e.kind = 'remote'
LEFT JOIN cluster_credentials c ON c.id = e.credentials_id
WHERE o.id = $1`

func (d *DB) environmentTask(ctx context.Context, id domain.OperationID) (Task, error) {
	var (
		op operationRow
		e  environmentRow
	)
	err := d.one(ctx, "read an operation on an environment", selectEnvironmentTask, []any{id}, append(op.dest(), e.dest()...)...)
	return Task{Operation: op.operation(), Environment: e.environment()}, err
}
