// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/testkit"
)

var healthy = map[string]any{
	"sync":   map[string]any{"status": "Synced", "revision": "1f0c2b"},
	"health": map[string]any{"status": "Healthy"},
}

func isHealthy(d *v1alpha1.GitOpsDeployment) string {
	if d.Status.Sync.Status != v1alpha1.SyncSynced || d.Status.Health.Status != v1alpha1.HealthHealthy {
		return fmt.Sprintf("%s, %s", d.Status.Sync.Status, d.Status.Health.Status)
	}
	return ""
}

func Test01_NewAutomatedDeploymentReachesTheEngineAndShowsItsStatus(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		app := w.awaitApplication(d)
		if p := app.Spec.SyncPolicy; p == nil || p.Automated == nil || !p.Automated.Prune || !p.Automated.SelfHeal {
			t.Errorf("an automated deployment prunes and heals itself; its Application has %+v", p)
		}
		if got := *app.Spec.Source; got.RepoURL != d.Spec.Source.RepoURL || got.Path != "deploy" {
			t.Errorf("source %+v", got)
		}
		if app.Spec.Destination.Namespace != d.Namespace {
			t.Errorf("destination %+v", app.Spec.Destination)
		}
		w.report(d, healthy)
		w.awaitStatus(d, "Synced and Healthy", isHealthy)
	})
}

func Test02_TheSameCRAppliedAgainChangesNoRowAndAddsNoOperation(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.awaitQuiet()
		operations := w.count("SELECT count(*) FROM operation")
		version := w.count("SELECT version FROM application WHERE id = $1", string(d.UID))
		w.edit(d, func(d *v1alpha1.GitOpsDeployment) { d.Annotations = map[string]string{"note": "applied again"} })
		testkit.Steadily(w.T, 500*time.Millisecond, "at rest", func() string {
			if n := w.count("SELECT count(*) FROM operation"); n != operations {
				return fmt.Sprintf("%d operations instead of %d", n, operations)
			}
			if v := w.count("SELECT version FROM application WHERE id = $1", string(d.UID)); v != version {
				return "the row was written"
			}
			return ""
		})
	})
}

func Test03_ChangedRepositoryPathAndRevisionReachTheEngine(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.edit(d, func(d *v1alpha1.GitOpsDeployment) {
			d.Spec.Source = v1alpha1.ApplicationSource{RepoURL: "https://git.example.com/team/other", Path: "prod", TargetRevision: "v2"}
			d.Spec.Type = v1alpha1.DeploymentTypeManual
		})
		testkit.Eventually(w.T, "the Application follows", func() string {
			s := w.application(d).Spec
			if s.Source.RepoURL != "https://git.example.com/team/other" || s.Source.Path != "prod" || s.Source.TargetRevision != "v2" || s.SyncPolicy != nil {
				return fmt.Sprintf("%+v", s)
			}
			return ""
		})
		w.awaitQuiet()
	})
}

func Test03_AStormOfEditsEndsAtTheLast(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		const edits = 30
		for i := range edits {
			w.edit(d, testkit.WithPath(fmt.Sprintf("p%d", i)))
		}
		w.edit(d, testkit.WithPath("p0"))
		testkit.Eventually(w.T, "the last edit", func() string {
			if p := w.application(d).Spec.Source.Path; p != "p0" {
				return p
			}
			return ""
		})
		w.awaitQuiet()
		if p := w.application(d).Spec.Source.Path; p != "p0" {
			t.Errorf("after all is quiet the Application has %s", p)
		}
		if n := w.count("SELECT count(*) FROM operation WHERE resource_id = $1", string(d.UID)); n > edits+2 {
			t.Errorf("%d operations for %d edits", n, edits+2)
		}
	})
}

func Test04_DeletedDeploymentLeavesNothing(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.report(d, healthy)
		w.awaitStatus(d, "Synced and Healthy", isHealthy)
		w.delete(d)
		w.awaitGone(d)
		w.awaitQuiet()
	})
}

func Test05_FinalizerKeepsTheCRUntilItsChildrenAreGone(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop", testkit.WithFinalizer(v1alpha1.DeletionFinalizer))
		w.pauseEngine()
		w.delete(d)
		w.awaitStatus(d, "says what it waits for", shows(v1alpha1.ConditionErrorOccurred, "waiting for the engine to remove"))
		w.resumeEngine()
		w.awaitCRGone(d)
		w.awaitGone(d)
	})
}

func Test05_FinalizerIsReleasedWhenTheRowsWereGoneBeforeARestart(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop", testkit.WithFinalizer(v1alpha1.DeletionFinalizer))
		w.awaitQuiet()
		w.StopBackend()
		w.delete(d)
		w.exec("DELETE FROM application WHERE id = $1", string(d.UID))
		w.exec("DELETE FROM operation WHERE resource_id = $1", string(d.UID))
		w.StartBackend()
		w.awaitCRGone(d)
		w.awaitGone(d)
	})
}

func (w *world) awaitCRGone(d *v1alpha1.GitOpsDeployment) {
	w.Helper()
	testkit.Eventually(w.T, "the CR is gone", func() string {
		err := w.api.Get(w.ctx, client.ObjectKeyFromObject(d), &v1alpha1.GitOpsDeployment{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		w.must(err)
		return "it is there"
	})
}

func (w *world) exec(statement string, args ...any) {
	w.Helper()
	_, err := w.Raw.ExecContext(w.ctx, statement, args...)
	w.must(err)
}

func Test06_CreateAndDeleteUnderOneNameThreeTimes(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		for range 3 {
			d := w.deployed(ns, "shop")
			if s := w.get(d).Status; s.Health.Status == v1alpha1.HealthHealthy {
				t.Error("a new deployment inherited a status")
			}
			w.report(d, healthy)
			w.awaitStatus(d, "Synced and Healthy", isHealthy)
			w.delete(d)
			w.awaitGone(d)
		}
	})
}

func Test07_DeletedAndRecreatedWhileTheBackendIsDown(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		old := w.deployed(ns, "shop")
		w.report(old, healthy)
		w.awaitStatus(old, "Synced and Healthy", isHealthy)
		w.StopBackend()
		w.delete(old)
		recreated := w.create(testkit.Deployment(ns, "shop", testkit.WithPath("again")))
		w.StartBackend()
		w.awaitGone(old)
		w.awaitApplication(recreated)
		if s := w.get(recreated).Status; s.Health.Status == v1alpha1.HealthHealthy || s.Sync.Revision != "" {
			t.Errorf("the new UID shows the old one's status: %+v", s)
		}
	})
}

func Test08_NamespaceDeletedAndRecreatedUnderTheSameName(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		old := w.deployed(ns, "shop")
		w.StopBackend()
		w.must(w.api.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		testkit.Eventually(w.T, "the namespace is gone", func() string {
			err := w.api.Get(w.ctx, client.ObjectKey{Name: ns}, &corev1.Namespace{})
			if apierrors.IsNotFound(err) {
				return ""
			}
			return fmt.Sprintf("still there (%v)", err)
		})
		again := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}
		w.must(w.api.Create(w.ctx, again))
		recreated := w.create(testkit.Deployment(ns, "shop"))
		w.StartBackend()
		w.awaitGone(old)
		w.awaitApplication(recreated)
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM application WHERE tenant = $1", string(again.UID)); n != 1 {
			t.Errorf("%d applications of the new namespace", n)
		}
		if n := w.count("SELECT count(*) FROM application WHERE tenant <> $1", string(again.UID)); n != 0 {
			t.Errorf("%d applications of the old namespace's UID", n)
		}
	})
}

func Test09_PathThatLeavesTheRepositoryIsAConditionAndNoApplication(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		for name, path := range map[string]string{
			"empty": "", "root": "/", "absolute": "/etc", "climbing": "../x", "inside": "a/../../x",
		} {
			d := w.create(testkit.Deployment(ns, name, testkit.WithPath(path)))
			w.awaitStatus(d, "condition for "+path, shows(v1alpha1.ConditionErrorOccurred, "spec.source.path", "name a folder inside the repository"))
			if w.application(d) != nil {
				t.Errorf("path %q has an Application", path)
			}
			if n := w.count("SELECT count(*) FROM application WHERE id = $1", string(d.UID)); n != 0 {
				t.Errorf("path %q has a row", path)
			}
		}
	})
}

func Test10_CorrectedErrorIsResolved(t *testing.T) {
	each(t, func(w *world) {
		d := w.create(testkit.Deployment(w.tenant(), "shop", testkit.WithPath("../x")))
		w.awaitStatus(d, "the error", shows(v1alpha1.ConditionErrorOccurred, "spec.source.path"))
		w.edit(d, testkit.WithPath("deploy"))
		w.awaitApplication(d)
		w.awaitStatus(d, "resolved", resolved(v1alpha1.ConditionErrorOccurred))
	})
}

func Test10_ABrokenEditKeepsWhatRuns(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.edit(d, testkit.WithPath("/"))
		w.awaitStatus(d, "the error", shows(v1alpha1.ConditionErrorOccurred, "spec.source.path"))
		if app := w.application(d); app == nil || app.Spec.Source.Path != "deploy" {
			t.Error("a typing error took the running application away")
		}
	})
}

func Test11_TerminatingNamespaceGetsNoNewRows(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		w.StopBackend()
		d := w.create(testkit.Deployment(ns, "shop", testkit.WithFinalizer("example.com/hold")))
		w.must(w.api.Delete(w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
		testkit.Eventually(w.T, "the CR is being deleted", func() string {
			if w.get(d).DeletionTimestamp.IsZero() {
				return "not yet"
			}
			return ""
		})
		w.StartBackend()
		testkit.Steadily(w.T, time.Second, "no rows", func() string {
			if n := w.count("SELECT count(*) FROM application WHERE id = $1", string(d.UID)); n != 0 {
				return "there is a row"
			}
			return ""
		})
		w.edit(d, func(d *v1alpha1.GitOpsDeployment) { d.Finalizers = nil })
	})
}

func Test12_ForeignDestinationNamespaceWithoutEnvironmentIsRejected(t *testing.T) {
	each(t, func(w *world) {
		d := w.create(testkit.Deployment(w.tenant(), "shop", testkit.WithDestination("", "kube-system")))
		w.awaitStatus(d, "the error", shows(v1alpha1.ConditionErrorOccurred, "spec.destination.namespace", "spec.destination.environment"))
		if w.application(d) != nil {
			t.Error("it has an Application")
		}
		w.edit(d, testkit.WithDestination("", d.Namespace))
		w.awaitApplication(d)
	})
}

func Test13_UnknownSyncOptionAndTypeAreRejectedWithTheFieldsPath(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		for field, modify := range map[string]testkit.Modify{
			"spec.type": func(d *v1alpha1.GitOpsDeployment) { d.Spec.Type = "sometimes" },
			"spec.syncPolicy.syncOptions[0]": func(d *v1alpha1.GitOpsDeployment) {
				d.Spec.SyncPolicy = &v1alpha1.SyncPolicy{SyncOptions: []v1alpha1.SyncOption{"Explode=true"}}
			},
		} {
			err := w.api.Create(w.ctx, testkit.Deployment(ns, "shop", modify))
			if !apierrors.IsInvalid(err) {
				t.Fatalf("%s: %v", field, err)
			}
			if wrong := mention(err.Error(), field); wrong != "" {
				t.Error(wrong)
			}
		}
	})
}

func Test14_EngineConditionIsShownAndCleared(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.report(d, map[string]any{"conditions": []any{map[string]any{"type": "ComparisonError", "message": "repository not found"}}})
		w.awaitStatus(d, "shown", shows(v1alpha1.ConditionComparisonError, "repository not found"))
		w.report(d, map[string]any{"conditions": nil, "sync": healthy["sync"], "health": healthy["health"]})
		w.awaitStatus(d, "cleared", resolved(v1alpha1.ConditionComparisonError))
	})
}

func Test15_StatusFollowsTheEngine(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		w.report(d, map[string]any{
			"sync": map[string]any{"status": "OutOfSync", "revision": "aaa", "comparedTo": map[string]any{
				"source":      map[string]any{"repoURL": d.Spec.Source.RepoURL, "path": "deploy", "targetRevision": "main"},
				"destination": map[string]any{"server": "https://kubernetes.default.svc", "namespace": d.Namespace},
			}},
			"health":         map[string]any{"status": "Degraded", "message": "crash loop"},
			"resources":      []any{map[string]any{"group": "apps", "version": "v1", "kind": "Deployment", "namespace": d.Namespace, "name": "web", "status": "OutOfSync", "health": map[string]any{"status": "Degraded"}}},
			"operationState": map[string]any{"phase": "Failed", "message": "one of two failed", "startedAt": "2026-01-02T03:04:05Z", "operation": map[string]any{"sync": map[string]any{"revision": "aaa"}}},
		})
		w.awaitStatus(d, "all of it", func(d *v1alpha1.GitOpsDeployment) string {
			s := d.Status
			switch {
			case s.Sync.Status != v1alpha1.SyncOutOfSync || s.Sync.Revision != "aaa":
				return fmt.Sprintf("sync %+v", s.Sync)
			case s.Health.Status != v1alpha1.HealthDegraded || s.Health.Message != "crash loop":
				return fmt.Sprintf("health %+v", s.Health)
			case len(s.Resources) != 1 || s.Resources[0].Kind != "Deployment" || s.Resources[0].Health.Status != v1alpha1.HealthDegraded:
				return fmt.Sprintf("resources %+v", s.Resources)
			case s.OperationState == nil || s.OperationState.Phase != "Failed" || s.OperationState.Message != "one of two failed":
				return fmt.Sprintf("operationState %+v", s.OperationState)
			case s.ReconciledState.Source.Path != "deploy" || s.ReconciledState.Source.Branch != "main":
				return fmt.Sprintf("reconciledState %+v", s.ReconciledState)
			case s.ReconciledState.Destination.Namespace != d.Namespace || s.ReconciledState.Destination.Name != "":
				return fmt.Sprintf("reconciledState %+v", s.ReconciledState)
			}
			return ""
		})
	})
}

func Test16_StatusIsNeverAnotherUIDsAndObservedGenerationNeverGoesBack(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		changes, err := w.api.Watch(w.ctx, &v1alpha1.GitOpsDeploymentList{}, client.InNamespace(d.Namespace))
		w.must(err)
		defer changes.Stop()
		for i := range 5 {
			w.edit(d, testkit.WithPath(fmt.Sprintf("p%d", i)))
			w.report(d, map[string]any{"sync": map[string]any{"status": "Synced", "revision": fmt.Sprint(i)}})
		}
		// A report of another UID, as a late or forged one would be.
		stored, err := w.Store.SaveState(w.ctx, domain.ApplicationState{Application: "00000000-0000-0000-0000-000000000000", Tenant: "nobody", Health: "Degraded", Sync: "Synced"})
		if err != nil || stored {
			t.Errorf("a state of no application: stored %v, %v", stored, err)
		}
		w.awaitStatus(d, "the last generation", func(d *v1alpha1.GitOpsDeployment) string {
			if d.Status.ObservedGeneration != d.Generation || d.Status.Sync.Revision != "4" {
				return fmt.Sprintf("generation %d, observed %d, revision %s", d.Generation, d.Status.ObservedGeneration, d.Status.Sync.Revision)
			}
			return ""
		})
		last := int64(0)
		for {
			select {
			case e := <-changes.ResultChan():
				seen := e.Object.(*v1alpha1.GitOpsDeployment)
				if seen.Status.ObservedGeneration < last {
					t.Fatalf("observedGeneration went from %d to %d", last, seen.Status.ObservedGeneration)
				}
				last = seen.Status.ObservedGeneration
				if last == 6 && seen.Status.Sync.Revision == "4" {
					return
				}
			case <-time.After(testkit.Patience):
				t.Fatalf("the watch ended at generation %d", last)
			}
		}
	})
}

func Test17_FiftyTenantsConvergeBesideOneThatFloods(t *testing.T) {
	each(t, func(w *world) {
		flood := w.tenant()
		var all []*v1alpha1.GitOpsDeployment
		for i := range 100 {
			all = append(all, w.create(testkit.Deployment(flood, fmt.Sprintf("d%d", i))))
		}
		for range 50 {
			all = append(all, w.create(testkit.Deployment(w.tenant(), "shop")))
		}
		for _, d := range all {
			w.awaitApplication(d)
		}
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM application"); n != len(all) {
			t.Errorf("%d rows for %d deployments", n, len(all))
		}
	})
}

func Test18_EmptiedPathPrunesNothing(t *testing.T) {
	each(t, func(w *world) {
		d := w.deployed(w.tenant(), "shop")
		if a := w.application(d).Spec.SyncPolicy.Automated; a == nil || a.AllowEmpty {
			t.Errorf("the engine is allowed to prune all: %+v", a)
		}
	})
}
