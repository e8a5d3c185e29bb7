// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

var began = time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)

type stateOption func(*argov1alpha1.OperationState)

// ended is an Application whose automated sync has succeeded within a minute.
func ended(options ...stateOption) *argov1alpha1.Application {
	from, to := metav1.NewTime(began), metav1.NewTime(began.Add(time.Minute))
	s := &argov1alpha1.OperationState{
		Operation: argov1alpha1.Operation{InitiatedBy: argov1alpha1.OperationInitiator{Automated: true}},
		Phase:     argov1alpha1.OperationSucceeded, Message: "synced", StartedAt: &from, FinishedAt: &to,
		SyncResult: &argov1alpha1.SyncOperationResult{Revision: "4f0c", Resources: []argov1alpha1.ResourceResult{
			{Kind: "Deployment", Status: argov1alpha1.ResultSynced},
			{Kind: "Service", Status: argov1alpha1.ResultPruned},
			{Kind: "Secret", Status: argov1alpha1.ResultSyncFailed},
			{Kind: "Job", Status: argov1alpha1.ResultPruneSkipped},
		}},
	}
	for _, o := range options {
		o(s)
	}
	return application(func(a *argov1alpha1.Application) {
		a.Labels[argov1alpha1.ApplicationLabel] = string(appID)
		a.Status.OperationState = s
	})
}

func finishing(t time.Time) stateOption {
	return func(s *argov1alpha1.OperationState) { m := metav1.NewTime(t); s.FinishedAt = &m }
}

func askedBy(username string, info ...argov1alpha1.Info) stateOption {
	return func(s *argov1alpha1.OperationState) {
		s.Operation = argov1alpha1.Operation{InitiatedBy: argov1alpha1.OperationInitiator{Username: username}, Info: info}
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	with := func(change func(*domain.DeploymentRecord)) domain.DeploymentRecord {
		r := domain.DeploymentRecord{
			Application: appID, Tenant: "tenant-a", Trigger: "automated", Revision: "4f0c", Result: domain.SyncSucceeded,
			Message: "synced", Resources: 2, Started: began, Finished: began.Add(time.Minute),
		}
		change(&r)
		return r
	}
	triggered := func(by string) domain.DeploymentRecord {
		return with(func(r *domain.DeploymentRecord) { r.Trigger = by })
	}
	ours := argov1alpha1.Info{Name: domain.SyncInfo, Value: "uid-of-a-run"}
	for name, c := range map[string]struct {
		app  *argov1alpha1.Application
		want domain.DeploymentRecord
	}{
		"automated":               {ended(), triggered("automated")},
		"by a run":                {ended(askedBy("GitOpsDeploymentSyncRun", argov1alpha1.Info{Name: "reason", Value: "x"}, ours)), triggered("GitOpsDeploymentSyncRun uid-of-a-run")},
		"by a person":             {ended(askedBy("admin")), triggered("admin")},
		"by nobody that is known": {ended(askedBy("")), triggered("unknown")},
		"failed": {
			ended(func(s *argov1alpha1.OperationState) { s.Phase, s.Message = argov1alpha1.OperationFailed, "invalid" }),
			with(func(r *domain.DeploymentRecord) { r.Result, r.Message = domain.SyncFailed, "invalid" }),
		},
		"could not be carried out": {
			ended(func(s *argov1alpha1.OperationState) { s.Phase, s.SyncResult = argov1alpha1.OperationError, nil }),
			with(func(r *domain.DeploymentRecord) { r.Result, r.Revision, r.Resources = domain.SyncError, "", 0 }),
		},
		"the engine's clock went back": {
			ended(finishing(began.Add(-time.Hour))),
			with(func(r *domain.DeploymentRecord) { r.Finished = began }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, isOver := Record(c.app)
			if !isOver || got.ID == "" {
				t.Fatalf("got %+v, %v", got, isOver)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreFields(domain.DeploymentRecord{}, "ID")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestNothingIsRecordedBeforeTheEnd(t *testing.T) {
	t.Parallel()
	for name, app := range map[string]*argov1alpha1.Application{
		"never synced":      application(),
		"runs":              ended(func(s *argov1alpha1.OperationState) { s.Phase = argov1alpha1.OperationRunning }),
		"is terminated":     ended(func(s *argov1alpha1.OperationState) { s.Phase = argov1alpha1.OperationTerminating }),
		"without beginning": ended(func(s *argov1alpha1.OperationState) { s.StartedAt = nil }),
		"without end":       ended(func(s *argov1alpha1.OperationState) { s.FinishedAt = nil }),
	} {
		if got, isOver := Record(app); isOver || got != (domain.DeploymentRecord{}) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// The same end is one entry, however often and wherever it is seen; another end is
// another one.
func TestRecordIDs(t *testing.T) {
	t.Parallel()
	id := func(app *argov1alpha1.Application) string {
		r, _ := Record(app)
		return r.ID
	}
	first := id(ended())
	elsewhere := ended(func(s *argov1alpha1.OperationState) {
		zone := metav1.NewTime(s.StartedAt.In(time.FixedZone("", 7200)))
		s.StartedAt = &zone
	})
	for name, same := range map[string]*argov1alpha1.Application{
		"again":             ended(),
		"in another zone":   elsewhere,
		"with another end":  ended(finishing(began.Add(time.Hour))),
		"with another word": ended(func(s *argov1alpha1.OperationState) { s.Message = "" }),
	} {
		if got := id(same); got != first {
			t.Errorf("%s: %s; want %s", name, got, first)
		}
	}
	later := ended(func(s *argov1alpha1.OperationState) { m := metav1.NewTime(began.Add(time.Second)); s.StartedAt = &m })
	other := ended()
	other.UID = "another"
	for name, another := range map[string]*argov1alpha1.Application{
		"a later one": later, "another Application's": other,
		"another sync in that second": ended(askedBy("", argov1alpha1.Info{Name: domain.SyncInfo, Value: "uid"})),
	} {
		if id(another) == first {
			t.Errorf("%s has the same id", name)
		}
	}
}
