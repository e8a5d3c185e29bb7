// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/testkit"
)

// syncRun asks for a deployment.
func (w *world) syncRun(namespace, name, deployment, revision string, annotations ...string) *v1alpha1.GitOpsDeploymentSyncRun {
	w.Helper()
	run := &v1alpha1.GitOpsDeploymentSyncRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: deployment, RevisionID: revision},
	}
	if len(annotations) > 0 {
		run.Annotations = map[string]string{v1alpha1.TTLAnnotation: annotations[0]}
	}
	w.must(w.api.Create(w.ctx, run))
	return run
}

func (w *world) run(r *v1alpha1.GitOpsDeploymentSyncRun) *v1alpha1.GitOpsDeploymentSyncRun {
	w.Helper()
	latest := &v1alpha1.GitOpsDeploymentSyncRun{}
	w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(r), latest))
	return latest
}

func (w *world) awaitRun(r *v1alpha1.GitOpsDeploymentSyncRun, what string, look func(*v1alpha1.GitOpsDeploymentSyncRun) string) *v1alpha1.GitOpsDeploymentSyncRun {
	w.Helper()
	var latest *v1alpha1.GitOpsDeploymentSyncRun
	testkit.Eventually(w.T, what, func() string {
		latest = w.run(r)
		return look(latest)
	})
	return latest
}

func runCondition(r *v1alpha1.GitOpsDeploymentSyncRun, kind v1alpha1.ConditionType) v1alpha1.Condition {
	for _, c := range r.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1alpha1.Condition{}
}

func runShows(kind v1alpha1.ConditionType, status metav1.ConditionStatus, words ...string) func(*v1alpha1.GitOpsDeploymentSyncRun) string {
	return func(r *v1alpha1.GitOpsDeploymentSyncRun) string {
		c := runCondition(r, kind)
		if c.Status != status {
			return fmt.Sprintf("condition %s is %q: %s", kind, c.Status, c.Message)
		}
		return mention(c.Message, words...)
	}
}

// requested waits until the engine is asked for a sync by a run.
func (w *world) requested(d *v1alpha1.GitOpsDeployment, r *v1alpha1.GitOpsDeploymentSyncRun) *argov1alpha1.Application {
	w.Helper()
	var app *argov1alpha1.Application
	testkit.Eventually(w.T, "a request for the sync of "+r.Name, func() string {
		if app = w.application(d); app == nil || app.Operation == nil {
			return "no operation"
		}
		if len(app.Operation.Info) != 1 || app.Operation.Info[0] != (argov1alpha1.Info{Name: domain.SyncInfo, Value: string(r.UID)}) {
			return fmt.Sprintf("another's operation: %+v", app.Operation.Info)
		}
		return ""
	})
	return app
}

// at is a time as engines write it.
func at(offset time.Duration) string { return time.Now().Add(offset).UTC().Format(time.RFC3339) }

// begin plays the engine that takes the request up.
func (w *world) begin(app *argov1alpha1.Application) {
	w.Helper()
	w.progress(app, map[string]any{
		"operation": nil,
		"status": map[string]any{"operationState": map[string]any{
			"operation": app.Operation, "phase": "Running", "message": "syncing", "startedAt": at(-10 * time.Second),
			"finishedAt": nil, "syncResult": nil,
		}},
	})
}

// finish plays the engine that comes to an end with it.
func (w *world) finish(app *argov1alpha1.Application, phase, message, revision string) {
	w.Helper()
	w.progress(app, map[string]any{"status": map[string]any{
		"sync": map[string]any{"status": "Synced", "revision": revision}, "health": map[string]any{"status": "Healthy"},
		"operationState": map[string]any{
			"phase": phase, "message": message, "finishedAt": at(0),
			"syncResult": map[string]any{"revision": revision, "resources": []any{
				map[string]any{"kind": "Deployment", "name": "a", "status": "Synced"},
				map[string]any{"kind": "Service", "name": "b", "status": "Pruned"},
				map[string]any{"kind": "Service", "name": "c", "status": "SyncFailed"},
			}},
		},
	}})
}

func (w *world) progress(app *argov1alpha1.Application, change map[string]any) {
	w.Helper()
	target := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	w.must(w.api.Patch(w.ctx, target, client.RawPatch(types.MergePatchType, encode(w.T, change))))
}

func Test19_ASyncRunSyncsAtItsRevisionAndIsThenFinal(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		run := w.syncRun(ns, "now", "shop", "v1.2.3")
		app := w.requested(d, run)
		if app.Operation.Sync == nil || app.Operation.Sync.Revision != "v1.2.3" {
			t.Errorf("sync asked for: %+v", app.Operation.Sync)
		}
		w.begin(app)
		w.awaitRun(run, "it runs", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionUnknown, "syncing"))
		w.finish(app, "Succeeded", "all done", "abc123")
		done := w.awaitRun(run, "it succeeded", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionTrue, "all done"))
		s := done.Status
		if s.Health != v1alpha1.HealthHealthy || s.SyncStatus != v1alpha1.SyncSynced || s.Revision != "abc123" || s.StartedAt == nil || s.FinishedAt == nil {
			t.Errorf("status: %+v", s)
		}
		w.awaitQuiet()
		w.report(d, map[string]any{"health": map[string]any{"status": "Degraded"}})
		w.awaitStatus(d, "the deployment degrades", func(d *v1alpha1.GitOpsDeployment) string {
			return mention(string(d.Status.Health.Status), "Degraded")
		})
		if again := w.run(run); again.ResourceVersion != done.ResourceVersion {
			t.Errorf("the run was written again after its end: %+v", again.Status)
		}
	})
}

func Test20_AnEditedSpecIsImmutable(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		run := w.syncRun(ns, "now", "shop", "v1")
		w.requested(d, run)
		edit := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revisionID":"v2"}}`))
		if err := w.api.Patch(w.ctx, run.DeepCopy(), edit); !apierrors.IsInvalid(err) {
			t.Errorf("the API server takes an edited spec: %v", err)
		}
		// Past the schema, as with an older one installed: the row was taken in with
		// another spec.
		w.exec("UPDATE sync_operation SET revision = 'other' WHERE id = $1", string(run.UID))
		w.touch(run)
		w.awaitRun(run, "it says so", runShows(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, "immutable", "create another"))
		if n := w.count("SELECT count(*) FROM sync_operation"); n != 1 {
			t.Errorf("%d syncs", n)
		}
	})
}

func Test21_DeletedWhileRunningItIsTerminated(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")

		waiting := w.syncRun(ns, "not-begun", "shop", "")
		w.requested(d, waiting)
		w.must(w.api.Delete(w.ctx, waiting))
		testkit.Eventually(w.T, "the request is taken back", func() string {
			if op := w.application(d).Operation; op != nil {
				return fmt.Sprintf("%+v", op)
			}
			return ""
		})

		run := w.syncRun(ns, "begun", "shop", "")
		w.begin(w.requested(d, run))
		w.must(w.api.Delete(w.ctx, run))
		testkit.Eventually(w.T, "the sync is terminated", func() string {
			if phase := w.application(d).Status.OperationState.Phase; phase != argov1alpha1.OperationTerminating {
				return string(phase)
			}
			return ""
		})
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM sync_operation"); n != 0 {
			t.Errorf("%d syncs left", n)
		}

		w.finish(w.application(d), "Failed", "terminated", "")
		idle := w.syncRun(ns, "idle", "shop", "")
		app := w.requested(d, idle)
		w.begin(app)
		w.finish(app, "Succeeded", "", "abc")
		w.awaitRun(idle, "it succeeded", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionTrue))
		w.awaitQuiet()
		before := w.application(d)
		w.must(w.api.Delete(w.ctx, idle))
		testkit.Eventually(w.T, "its rows go", func() string {
			return fmt.Sprint(zero(w.count("SELECT count(*) FROM sync_operation") + w.count("SELECT count(*) FROM api_cr_to_database_mapping")))
		})
		if after := w.application(d); after.ResourceVersion != before.ResourceVersion {
			t.Error("deleting a run that is over touched the Application")
		}
		if n := w.count("SELECT count(*) FROM operation WHERE resource_type = 'SyncOperation' AND state IN ('Waiting', 'In_Progress')"); n != 0 {
			t.Errorf("%d operations", n)
		}
	})
}

func Test22_SeveralRunsGoOneAfterTheOther(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		var runs []*v1alpha1.GitOpsDeploymentSyncRun
		for i := range 3 {
			runs = append(runs, w.syncRun(ns, fmt.Sprintf("run-%d", i), "shop", fmt.Sprintf("v%d", i)))
			// Taken in one after the other, so that the order is known.
			testkit.Eventually(w.T, "it is taken in", func() string {
				return fmt.Sprint(zero(i + 1 - w.count("SELECT count(*) FROM sync_operation")))
			})
		}
		for i, run := range runs {
			app := w.requested(d, run)
			w.begin(app)
			phase := []string{"Succeeded", "Failed", "Succeeded"}[i]
			w.finish(app, phase, "result of "+run.Name, fmt.Sprintf("commit-%d", i))
		}
		for i, run := range runs {
			status := []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionTrue}[i]
			got := w.awaitRun(run, "its own result", runShows(v1alpha1.ConditionSucceeded, status, "result of "+run.Name))
			if got.Status.Revision != fmt.Sprintf("commit-%d", i) {
				t.Errorf("run %d synced %s", i, got.Status.Revision)
			}
		}
	})
}

func Test23_TheNewestCommitIsUsed(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		app := w.requested(d, w.syncRun(ns, "now", "shop", ""))
		// Looking at Git anew is asked for in the same write as the sync.
		if app.Annotations[argov1alpha1.RefreshAnnotation] == "" {
			t.Error("the engine is not asked to refresh")
		}
		if app.Operation.Sync.Revision != "" {
			t.Errorf("revision %q instead of the target's newest", app.Operation.Sync.Revision)
		}
	})
}

func Test24_BeforeItsDeploymentARunWaitsVisibly(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		run := w.syncRun(ns, "early", "shop", "")
		w.awaitRun(run, "it waits", runShows(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, "waiting", "GitOpsDeployment shop"))
		d := w.deployed(ns, "shop")
		app := w.requested(d, run)
		w.begin(app)
		w.finish(app, "Succeeded", "", "abc")
		got := w.awaitRun(run, "it succeeded", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionTrue))
		if c := runCondition(got, v1alpha1.ConditionErrorOccurred); c.Status != metav1.ConditionFalse {
			t.Errorf("still waiting: %+v", c)
		}
	})
}

func Test25_OfADeletedDeploymentNothingOfARunIsLeft(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		run := w.syncRun(ns, "now", "shop", "")
		w.begin(w.requested(d, run))
		w.awaitRun(run, "it runs", func(r *v1alpha1.GitOpsDeploymentSyncRun) string {
			if r.Status.StartedAt == nil {
				return "not started"
			}
			return ""
		})
		w.delete(d)
		w.awaitGone(d)
		w.awaitQuiet()
		for _, table := range []string{"sync_operation", "api_cr_to_database_mapping"} {
			if n := w.count("SELECT count(*) FROM " + table); n != 0 {
				t.Errorf("%d rows in %s", n, table)
			}
		}
		w.touch(run)
		w.awaitRun(run, "it is over", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionFalse, "removed while it ran"))
		w.deployed(ns, "shop")
		w.must(w.api.Delete(w.ctx, run))
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM sync_operation"); n != 0 {
			t.Errorf("it ran for another deployment of that name: %d syncs", n)
		}
	})
}

func Test26_AFailedSyncSaysWhyAndALaterOneWorks(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		bad := w.syncRun(ns, "bad", "shop", "")
		app := w.requested(d, bad)
		w.begin(app)
		w.finish(app, "Error", "ComparisonError: no such revision", "")
		w.awaitRun(bad, "it failed", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionFalse, "no such revision"))
		w.awaitRun(bad, "and says why", runShows(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, "no such revision"))
		good := w.syncRun(ns, "good", "shop", "")
		app = w.requested(d, good)
		w.begin(app)
		w.finish(app, "Succeeded", "", "abc")
		w.awaitRun(good, "it succeeded", runShows(v1alpha1.ConditionSucceeded, metav1.ConditionTrue))
	})
}

func Test27_ASyncInManualModePrunes(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop", func(d *v1alpha1.GitOpsDeployment) { d.Spec.Type = v1alpha1.DeploymentTypeManual })
		if w.application(d).Spec.SyncPolicy != nil {
			t.Error("a manual deployment syncs by itself")
		}
		app := w.requested(d, w.syncRun(ns, "now", "shop", ""))
		if !app.Operation.Sync.Prune {
			t.Error("the sync leaves behind what is no longer in Git")
		}
	})
}

func Test28_FinishedRunsGoAndTheHistoryStays(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		run := w.syncRun(ns, "now", "shop", "", "1s")
		app := w.requested(d, run)
		w.begin(app)
		w.finish(app, "Succeeded", "all done", "abc123")
		testkit.Eventually(w.T, "the run goes", func() string {
			err := w.api.Get(w.ctx, client.ObjectKeyFromObject(run), &v1alpha1.GitOpsDeploymentSyncRun{})
			if !apierrors.IsNotFound(err) {
				return fmt.Sprint(err)
			}
			return fmt.Sprint(zero(w.count("SELECT count(*) FROM sync_operation")))
		})
		tenant := domain.TenantID(w.namespaceUID(ns))
		history, err := w.Store.History(w.ctx, tenant, domain.ApplicationID(d.UID), 10)
		w.must(err)
		if len(history) != 1 {
			t.Fatalf("history: %+v", history)
		}
		h := history[0]
		if h.Revision != "abc123" || h.Result != domain.SyncSucceeded || h.Resources != 2 || h.Finished.Sub(h.Started) < 10*time.Second ||
			h.Name != "shop" || h.Namespace != ns || h.Trigger != "GitOpsDeploymentSyncRun "+string(run.UID) {
			t.Errorf("history: %+v", h)
		}
		// One that the engine began by itself is in it as well.
		w.progress(app, map[string]any{"status": map[string]any{"operationState": map[string]any{
			"operation": map[string]any{"initiatedBy": map[string]any{"automated": true}, "info": nil}, "phase": "Succeeded",
			"startedAt": at(0), "finishedAt": at(time.Second),
		}}})
		testkit.Eventually(w.T, "an automated deployment is recorded", func() string {
			history, err := w.Store.History(w.ctx, tenant, domain.ApplicationID(d.UID), 10)
			w.must(err)
			if len(history) != 2 || history[0].Trigger != "automated" {
				return fmt.Sprintf("%+v", history)
			}
			return ""
		})
	})
}
