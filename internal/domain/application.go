// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// ApplicationSpec is what a tenant wants deployed, in the form that the
// database keeps and the agent turns into an engine's Application.
type ApplicationSpec struct {
	RepoURL        string `json:"repoURL"`
	Path           string `json:"path"`
	TargetRevision string `json:"targetRevision,omitempty"`

	// Namespace is the destination namespace on the environment's cluster.
	Namespace string `json:"namespace"`
	// Environment is the tenant's own name for the destination; empty is the
	// tenant's namespace itself. It is for showing, EnvironmentID decides.
	Environment string `json:"environment,omitempty"`

	Automated   bool     `json:"automated"`
	SyncOptions []string `json:"syncOptions,omitempty"`
}

// Equal reports whether both describe the same application. The order of sync
// options carries no meaning.
func (s ApplicationSpec) Equal(o ApplicationSpec) bool { return s.Encode() == o.Encode() }

// Encode renders the canonical text that the application row keeps.
func (s ApplicationSpec) Encode() string {
	s.SyncOptions = sorted(s.SyncOptions)
	text, err := json.Marshal(s)
	if err != nil {
		// Strings, booleans and a list of strings always encode.
		panic(fmt.Sprintf("encode application spec: %v", err))
	}
	return string(text)
}

// DecodeApplicationSpec reads what Encode wrote. A row edited by hand into
// something else is an error that names the column, not a crash.
func DecodeApplicationSpec(text string) (ApplicationSpec, error) {
	var s ApplicationSpec
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("application.spec is not the JSON that Weir writes: %w", err)
	}
	if s.RepoURL == "" || s.Path == "" {
		return s, errors.New("application.spec is not the JSON that Weir writes: it names no repository or no path")
	}
	return s, nil
}

func sorted(in []string) []string {
	if len(in) == 0 {
		return nil
	}
	out := slices.Clone(in)
	slices.Sort(out)
	return slices.Compact(out)
}
