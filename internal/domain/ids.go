// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"

	"github.com/google/uuid"
)

// TenantID identifies a tenant: the UID of its API namespace. A namespace that
// is deleted and created again under the same name is another tenant.
type TenantID string

// InternalTenant owns the rows that belong to the service itself, such as the
// credentials of engine clusters. It is never removed by self-healing.
const InternalTenant TenantID = "weir-internal"

// ApplicationID identifies an Application row. It is the UID of the
// GitOpsDeployment the row stands for: UIDs are never used twice, so a row can
// be found, or made again after a database was lost, from the CR alone.
type ApplicationID string

// EnvironmentID identifies a ManagedEnvironment row: the UID of the CR, or, for
// the tenant's own namespace as a destination, the UID of that namespace.
type EnvironmentID string

// InstanceID identifies a GitopsEngineInstance row: the UID of its namespace.
type InstanceID string

// ClusterID identifies a GitopsEngineCluster row: the UID of the cluster's
// kube-system namespace.
type ClusterID string

// OperationID identifies an Operation row. It is a UUID of version 7, so ids
// made later sort later.
type OperationID string

// NewOperationID makes an id that sorts after those made before it.
func NewOperationID() OperationID {
	return OperationID(uuid.Must(uuid.NewV7()).String())
}

// LocalEnvironment is the environment that stands for the tenant's own
// namespace: where a deployment goes whose destination names no environment.
func LocalEnvironment(t TenantID) EnvironmentID { return EnvironmentID(t) }

const (
	engineApplicationPrefix = "gitopsdepl-"
	operationPrefix         = "operation-"
)

// EngineApplicationName is the name of the engine's Application for a row. It
// derives from a UID, never from tenant text.
func EngineApplicationName(id ApplicationID) string {
	return engineApplicationPrefix + string(id)
}

// ApplicationOfEngineName gives back the id from an engine Application's name;
// false for a name that Weir did not give.
func ApplicationOfEngineName(name string) (ApplicationID, bool) {
	id, ours := strings.CutPrefix(name, engineApplicationPrefix)
	// Only in the spelling that Kubernetes gives UIDs: another one would be
	// another name for the same row.
	parsed, err := uuid.Parse(id)
	if !ours || err != nil || parsed.String() != id {
		return "", false
	}
	return ApplicationID(id), true
}

// OperationObjectName is the name of the Operation CR that announces a row.
func OperationObjectName(id OperationID) string { return operationPrefix + string(id) }

// SyncOperationID identifies a SyncOperation row: the UID of the
// GitOpsDeploymentSyncRun.
type SyncOperationID string

// CredentialID identifies a RepositoryCredentials row: the UID of the
// GitOpsDeploymentRepositoryCredential.
type CredentialID string

// EngineProjectName is the name of the AppProject of a tenant.
func EngineProjectName(t TenantID) string { return "tenant-" + string(t) }

// ClusterSecretName is the name of the engine's Secret for an environment, and
// the name by which Applications point to it.
func ClusterSecretName(e EnvironmentID) string { return "managed-env-" + string(e) }

// RepositorySecretName is the name of the engine's Secret for a credential.
func RepositorySecretName(c CredentialID) string { return "repo-cred-" + string(c) }

// DeployerServiceAccount is the service account in a tenant's namespace as which
// engines deploy into it.
const DeployerServiceAccount = "weir-deployer"
