// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// Application is a row of the application table.
type Application struct {
	ID          domain.ApplicationID
	Tenant      domain.TenantID
	Name        string
	Spec        domain.ApplicationSpec
	Instance    domain.InstanceID
	Environment domain.EnvironmentID
	// Generation is the generation of the CR that the spec was taken from.
	Generation int64
	// Version grows with each write of the row; an update names the version it
	// was decided on.
	Version int64
}

// Link is a row of deployment_to_application_mapping: which CR an application
// stands for. The CR's UID is the application's id.
type Link struct {
	Application domain.ApplicationID
	Tenant      domain.TenantID
	Namespace   string
	Name        string
}

// Operation is a row of the operation table.
type Operation struct {
	ID           domain.OperationID
	Tenant       domain.TenantID
	Instance     domain.InstanceID
	ResourceType domain.ResourceType
	ResourceID   string
	State        domain.OperationState
	// Message is the human readable state: empty, or why it has not succeeded.
	Message string
	// Version grows each time a waiting operation is reused for another change
	// of its resource. Finishing names the version that was carried out.
	Version   int64
	CreatedOn time.Time
}

// Chain is everything the database knows about one GitOpsDeployment.
type Chain struct {
	Link        Link
	Application Application
	// State is nil until an engine reported one.
	State *domain.ApplicationState
	// Operation is the newest operation on the application, nil where there is none
	// or it has been collected.
	Operation *Operation
}

// Placement is where a tenant's applications go: which engine instance deploys
// to the tenant's local environment.
type Placement struct {
	Instance domain.InstanceID
	// Namespace is the engine instance's namespace, where Operations and
	// Applications are.
	Namespace string
	// Settled says that the tenant's rows exist already. Otherwise the instance
	// is a proposal (the least loaded ready one), and the first Change has to
	// bring the tenant's rows.
	Settled bool
}

// Tenant is what has to exist before a tenant's first application: its user
// row, its local environment with the mapping from the namespace, and access
// to the engine instance.
type Tenant struct {
	ID        domain.TenantID
	Namespace string
	Instance  domain.InstanceID
}

// Change is one decision, written in one transaction.
type Change struct {
	// Tenant is created where missing; nil where it is known to exist.
	Tenant *Tenant
	// Remove deletes applications with all that hangs on them.
	Remove []ApplicationRef
	// Insert and Update write one application. Insert brings its link row;
	// Update writes Spec, Instance, Environment and Generation of the row whose
	// version is still the given one.
	Insert *NewApplication
	Update *Application
	// LeavesEnvironment is set to the tenant where an application may have been
	// the last one of an environment whose CR is gone.
	LeavesEnvironment domain.TenantID

	// The same for the other tenant kinds. Put adds a row, or replaces the one whose
	// version is still the given one.
	InsertSync         *NewSync
	RemoveSyncs        []SyncRef
	PutEnvironment     *PutEnvironment
	RemoveEnvironments []EnvironmentRef
	PutCredential      *PutCredential
	RemoveCredentials  []CredentialRef

	// Announce adds an operation for each, or reuses the one that waits.
	Announce []NewOperation
}

// ApplicationRef names an application together with its owner.
type ApplicationRef struct {
	ID     domain.ApplicationID
	Tenant domain.TenantID
}

// NewApplication is an application and the link to its CR.
type NewApplication struct {
	Application Application
	Link        Link
}

// NewOperation is an operation to be added to the outbox.
type NewOperation struct {
	ID           domain.OperationID
	Tenant       domain.TenantID
	Instance     domain.InstanceID
	ResourceType domain.ResourceType
	ResourceID   string
}

// Task is an operation together with the resource it is about, as both are now.
type Task struct {
	Operation Operation
	// Of these one is set, that of the operation's resource type, and none where
	// the row is gone.
	Application *Application
	Environment *Environment
	Credential  *RepositoryCredential
	Sync        *SyncOperation
	// EarlierSync says that another sync of the same application is to go first.
	EarlierSync bool
}

// Instance is a row of gitops_engine_instance.
type Instance struct {
	ID        domain.InstanceID
	Cluster   domain.ClusterID
	Namespace string
	Kind      EngineKind
}

// EngineKind says what works on an instance's Applications.
type EngineKind string

// With EngineNone nobody does: Applications are written, and nothing deploys
// them, so they must not carry the finalizer that only an engine removes.
const (
	EngineArgoCD  EngineKind = "argocd"
	EngineBuiltIn EngineKind = "builtin"
	EngineNone    EngineKind = "none"
)

// Observed is how far reports of one application have been stored.
type Observed struct {
	Application domain.ApplicationID
	EngineUID   string
	Sequence    int64
}
