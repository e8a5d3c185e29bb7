// SPDX-License-Identifier: Apache-2.0

package domain

import "encoding/json"

// ApplicationState is what an engine reported about one application, reduced to
// what its tenant may see.
type ApplicationState struct {
	Application ApplicationID
	Tenant      TenantID

	// EngineUID and Sequence order reports: EngineUID is the UID of the
	// engine's Application, Sequence grows with each version of that object.
	// A report of the same object with a smaller Sequence is late and dropped.
	EngineUID string
	Sequence  int64

	Health        string
	HealthMessage string
	Sync          string
	Revision      string
	Detail        StateDetail
}

// StateDetail is the part of a report that nobody filters on: it is kept and
// carried as one JSON document.
type StateDetail struct {
	// Resources, OperationState and History are JSON in the shape of the tenant
	// API's status fields of the same names.
	Resources      json.RawMessage `json:"resources,omitempty"`
	OperationState json.RawMessage `json:"operationState,omitempty"`
	History        json.RawMessage `json:"history,omitempty"`

	Conditions []EngineCondition `json:"conditions,omitempty"`
	// Source and Destination are what the engine last compared against, which
	// may lag behind what the tenant asked for.
	Source      ReconciledSource      `json:"source,omitzero"`
	Destination ReconciledDestination `json:"destination,omitzero"`
}

// EngineCondition is a condition that the engine set on its Application.
type EngineCondition struct {
	Type    string `json:"type"`
	Message string `json:"message,omitempty"`
}

// ReconciledSource is the source that a status speaks of.
type ReconciledSource struct {
	RepoURL string `json:"repoURL,omitempty"`
	Path    string `json:"path,omitempty"`
	Branch  string `json:"branch,omitempty"`
}

// ReconciledDestination is the destination that a status speaks of. It has no
// name of a cluster: the engine knows it by an id that is none of the tenant's
// business, and the tenant's own name for it is put in when it is shown.
type ReconciledDestination struct {
	Namespace string `json:"namespace,omitempty"`
}
