// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argoprojv1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/api/v1alpha1"
)

// The engine's operation state decodes into the tenant's: the same names for
// what tenants need, and nothing of what they do not.
func TestOperationStateIsTheEnginesReduced(t *testing.T) {
	at := metav1.NewTime(time.Unix(1_700_000_000, 0).UTC())
	factor := int64(2)
	engine := argoprojv1alpha1.OperationState{
		Operation: argoprojv1alpha1.Operation{
			Sync: &argoprojv1alpha1.SyncOperation{
				Revision: "abc", Prune: true, DryRun: true,
				SyncOptions: []string{"PruneLast=true"}, Source: &argoprojv1alpha1.ApplicationSource{RepoURL: "https://internal.example.com"},
			},
			InitiatedBy: argoprojv1alpha1.OperationInitiator{Username: "weir", Automated: true},
			Info:        []argoprojv1alpha1.Info{{Name: "row", Value: "7"}},
			Retry: argoprojv1alpha1.RetryStrategy{
				Limit:   3,
				Backoff: &argoprojv1alpha1.Backoff{Duration: "5s", Factor: &factor, MaxDuration: "3m"},
			},
		},
		Phase: argoprojv1alpha1.OperationFailed, Message: "one failed", RetryCount: 1, StartedAt: &at, FinishedAt: &at,
		SyncResult: &argoprojv1alpha1.SyncOperationResult{
			Revision: "abc",
			Source: &argoprojv1alpha1.ApplicationSource{
				RepoURL: "https://git.example.com/app", Path: "deploy", TargetRevision: "main",
				Directory: &argoprojv1alpha1.SourceDirectory{Recurse: true},
			},
			Resources: []argoprojv1alpha1.ResourceResult{{
				Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				Status: argoprojv1alpha1.ResultSyncFailed, Message: "quota", HookType: "Sync",
				HookPhase: argoprojv1alpha1.OperationFailed, SyncPhase: "Sync",
			}},
		},
	}
	want := v1alpha1.OperationState{
		Operation: v1alpha1.RequestedOperation{
			Sync:        &v1alpha1.SyncRequest{Revision: "abc", Prune: true, SyncOptions: []string{"PruneLast=true"}},
			InitiatedBy: v1alpha1.OperationInitiator{Username: "weir", Automated: true},
			Retry: v1alpha1.RetryStrategy{
				Limit:   3,
				Backoff: &v1alpha1.Backoff{Duration: "5s", Factor: &factor, MaxDuration: "3m"},
			},
		},
		Phase: v1alpha1.OperationFailed, Message: "one failed", RetryCount: 1, StartedAt: &at, FinishedAt: &at,
		SyncResult: &v1alpha1.SyncOperationResult{
			Revision: "abc",
			Source:   v1alpha1.SyncSource{RepoURL: "https://git.example.com/app", Path: "deploy", TargetRevision: "main"},
			Resources: []v1alpha1.ResourceResult{{
				Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web",
				Status: "SyncFailed", Message: "quota", HookPhase: v1alpha1.OperationFailed, SyncPhase: "Sync",
			}},
		},
	}
	text, err := json.Marshal(engine)
	if err != nil {
		t.Fatal(err)
	}
	var got v1alpha1.OperationState
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A status that says nothing is not written at all, so that a create by a
// client in Go does not carry one.
func TestEmptyStatusIsNotWritten(t *testing.T) {
	for _, resource := range []any{
		v1alpha1.GitOpsDeployment{},
		v1alpha1.GitOpsDeploymentSyncRun{},
		v1alpha1.GitOpsDeploymentManagedEnvironment{},
		v1alpha1.GitOpsDeploymentRepositoryCredential{},
		argoprojv1alpha1.Application{},
	} {
		text, err := json.Marshal(resource)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if status, found := fields["status"]; found {
			t.Errorf("%T: status %v", resource, status)
		}
	}
}

func TestPhaseCompleted(t *testing.T) {
	for phase, want := range map[v1alpha1.OperationPhase]bool{
		"": false, v1alpha1.OperationRunning: false, v1alpha1.OperationTerminating: false,
		v1alpha1.OperationSucceeded: true, v1alpha1.OperationFailed: true, v1alpha1.OperationError: true,
	} {
		if got := phase.Completed(); got != want {
			t.Errorf("%q: %t, want %t", phase, got, want)
		}
		if got := argoprojv1alpha1.OperationPhase(phase).Completed(); got != want {
			t.Errorf("engine's %q: %t, want %t", phase, got, want)
		}
	}
}

func TestAutomatedDeploymentsAllowed(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		given *bool
		want  bool
	}{{nil, true}, {&yes, true}, {&no, false}} {
		spec := v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{AllowAutomatedDeployments: c.given}
		if got := spec.AutomatedDeploymentsAllowed(); got != c.want {
			t.Errorf("%v: %t, want %t", c.given, got, c.want)
		}
	}
}

func TestResolvedReason(t *testing.T) {
	if got := v1alpha1.ReasonSyncError.Resolved(); got != "SyncErrorResolved" {
		t.Errorf("got %q", got)
	}
}
