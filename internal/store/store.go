// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
)

// Deployments is what taking in a GitOpsDeployment needs.
type Deployments interface {
	// Chains reads, in one statement, every chain whose link row carries this
	// name: the CR's own, and those of earlier UIDs under the same name.
	Chains(ctx context.Context, namespace, name string) ([]Chain, error)
	// Placement says where the tenant's applications go. domain.ErrNotFound
	// where there is no ready engine instance.
	Placement(ctx context.Context, tenant domain.TenantID) (Placement, error)
	// LatestOperation gives the newest operation on a resource; domain.ErrNotFound
	// where there is none.
	LatestOperation(ctx context.Context, t domain.ResourceType, id string) (Operation, error)
	// Apply writes a decision in one transaction and returns the operations it
	// announced, in the order given: new ones, or those that waited already.
	Apply(ctx context.Context, c Change) ([]Operation, error)
}

// Operations is what the agent and the outbox need.
type Operations interface {
	// Task reads an operation and its resource, of the given type, in one
	// statement, so that the operation's version and the resource belong together.
	// domain.ErrNotFound where the operation's row is gone.
	Task(ctx context.Context, t domain.ResourceType, id domain.OperationID) (Task, error)
	// Operation reads an operation alone; domain.ErrNotFound where it is gone.
	Operation(ctx context.Context, id domain.OperationID) (Operation, error)
	// Finish ends an operation, or marks it in progress, if its version is still
	// the given one; domain.ErrConflict where it has been reused since, so that the
	// resource has to be looked at again. Doing it twice is the same as once; what
	// has completed stays completed, and what has failed can only still complete
	// (otherwise domain.ErrConflict, too).
	Finish(ctx context.Context, id domain.OperationID, version int64, s domain.OperationState, message string) error
	// Unfinished lists the operations of an instance that are not final, oldest
	// first, a page at a time: those after the given id. An empty instance means all.
	Unfinished(ctx context.Context, instance domain.InstanceID, after domain.OperationID, limit int) ([]Operation, error)
	// Collect removes final operations that ended before the given time, at most
	// limit of them, but keeps a failed one that is the newest of its resource, because its
	// message is still shown to the tenant. It returns how many went.
	Collect(ctx context.Context, endedBefore time.Time, limit int) (int, error)
}

// States is how status comes up.
type States interface {
	// SaveState stores a report unless a later one of the same engine object is
	// there already, or the application is gone; it says whether it was stored.
	SaveState(ctx context.Context, s domain.ApplicationState) (bool, error)
	// ObservedStates lists how far the reports of an instance's applications have
	// come. An empty instance means all.
	ObservedStates(ctx context.Context, instance domain.InstanceID, after domain.ApplicationID, limit int) ([]Observed, error)
}

// SyncRuns is what taking in a GitOpsDeploymentSyncRun needs, and how it is told
// of what became of it.
type SyncRuns interface {
	// SyncChains reads, in one statement, every chain whose link row carries this
	// name.
	SyncChains(ctx context.Context, namespace, name string) ([]SyncChain, error)
	// SaveSyncResult stores how a sync has gone, unless it is over already or gone.
	SaveSyncResult(ctx context.Context, id domain.SyncOperationID, r domain.SyncResult) error
}

// Environments is what taking in a GitOpsDeploymentManagedEnvironment needs.
type Environments interface {
	EnvironmentChains(ctx context.Context, namespace, name string) ([]EnvironmentChain, error)
	// Environment reads one of a tenant's; domain.ErrNotFound where it has none of
	// that id, which is also the answer for another tenant's.
	Environment(ctx context.Context, tenant domain.TenantID, id domain.EnvironmentID) (Environment, error)
}

// Credentials is what taking in a GitOpsDeploymentRepositoryCredential needs.
type Credentials interface {
	CredentialChains(ctx context.Context, namespace, name string) ([]CredentialChain, error)
}

// Projects says what tenants' projects are made from.
type Projects interface {
	// ProjectUses lists what the tenant's applications use, each once.
	ProjectUses(ctx context.Context, tenant domain.TenantID) ([]ProjectUse, error)
}

// History keeps what has been deployed, when, by whom, and how it went.
type History interface {
	// RecordDeployment adds an entry, unless it is there or the deployment is gone.
	RecordDeployment(ctx context.Context, r domain.DeploymentRecord) error
	// History gives the newest entries of a deployment, newest first.
	History(ctx context.Context, tenant domain.TenantID, id domain.ApplicationID, limit int) ([]HistoryEntry, error)
}

// Engines registers what the agent finds itself running beside.
type Engines interface {
	// RegisterEngine makes the cluster, the instance and their mappings exist, in
	// one transaction, and marks the instance ready. Calling it again changes nothing
	// but the namespace's name and the engine's kind.
	RegisterEngine(ctx context.Context, i Instance) error
	// Instances lists the registered instances.
	Instances(ctx context.Context) ([]Instance, error)
}

// Inventory is what self-healing walks through, a page at a time, in the order
// of the id.
type Inventory interface {
	Links(ctx context.Context, after domain.ApplicationID, limit int) ([]Link, error)
	// CRLinks lists those of the other tenant kinds, by kind and UID.
	CRLinks(ctx context.Context, after CRLink, limit int) ([]CRLink, error)
	// Applications lists those of an instance; an empty instance means all.
	Applications(ctx context.Context, instance domain.InstanceID, after domain.ApplicationID, limit int) ([]Application, error)
}

// DataKeys keeps the wrapped data keys of package seal: one for each tenant.
type DataKeys interface {
	// TenantDataKey gives the tenant's data key, to seal with, and notes that it is
	// in use. domain.ErrNotFound where the tenant has none.
	TenantDataKey(ctx context.Context, tenant domain.TenantID) (DataKey, error)
	// DataKey gives the data key of an id, to open with; domain.ErrNotFound where it
	// is gone or another tenant's, which is deliberately the same answer.
	DataKey(ctx context.Context, tenant domain.TenantID, id string) (DataKey, error)
	// AddDataKey stores a data key where its tenant has none, and gives the one that
	// the tenant has then: of several at once, all get the same.
	// domain.ErrMissingParent where the ring key has been retired.
	AddDataKey(ctx context.Context, k DataKey) (DataKey, error)
	// DataKeysToRewrap lists the data keys that another ring key than the given one
	// wraps, a page at a time, in the order of the id: those after the given one.
	DataKeysToRewrap(ctx context.Context, ringKey, after string, limit int) ([]DataKey, error)
	// RewrapDataKey replaces what wraps a data key. domain.ErrConflict where it is no
	// longer wrapped as it was, or gone; domain.ErrMissingParent where the new ring
	// key has been retired.
	RewrapDataKey(ctx context.Context, was DataKey, ringKey string, wrapped []byte) error
	// CountDataKeys says how many data keys each ring key wraps.
	CountDataKeys(ctx context.Context) (map[string]int, error)
	// RetireRingKey makes sure that no data key is or ever will be wrapped by a ring
	// key. domain.ErrConflict where one is.
	RetireRingKey(ctx context.Context, id string) error
	// SweepDataKeys removes the keys of tenants that have no row and have not been
	// asked for since the given time, at most limit of them, and returns how many went.
	SweepDataKeys(ctx context.Context, unusedSince time.Time, limit int) (int, error)
}

// Topic says what kind of row a change is about.
type Topic string

// The topics that change_log knows.
const (
	TopicOperation        Topic = "operation"
	TopicApplicationState Topic = "application_state"
	TopicSyncOperation    Topic = "sync_operation"
)

// Event is one entry of change_log.
type Event struct {
	// Sequence orders the events of one key: a later one has a larger number.
	Sequence int64
	Topic    Topic
	Tenant   domain.TenantID
	// Key is the id of the row that changed.
	Key string
	// ResourceType and Resource are, for an operation, what it is about; State is its
	// state after the change. For an application state both are empty, and Key is the application.
	ResourceType domain.ResourceType
	Resource     string
	State        string
	Instance     domain.InstanceID
}

// Cursor is a place in change_log. Its number means something only to the
// database that gave it.
type Cursor int64

// Changes is how package notify catches up.
type Changes interface {
	// ChangesSince returns, in the order of Sequence, every event that was not
	// certainly covered by the given cursor, and the next cursor. An event may be
	// returned again by a later call, but none is ever skipped, whatever the order in
	// which transactions commit. ErrCursorTooOld where the log cannot promise that
	// any more.
	ChangesSince(ctx context.Context, after Cursor) ([]Event, Cursor, error)
	// Now gives a cursor that covers everything committed so far.
	Now(ctx context.Context) (Cursor, error)
	// TrimChanges forgets events older than the given time.
	TrimChanges(ctx context.Context, before time.Time) (int, error)
}

// Store is the whole of it, for wiring. Consumers ask for the part they use.
type Store interface {
	Deployments
	Operations
	States
	SyncRuns
	Environments
	Credentials
	Projects
	History
	Engines
	Inventory
	DataKeys
	Changes

	// Ping says whether the database answers.
	Ping(ctx context.Context) error
	Close() error
}
