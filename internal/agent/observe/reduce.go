// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"strconv"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// historyShown is how many past deployments the CR's status carries; the whole
// of it is in the database.
const historyShown = 5

// Reduce gives what a tenant may see of an Application's status; false where
// the engine has not said anything yet. It is pure.
func Reduce(app *argov1alpha1.Application) (domain.ApplicationState, bool, error) {
	var state domain.ApplicationState
	id, ours := domain.ApplicationOfEngineName(app.Name)
	s := app.Status
	if !ours || (s.Sync.Status == "" && s.Health.Status == "" && len(s.Conditions) == 0 && s.OperationState == nil) {
		return state, false, nil
	}
	sequence, err := strconv.ParseInt(app.ResourceVersion, 10, 64)
	if err != nil {
		return state, false, fmt.Errorf("resourceVersion %q of Application %s is no number, so reports cannot be put in order", app.ResourceVersion, app.Name)
	}
	state = domain.ApplicationState{
		Application:   id,
		Tenant:        domain.TenantID(app.Labels[argov1alpha1.TenantLabel]),
		EngineUID:     string(app.UID),
		Sequence:      sequence,
		Health:        orUnknown(string(s.Health.Status)),
		HealthMessage: s.Health.Message,
		Sync:          orUnknown(string(s.Sync.Status)),
		Revision:      s.Sync.Revision,
	}
	source, namespace := compared(app)
	state.Detail.Source = domain.ReconciledSource{RepoURL: source.RepoURL, Path: source.Path, Branch: source.TargetRevision}
	state.Detail.Destination.Namespace = namespace
	for _, c := range s.Conditions {
		state.Detail.Conditions = append(state.Detail.Conditions, domain.EngineCondition{Type: c.Type, Message: c.Message})
	}
	if state.Detail.Resources, err = resources(s.Resources); err != nil {
		return state, false, err
	}
	if s.OperationState != nil {
		if state.Detail.OperationState, err = json.Marshal(s.OperationState); err != nil {
			return state, false, err
		}
	}
	if n := len(s.History); n > 0 {
		state.Detail.History, err = json.Marshal(s.History[max(0, n-historyShown):])
	}
	return state, true, err
}

// compared is what the engine's status speaks of, which right after an edit is
// not yet what the spec says.
func compared(app *argov1alpha1.Application) (argov1alpha1.ApplicationSource, string) {
	if to := app.Status.Sync.ComparedTo; to.Source != nil {
		return *to.Source, to.Destination.Namespace
	}
	if app.Spec.Source == nil {
		return argov1alpha1.ApplicationSource{}, app.Spec.Destination.Namespace
	}
	return *app.Spec.Source, app.Spec.Destination.Namespace
}

// resource has the fields of the tenant API's status.resources, and only those.
type resource struct {
	Group     string  `json:"group,omitempty"`
	Version   string  `json:"version,omitempty"`
	Kind      string  `json:"kind,omitempty"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name,omitempty"`
	Status    string  `json:"status,omitempty"`
	Health    *health `json:"health,omitempty"`
}

type health struct {
	Status  string `json:"status,omitempty"`
	Message string `json:"message,omitempty"`
}

func resources(in []argov1alpha1.ResourceStatus) (json.RawMessage, error) {
	if len(in) == 0 {
		return nil, nil
	}
	out := make([]resource, len(in))
	for i, r := range in {
		out[i] = resource{Group: r.Group, Version: r.Version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name, Status: string(r.Status)}
		if r.Health != nil {
			out[i].Health = &health{Status: string(r.Health.Status), Message: r.Health.Message}
		}
	}
	return json.Marshal(out)
}

func orUnknown(s string) string {
	if s == "" {
		return "Unknown"
	}
	return s
}
