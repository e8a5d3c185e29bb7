// SPDX-License-Identifier: Apache-2.0

package domain

import "time"

// SyncPhase is how far a sync has come.
type SyncPhase string

// A sync that waits for its turn has no phase. An engine says Failed of a sync
// that it carried out and that did not go well, Error of one that it could not
// carry out.
const (
	SyncWaiting   SyncPhase = ""
	SyncRunning   SyncPhase = "Running"
	SyncSucceeded SyncPhase = "Succeeded"
	SyncFailed    SyncPhase = "Failed"
	SyncError     SyncPhase = "Error"
)

// Final reports whether a sync in this phase is over.
func (p SyncPhase) Final() bool { return p == SyncSucceeded || p == SyncFailed || p == SyncError }

// SyncResult is how a sync has gone so far.
type SyncResult struct {
	Phase   SyncPhase
	Message string
	// Revision is the commit that is synced, Health and Sync are the
	// application's when this was last written.
	Revision string
	Health   string
	Sync     string
	// StartedAt and FinishedAt are zero before they happened.
	StartedAt  time.Time
	FinishedAt time.Time
}

// SyncInfo is the name under which a sync carries its id through an engine.
const SyncInfo = "managedgitops.io/sync-operation"

// DeploymentRecord is one deployment that an engine has ended, for the history.
type DeploymentRecord struct {
	// ID is the same however often the end is seen.
	ID          string
	Application ApplicationID
	Tenant      TenantID
	// Trigger is what made the engine deploy: "automated", or who asked.
	Trigger   string
	Revision  string
	Result    SyncPhase
	Message   string
	Resources int
	Started   time.Time
	Finished  time.Time
}
