// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

// RepositoryCredential is a row of repository_credentials.
type RepositoryCredential struct {
	ID         domain.CredentialID
	Tenant     domain.TenantID
	Instance   domain.InstanceID
	Repository string

	// What is there of these is sealed with the data key KeyID.
	SealedUsername []byte
	SealedPassword []byte
	SealedSSHKey   []byte
	KeyID          string

	// Version grows with each write; an update names the one it was decided on.
	Version int64
}

// CredentialChain is everything the database knows about one
// GitOpsDeploymentRepositoryCredential.
type CredentialChain struct {
	Link CRLink
	// Credential is nil where the row is gone.
	Credential *RepositoryCredential
	Operation  *Operation
}

// CredentialRef names a credential together with its owner.
type CredentialRef struct {
	ID     domain.CredentialID
	Tenant domain.TenantID
}

// PutCredential adds or replaces a credential.
type PutCredential struct {
	Credential RepositoryCredential
	Link       CRLink
}

// Which of these it is, the version says: one that was read must still be there,
// or a late writer would bring back what has been removed meanwhile.
const (
	insertCredential = `
INSERT INTO repository_credentials
	(id, tenant, instance_id, repository_url, sealed_username, sealed_password, sealed_ssh_key, key_id, created_on)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`
	updateCredential = `
UPDATE repository_credentials
SET instance_id = $3, repository_url = $4, sealed_username = $5, sealed_password = $6, sealed_ssh_key = $7, key_id = $8,
	version = version + 1
WHERE id = $1 AND tenant = $2 AND version = $9`
	deleteCredential = `DELETE FROM repository_credentials WHERE id = $1 AND tenant = $2`
)

func (d *DB) putCredential(p PutCredential) []Step {
	c := p.Credential
	put := Step{
		Doing: fmt.Sprintf("write credential %s", c.ID), SQL: insertCredential,
		Args: []any{
			c.ID, c.Tenant, c.Instance, c.Repository, orNull(c.SealedUsername), orNull(c.SealedPassword), orNull(c.SealedSSHKey), c.KeyID,
		},
	}
	if c.Version == 0 {
		put.Args = append(put.Args, d.now())
	} else {
		put.SQL, put.Args, put.Affected = updateCredential, append(put.Args, c.Version), affected
	}
	return []Step{put, addCRLink(p.Link)}
}

func removeCredential(r CredentialRef) []Step {
	return []Step{
		{Doing: fmt.Sprintf("remove credential %s", r.ID), SQL: deleteCredential, Args: []any{r.ID, r.Tenant}},
		removeCRLink(KindCredential, string(r.ID), r.Tenant),
	}
}

// orNull keeps "nothing sealed" apart from "nothing, sealed".
func orNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}

const credentialColumns = `c.id, c.tenant, c.instance_id, c.repository_url, c.sealed_username, c.sealed_password, c.sealed_ssh_key, c.key_id, c.version`

// credentialRow takes the columns of credentialColumns, all NULL where an outer
// join found none.
type credentialRow struct {
	id, tenant, instance, repository, keyID text
	username, password, sshKey              []byte
	version                                 sql.Null[int64]
}

func (r *credentialRow) dest() []any {
	return []any{&r.id, &r.tenant, &r.instance, &r.repository, &r.username, &r.password, &r.sshKey, &r.keyID, &r.version}
}

func (r *credentialRow) credential() *RepositoryCredential {
	if !r.id.Valid {
		return nil
	}
	return &RepositoryCredential{
		ID: domain.CredentialID(r.id.V), Tenant: domain.TenantID(r.tenant.V), Instance: domain.InstanceID(r.instance.V), Repository: r.repository.V,
		SealedUsername: r.username, SealedPassword: r.password, SealedSSHKey: r.sshKey, KeyID: r.keyID.V, Version: r.version.V,
	}
}

const selectCredentialChains = `
SELECT l.cr_uid, l.tenant, l.cr_namespace, l.cr_name, ` + credentialColumns + `, ` + operationColumns + `
FROM api_cr_to_database_mapping l
LEFT JOIN repository_credentials c ON c.tenant = l.tenant AND c.id = l.db_relation_key
LEFT JOIN operation o ON o.id = (
	SELECT newest.id FROM operation newest
	WHERE newest.resource_type = 'RepositoryCredential' AND newest.resource_id = l.db_relation_key
	ORDER BY newest.id DESC LIMIT 1)
WHERE l.cr_type = 'GitOpsDeploymentRepositoryCredential' AND l.cr_namespace = $1 AND l.cr_name = $2
ORDER BY l.cr_uid`

// CredentialChains implements Credentials.
func (d *DB) CredentialChains(ctx context.Context, namespace, name string) ([]CredentialChain, error) {
	return list(ctx, d, "read what belongs to a credential", func(row Scanner) (CredentialChain, error) {
		chain := CredentialChain{Link: CRLink{Kind: KindCredential}}
		var (
			c  credentialRow
			op operationRow
		)
		dest := append([]any{&chain.Link.UID, &chain.Link.Tenant, &chain.Link.Namespace, &chain.Link.Name}, c.dest()...)
		if err := row.Scan(append(dest, op.dest()...)...); err != nil {
			return chain, err
		}
		chain.Credential, chain.Operation = c.credential(), op.orNil()
		return chain, nil
	}, selectCredentialChains, namespace, name)
}

const selectCredentialTask = `
SELECT ` + operationColumns + `, ` + credentialColumns + `
FROM operation o
LEFT JOIN repository_credentials c ON o.resource_type = 'RepositoryCredential' AND c.id = o.resource_id
WHERE o.id = $1`

func (d *DB) credentialTask(ctx context.Context, id domain.OperationID) (Task, error) {
	var (
		op operationRow
		c  credentialRow
	)
	err := d.one(ctx, "read an operation on a credential", selectCredentialTask, []any{id}, append(op.dest(), c.dest()...)...)
	return Task{Operation: op.operation(), Credential: c.credential()}, err
}
