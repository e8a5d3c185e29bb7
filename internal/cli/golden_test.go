// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	must(t, err)
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got, -update writes it anew):\n%s", file, diff)
	}
}

func rewriteServer(file, address string) error {
	config, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return err
	}
	for _, c := range config.Clusters {
		c.Server = address
	}
	return clientcmd.WriteToFile(*config, file)
}

// clock is fixed, so that ages are.
func clock() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) }

func before(d time.Duration) *metav1.Time { return &metav1.Time{Time: clock().Add(-d)} }

func named(name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "team", Name: name, CreationTimestamp: *before(age), Generation: 2}
}

func shopProd() *v1alpha1.GitOpsDeployment {
	d := &v1alpha1.GitOpsDeployment{ObjectMeta: named("shop-prod", 50*time.Hour)}
	d.Spec = v1alpha1.GitOpsDeploymentSpec{
		Source:      v1alpha1.ApplicationSource{RepoURL: "git@git.example.com:team/shop.git", Path: "overlays/prod", TargetRevision: "v1.4.0"},
		Destination: v1alpha1.ApplicationDestination{Environment: "prod", Namespace: "shop"},
		Type:        v1alpha1.DeploymentTypeAutomated,
		SyncPolicy:  &v1alpha1.SyncPolicy{SyncOptions: []v1alpha1.SyncOption{v1alpha1.SyncOptionCreateNamespace, v1alpha1.SyncOptionPruneLast}},
	}
	healthy := &v1alpha1.HealthStatus{Status: v1alpha1.HealthHealthy}
	d.Status = v1alpha1.GitOpsDeploymentStatus{
		ObservedGeneration: 1,
		Sync:               v1alpha1.SyncStatus{Status: v1alpha1.SyncOutOfSync, Revision: commit},
		Health:             v1alpha1.HealthStatus{Status: v1alpha1.HealthDegraded, Message: "Deployment web: 0 of 3 ready"},
		Conditions: []v1alpha1.Condition{
			{Type: v1alpha1.ConditionErrorOccurred, Status: metav1.ConditionFalse, Reason: "ErrorOccurredResolved", LastTransitionTime: before(3 * time.Hour)},
			{Type: v1alpha1.ConditionSyncError, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonSyncError, Message: "Deployment web: image not allowed\x1b[2J\nby policy", LastTransitionTime: before(10 * time.Minute)},
		},
		Resources: []v1alpha1.ResourceStatus{
			{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", Status: v1alpha1.SyncSynced},
			{Version: "v1", Kind: "Service", Namespace: "shop", Name: "web", Status: v1alpha1.SyncSynced, Health: healthy},
			{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "jobs", Status: v1alpha1.SyncSynced, Health: healthy},
			{Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "web", Status: v1alpha1.SyncOutOfSync, Health: &v1alpha1.HealthStatus{Status: v1alpha1.HealthDegraded, Message: "0 of 3 ready"}},
		},
		OperationState: &v1alpha1.OperationState{
			Phase: v1alpha1.OperationFailed, Message: "one or more objects failed to apply",
			Operation: v1alpha1.RequestedOperation{InitiatedBy: v1alpha1.OperationInitiator{Automated: true}},
			StartedAt: before(11 * time.Minute), FinishedAt: before(10 * time.Minute), RetryCount: 2,
			SyncResult: &v1alpha1.SyncOperationResult{Revision: commit, Resources: []v1alpha1.ResourceResult{
				{Kind: "Service", Namespace: "shop", Name: "web", Status: "Synced"},
				{Kind: "Deployment", Namespace: "shop", Name: "web", Status: "SyncFailed", Message: "image not allowed"},
			}},
		},
		History: []v1alpha1.HistoryEntry{
			{ID: 0, Revision: "9c1185a5c5e9fc54612808977ee8f548b2258d31", Phase: v1alpha1.OperationSucceeded, InitiatedBy: v1alpha1.OperationInitiator{Username: "alice"}, DeployStartedAt: before(26 * time.Hour), DeployedAt: before(26*time.Hour - 42*time.Second)},
			{ID: 1, Revision: commit, Phase: v1alpha1.OperationFailed, Message: "image not allowed", InitiatedBy: v1alpha1.OperationInitiator{Automated: true}, DeployStartedAt: before(11 * time.Minute), DeployedAt: before(10 * time.Minute)},
		},
	}
	return d
}

func shopRuns() []*v1alpha1.GitOpsDeploymentSyncRun {
	joined := &v1alpha1.GitOpsDeploymentSyncRun{ObjectMeta: named("shop-prod-aaaaa", 26*time.Hour), Spec: v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: "shop-prod"}}
	joined.Status = v1alpha1.GitOpsDeploymentSyncRunStatus{
		Revision: "9c1185a5c5e9fc54612808977ee8f548b2258d31", StartedAt: before(26 * time.Hour), FinishedAt: before(26*time.Hour - 42*time.Second),
		SyncStatus: v1alpha1.SyncSynced, Health: v1alpha1.HealthHealthy,
		Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue}},
	}
	refused := &v1alpha1.GitOpsDeploymentSyncRun{ObjectMeta: named("shop-prod-bbbbb", 5*time.Hour), Spec: v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: "shop-prod", RevisionID: "v9"}}
	refused.Status = v1alpha1.GitOpsDeploymentSyncRunStatus{
		FinishedAt: before(5 * time.Hour),
		Conditions: []v1alpha1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionFalse, Message: "there is no revision v9"}},
	}
	running := &v1alpha1.GitOpsDeploymentSyncRun{ObjectMeta: named("shop-prod-ccccc", time.Minute), Spec: v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: "shop-prod", RevisionID: "v1.4.1"}}
	running.Status.StartedAt = before(50 * time.Second)
	return []*v1alpha1.GitOpsDeploymentSyncRun{running, refused, joined}
}

func prodEnvironment() *v1alpha1.GitOpsDeploymentManagedEnvironment {
	no := false
	e := &v1alpha1.GitOpsDeploymentManagedEnvironment{ObjectMeta: named("prod", 90*time.Hour)}
	e.Spec = v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{APIURL: "https://api.prod.example.com:6443", CredentialsSecret: "prod-access", Namespaces: []string{"shop", "shop-jobs"}, AllowAutomatedDeployments: &no}
	e.Status.Conditions = []metav1.Condition{{
		Type: string(v1alpha1.ConditionConnectionInitializationSucceeded), Status: metav1.ConditionFalse,
		Reason: string(v1alpha1.ReasonUnableToValidateClusterCredentials), Message: "the cluster refused the token: give a new one in Secret prod-access", LastTransitionTime: *before(time.Hour),
	}}
	return e
}

func gitCredential() *v1alpha1.GitOpsDeploymentRepositoryCredential {
	c := &v1alpha1.GitOpsDeploymentRepositoryCredential{ObjectMeta: named("shop", 90*time.Hour)}
	c.Spec = v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: "git@git.example.com:team/shop.git", Secret: "shop-git"}
	c.Status.Conditions = []metav1.Condition{
		{Type: "ErrorOccurred", Status: metav1.ConditionFalse, Reason: "RepositoryCredentialUpToDate"},
		{Type: "ValidRepositoryURL", Status: metav1.ConditionTrue, Reason: "ValidRepositoryUrl", LastTransitionTime: *before(time.Hour)},
		{Type: "ValidRepositoryCredential", Status: metav1.ConditionTrue, Reason: "RepositoryCredentialUpToDate", LastTransitionTime: *before(time.Hour)},
	}
	return c
}

func TestTables(t *testing.T) {
	fresh := &v1alpha1.GitOpsDeployment{ObjectMeta: named("fresh", 3*time.Second)}
	fresh.Spec.Source.RepoURL = "https://git.example.com/team/fresh"
	var runs []client.Object
	for _, r := range shopRuns() {
		runs = append(runs, r)
	}
	wanted := kinds()
	found := [][]client.Object{{shopProd(), fresh}, runs, {prodEnvironment()}, {gitCredential()}}
	for _, test := range []struct {
		name string
		get  getCommand
	}{
		{"tables", getCommand{}},
		{"tables-wide", getCommand{output: outputWide}},
		{"tables-all-namespaces", getCommand{allNamespaces: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			test.get.app, test.get.out, test.get.session = &app{now: clock}, &out, &session{}
			must(t, test.get.print(wanted, found, true))
			golden(t, test.name, out.String())
		})
	}
}

func TestDescribePages(t *testing.T) {
	events := []corev1.Event{
		{Type: "Normal", Reason: "Created", Message: "taken up", LastTimestamp: *before(50 * time.Hour)},
		{Type: "Warning", Reason: "SyncFailed", Message: "image not allowed", LastTimestamp: *before(10 * time.Minute), Count: 3},
	}
	fresh := &v1alpha1.GitOpsDeployment{ObjectMeta: named("fresh", 3*time.Second)}
	fresh.Spec.Source = v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/team/fresh", Path: "deploy"}
	for name, d := range map[string]*described{
		"describe-deployment":  {kind: deployments(), object: shopProd(), runs: shopRuns(), environment: prodEnvironment(), events: events},
		"describe-fresh":       {kind: deployments(), object: fresh},
		"describe-syncrun":     {kind: syncRuns(), object: shopRuns()[1]},
		"describe-environment": {kind: environments(), object: prodEnvironment(), deployments: []*v1alpha1.GitOpsDeployment{shopProd()}},
		"describe-credential":  {kind: credentials(), object: gitCredential()},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			d.show(&page{&out}, clock())
			golden(t, name, out.String())
		})
	}
}

func TestHistoryTable(t *testing.T) {
	past := pastDeployments(shopProd().Status.History, shopRuns())
	var out bytes.Buffer
	printHistory(&out, "", past, clock(), false)
	golden(t, "history", out.String())
}
