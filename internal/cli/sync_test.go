// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

const commit = "3b18e512dba79e4c8300dd08aeb37f8e728b8dad"

// onlyRun waits for the run that a command creates.
func (w *tenant) onlyRun() *v1alpha1.GitOpsDeploymentSyncRun {
	w.Helper()
	list := &v1alpha1.GitOpsDeploymentSyncRunList{}
	testkit.Eventually(w, "a run", func() string {
		must(w, w.api.List(w.Context(), list, client.InNamespace(w.namespace)))
		if len(list.Items) != 1 {
			return "not one run"
		}
		return ""
	})
	return &list.Items[0]
}

func finish(r *v1alpha1.GitOpsDeploymentSyncRun, status metav1.ConditionStatus, message string) {
	start, end := metav1.NewTime(time.Now().Add(-5*time.Second)), metav1.Now()
	r.Status.StartedAt, r.Status.FinishedAt, r.Status.Revision = &start, &end, commit
	r.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: "Ended", Message: message}}
}

func TestSyncFollowsTheRunStepByStep(t *testing.T) {
	w := newTenant(t)
	w.create(testkit.Deployment("", "shop"))
	r := w.start("sync", "shop", "--revision", commit)
	run := w.onlyRun()
	if !strings.HasPrefix(run.Name, "shop-") || run.Spec.GitopsDeploymentName != "shop" || run.Spec.RevisionID != commit {
		t.Errorf("created %s with %+v", run.Name, run.Spec)
	}
	r.says("Created sync run " + run.Name)
	r.says("\nWaiting\n")

	now := metav1.Now()
	run.Status = v1alpha1.GitOpsDeploymentSyncRunStatus{StartedAt: &now, SyncStatus: v1alpha1.SyncOutOfSync, Health: v1alpha1.HealthProgressing}
	w.setStatus(run)
	r.says("\nRunning, OutOfSync, Progressing\n")

	run.Status.Revision = commit
	w.setStatus(run)
	r.says("\nRunning, revision 3b18e512, OutOfSync, Progressing\n")

	run.Status.SyncStatus, run.Status.Health = v1alpha1.SyncSynced, v1alpha1.HealthHealthy
	finish(run, metav1.ConditionTrue, "")
	w.setStatus(run)
	r.wait().want(t, 0, "\nSucceeded, revision 3b18e512, Synced, Healthy, in ")
}

func TestSyncEnds(t *testing.T) {
	for _, test := range []struct {
		name string
		args []string
		act  func(w *tenant, r *running, run *v1alpha1.GitOpsDeploymentSyncRun)
		code int
		says []string
	}{
		{
			name: "failed", code: 1, says: []string{"the sync failed: Deployment web: image not allowed"},
			act: func(w *tenant, _ *running, run *v1alpha1.GitOpsDeploymentSyncRun) {
				finish(run, metav1.ConditionFalse, "Deployment web: image not allowed")
				w.setStatus(run)
			},
		},
		{
			name: "ended without a verdict", code: 1, says: []string{"the sync failed: no engine"},
			act: func(w *tenant, _ *running, run *v1alpha1.GitOpsDeploymentSyncRun) {
				finish(run, metav1.ConditionFalse, "")
				run.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionErrorOccurred, Status: metav1.ConditionTrue, Message: "no engine"}}
				w.setStatus(run)
			},
		},
		{
			name: "timed out", args: []string{"--timeout", "1s"}, code: 3, says: []string{"not begun within 1s", "the sync run goes on: weir describe syncrun shop-"},
			act: func(*tenant, *running, *v1alpha1.GitOpsDeploymentSyncRun) {},
		},
		{
			name: "timed out with a reason", args: []string{"--timeout", "3s"}, code: 3, says: []string{"within 3s: waiting for the deployment"},
			act: func(w *tenant, _ *running, run *v1alpha1.GitOpsDeploymentSyncRun) {
				run.Status.Conditions = []v1alpha1.Condition{{Type: v1alpha1.ConditionErrorOccurred, Status: metav1.ConditionTrue, Message: "waiting for the deployment"}}
				w.setStatus(run)
			},
		},
		{
			name: "interrupted", code: 130, says: []string{"interrupted; the sync run goes on: weir describe syncrun shop-", "to stop it: kubectl delete"},
			act: func(_ *tenant, r *running, _ *v1alpha1.GitOpsDeploymentSyncRun) {
				r.says("Waiting")
				r.cancel()
			},
		},
		{
			name: "deleted", code: 1, says: []string{"deleted before it ended"},
			act: func(w *tenant, r *running, run *v1alpha1.GitOpsDeploymentSyncRun) {
				r.says("Waiting")
				must(w, w.api.Delete(w.Context(), run))
			},
		},
		{
			name: "not waited for", args: []string{"--no-wait"}, code: 0, says: []string{"See how it goes with: weir describe syncrun shop-"},
			act: func(*tenant, *running, *v1alpha1.GitOpsDeploymentSyncRun) {},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newTenant(t)
			w.create(testkit.Deployment("", "shop"))
			r := w.start(append([]string{"sync", "shop"}, test.args...)...)
			run := w.onlyRun()
			test.act(w, r, run)
			r.wait().want(t, test.code, test.says...)
			if test.code == 130 || test.code == 3 {
				must(t, w.api.Get(t.Context(), client.ObjectKeyFromObject(run), run))
			}
		})
	}
}

func TestSyncOfWhatIsNotThere(t *testing.T) {
	w := newTenant(t)
	w.create(testkit.Deployment("", "shop-prod"))
	w.run("sync", "shop-prd").want(t, 1, `deployment "shop-prd" not found`, "did you mean shop-prod?", "--allow-missing")
	w.run("sync", "later", "--allow-missing", "--no-wait").want(t, 0, "Created sync run later-")
}

func TestSyncUsage(t *testing.T) {
	for _, args := range [][]string{{"sync"}, {"sync", "a", "b"}, {"sync", "a", "--what"}, {"sync", "a", "--timeout", "soon"}, {"sync", "a", "--wait", "--no-wait"}} {
		root := newTestRoot("weir", fakeTerminal{}, time.Now)
		root.SetArgs(args)
		if code := ExitCode(root.ExecuteContext(t.Context())); code != 2 {
			t.Errorf("%v: exit code %d, want 2", args, code)
		}
	}
}

func TestSyncRefusedByTheAPIServer(t *testing.T) {
	w := newTenant(t)
	w.create(testkit.Deployment("", "shop"))
	w.run("sync", "shop", "--revision", "a..b").want(t, 1, "refused: spec.revisionID", "not a range")
}

func TestProgressOnATerminal(t *testing.T) {
	var out buffer
	p := newProgress(&out, true)
	p.say("Waiting")
	p.say("Waiting")
	p.say("Running")
	p.end()
	if want := "\r\x1b[KWaiting\r\x1b[KRunning\n"; out.String() != want {
		t.Errorf("drew %q, want %q", out.String(), want)
	}
}

func TestGeneratedNamesAreValid(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"shop", "shop-"},
		{strings.Repeat("a", 56) + "." + strings.Repeat("b", 30), strings.Repeat("a", 56) + "-"},
	} {
		if got := generateName(test.name); got != test.want {
			t.Errorf("%s gives %s, want %s", test.name, got, test.want)
		}
	}
}
