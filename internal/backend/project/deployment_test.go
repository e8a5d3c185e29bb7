// SPDX-License-Identifier: Apache-2.0

package project

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

type deploymentOption func(*v1alpha1.GitOpsDeployment)

func deployment(options ...deploymentOption) *v1alpha1.GitOpsDeployment {
	cr := &v1alpha1.GitOpsDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "shop", UID: "uid-a", Generation: 3}}
	for _, o := range options {
		o(cr)
	}
	return cr
}

func withStatus(s v1alpha1.GitOpsDeploymentStatus) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Status = s }
}

type chainOption func(*store.Chain)

func chain(options ...chainOption) *store.Chain {
	c := &store.Chain{Application: store.Application{ID: "uid-a", Spec: domain.ApplicationSpec{Path: "deploy"}}}
	for _, o := range options {
		o(c)
	}
	return c
}

func toEnvironment(name string) chainOption {
	return func(c *store.Chain) { c.Application.Spec.Environment = name }
}

func withOperation(s domain.OperationState, message string) chainOption {
	return func(c *store.Chain) { c.Operation = &store.Operation{ID: "op", State: s, Message: message} }
}

// reporting is an engine that has synced, with the conditions given.
func reporting(conditions ...domain.EngineCondition) chainOption {
	return func(c *store.Chain) {
		c.State = &domain.ApplicationState{
			Application: "uid-a", Health: "Healthy", HealthMessage: "all pods run", Sync: "Synced", Revision: "4f0c",
			Detail: domain.StateDetail{
				Resources:      json.RawMessage(`[{"group":"apps","version":"v1","kind":"Deployment","namespace":"team-a","name":"shop","status":"Synced","health":{"status":"Healthy"}}]`),
				OperationState: json.RawMessage(`{"phase":"Succeeded","message":"ok","operation":{"sync":{"revision":"4f0c"},"info":[{"name":"n","value":"v"}]},"retryCount":2}`),
				History:        json.RawMessage(`[{"id":7,"revision":"4f0c","source":{"repoURL":"https://git.example.com/a","path":"deploy"}}]`),
				Conditions:     conditions,
				Source:         domain.ReconciledSource{RepoURL: "https://git.example.com/a", Path: "deploy", Branch: "main"},
				Destination:    domain.ReconciledDestination{Namespace: "team-a"},
			},
		}
	}
}

// reported is the status that follows from reporting().
func reported(environment string, conditions ...v1alpha1.Condition) v1alpha1.GitOpsDeploymentStatus {
	return v1alpha1.GitOpsDeploymentStatus{
		ObservedGeneration: 3,
		Conditions:         conditions,
		Health:             v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy, Message: "all pods run"},
		Sync:               v1alpha1.SyncStatus{Status: v1alpha1.SyncSynced, Revision: "4f0c"},
		Resources: []v1alpha1.ResourceStatus{{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team-a", Name: "shop",
			Status: v1alpha1.SyncSynced, Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy},
		}},
		OperationState: &v1alpha1.OperationState{
			Phase: v1alpha1.OperationSucceeded, Message: "ok", RetryCount: 2,
			Operation: v1alpha1.RequestedOperation{Sync: &v1alpha1.SyncRequest{Revision: "4f0c"}},
		},
		History: []v1alpha1.HistoryEntry{{ID: 7, Revision: "4f0c", Source: v1alpha1.SyncSource{RepoURL: "https://git.example.com/a", Path: "deploy"}}},
		ReconciledState: v1alpha1.ReconciledState{
			Source:      v1alpha1.ReconciledSource{RepoURL: "https://git.example.com/a", Path: "deploy", Branch: "main"},
			Destination: v1alpha1.ReconciledDestination{Name: environment, Namespace: "team-a"},
		},
	}
}

// unreported is the status before an engine's first report.
func unreported(conditions ...v1alpha1.Condition) v1alpha1.GitOpsDeploymentStatus {
	return v1alpha1.GitOpsDeploymentStatus{
		ObservedGeneration: 3, Conditions: conditions,
		Health: v1alpha1.HealthStatus{Status: v1alpha1.HealthUnknown},
		Sync:   v1alpha1.SyncStatus{Status: v1alpha1.SyncUnknown},
	}
}

func TestComposeDeployment(t *testing.T) {
	t.Parallel()
	const failure, comparison = v1alpha1.ConditionErrorOccurred, v1alpha1.ConditionComparisonError
	refusal := &domain.Refusal{Field: "spec.source.path", Problem: "is empty", Remedy: "name a folder"}
	cannotCompare := domain.EngineCondition{Type: "ComparisonError", Message: "no such path"}
	empty := reported("")
	empty.Resources, empty.OperationState, empty.History = nil, nil, nil
	for name, c := range map[string]struct {
		cr      *v1alpha1.GitOpsDeployment
		chain   *store.Chain
		verdict error
		want    v1alpha1.GitOpsDeploymentStatus
	}{
		"before the first report":        {deployment(), chain(), nil, unreported()},
		"what the engine says":           {deployment(), chain(reporting()), nil, reported("")},
		"the tenant's environment names": {deployment(), chain(reporting(), toEnvironment("prod")), nil, reported("prod")},
		"what the engine says no longer goes": {
			deployment(withStatus(reported(""))),
			chain(reporting(), func(c *store.Chain) { d := &c.State.Detail; d.Resources, d.OperationState, d.History = nil, nil, nil }),
			nil, empty,
		},
		"another object's first look": {deployment(withStatus(reported("prod"))), chain(), nil, unreported()},

		"refused, nothing deployed": {
			deployment(), nil, refusal,
			v1alpha1.GitOpsDeploymentStatus{ObservedGeneration: 3, Conditions: []v1alpha1.Condition{holding(failure, refusal.Error(), tuesday)}},
		},
		"refused, still deployed as before": {deployment(withStatus(reported(""))), chain(reporting()), refusal, reported("", holding(failure, refusal.Error(), tuesday))},
		"corrected": {
			deployment(withStatus(reported("", holding(failure, refusal.Error(), monday)))), chain(reporting()), nil,
			reported("", resolved(failure, tuesday)),
		},
		"the database is away: what is known stays": {
			deployment(withStatus(reported("prod", holding(comparison, "no such path", monday)))), nil, &domain.Waiting{For: "the database"},
			reported("prod", holding(comparison, "no such path", monday), holding(failure, "waiting for the database", tuesday)),
		},
		"the database is away: an error that held": {
			deployment(withStatus(unreported(holding(failure, "x", monday), resolved(comparison, monday)))), nil, nil,
			unreported(resolved(comparison, monday), resolved(failure, tuesday)),
		},

		"an engine condition appears":  {deployment(), chain(reporting(cannotCompare)), nil, reported("", holding(comparison, "no such path", tuesday))},
		"an engine condition stays":    {deployment(withStatus(reported("", holding(comparison, "no such path", monday)))), chain(reporting(cannotCompare)), nil, reported("", holding(comparison, "no such path", monday))},
		"an engine condition resolves": {deployment(withStatus(reported("", holding(comparison, "no such path", monday)))), chain(reporting()), nil, reported("", resolved(comparison, tuesday))},

		"an operation failed":            {deployment(), chain(withOperation(domain.OperationFailed, "not allowed")), nil, unreported(holding(failure, "not allowed", tuesday))},
		"an operation has trouble":       {deployment(), chain(withOperation(domain.OperationInProgress, "no answer; this will be tried again")), nil, unreported(holding(failure, "no answer; this will be tried again", tuesday))},
		"an operation is under way":      {deployment(), chain(withOperation(domain.OperationInProgress, "")), nil, unreported()},
		"an operation waits":             {deployment(), chain(withOperation(domain.OperationWaiting, "")), nil, unreported()},
		"an operation completed":         {deployment(withStatus(unreported(holding(failure, "not allowed", monday)))), chain(withOperation(domain.OperationCompleted, "not allowed")), nil, unreported(resolved(failure, tuesday))},
		"the verdict is the newer error": {deployment(), chain(withOperation(domain.OperationFailed, "not allowed")), refusal, unreported(holding(failure, refusal.Error(), tuesday))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := c.cr.DeepCopy()
			got, err := composeDeployment(c.cr, c.chain, c.verdict, tuesday)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.cr); diff != "" {
				t.Errorf("composing changed the CR:\n%s", diff)
			}
		})
	}
}

func TestComposeNamesADamagedRow(t *testing.T) {
	t.Parallel()
	damaged := chain(reporting(), func(c *store.Chain) { c.State.Detail.Resources = json.RawMessage(`{"not":"a list"}`) })
	_, err := composeDeployment(deployment(), damaged, nil, tuesday)
	if err == nil || !strings.Contains(err.Error(), "application_state.detail of uid-a") {
		t.Errorf("got %v; want an error that names column and row", err)
	}
}

// Whatever is read, however late: the generation that has been observed does not
// go back, and composing again, later, changes nothing.
func TestComposeThroughAnyHistory(t *testing.T) {
	t.Parallel()
	chains := []*store.Chain{
		nil, chain(), chain(reporting()), chain(reporting(domain.EngineCondition{Type: "SyncError", Message: "s"})),
		chain(withOperation(domain.OperationFailed, "f")), chain(withOperation(domain.OperationWaiting, "")),
	}
	verdicts := []error{nil, &domain.Waiting{For: "w"}, &domain.Refusal{Field: "f", Problem: "p"}, errors.New("x")}
	rapid.Check(t, func(t *rapid.T) {
		cr := deployment()
		for round := range rapid.IntRange(1, 8).Draw(t, "rounds") {
			cr.Generation = rapid.Int64Range(1, 9).Draw(t, "generation as read")
			c := rapid.SampledFrom(chains).Draw(t, "chain")
			verdict := rapid.SampledFrom(verdicts).Draw(t, "verdict")
			clock := monday.Add(time.Duration(round) * time.Hour)
			status, err := composeDeployment(cr, c, verdict, clock)
			if err != nil {
				t.Fatal(err)
			}
			if status.ObservedGeneration < cr.Status.ObservedGeneration || status.ObservedGeneration < cr.Generation {
				t.Fatalf("observed %d, after %d, of generation %d", status.ObservedGeneration, cr.Status.ObservedGeneration, cr.Generation)
			}
			cr.Status = status
			again, err := composeDeployment(cr, c, verdict, clock.Add(time.Minute))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(status, again); diff != "" {
				t.Fatalf("composing again changes it:\n%s", diff)
			}
		}
	})
}
