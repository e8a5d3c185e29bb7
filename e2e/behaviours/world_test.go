// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/testkit"
)

// standIn takes the engine's place where a behaviour needs none: it lets
// deleted Applications go, as an engine does once it has removed what it
// deployed.
type standIn struct {
	idle chan bool
}

func (w *world) startEngine() {
	w.engine = &standIn{idle: make(chan bool, 1)}
	apps, err := w.api.Watch(w.ctx, &argov1alpha1.ApplicationList{}, client.InNamespace(w.EngineNamespace))
	w.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.letGo(apps)
	}()
	w.Cleanup(func() {
		apps.Stop()
		<-done
	})
}

func (w *world) letGo(apps watch.Interface) {
	on := true
	waiting := map[string]bool{}
	for {
		select {
		case idle := <-w.engine.idle:
			on = !idle
			for name := range waiting {
				if on {
					w.removeFinalizer(name)
				}
			}
			if on {
				clear(waiting)
			}
		case e, open := <-apps.ResultChan():
			if !open {
				return
			}
			app, isApp := e.Object.(*argov1alpha1.Application)
			if !isApp || app.DeletionTimestamp.IsZero() || len(app.Finalizers) == 0 {
				continue
			}
			if on {
				w.removeFinalizer(app.Name)
			} else {
				waiting[app.Name] = true
			}
		}
	}
}

func (w *world) removeFinalizer(name string) {
	app := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.EngineNamespace, Name: name}}
	err := w.api.Patch(context.WithoutCancel(w.ctx), app, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		w.Errorf("remove the engine's finalizer: %v", err)
	}
}

// pauseEngine makes deletions wait; resumeEngine lets them go on.
func (w *world) pauseEngine()  { w.engine.idle <- true }
func (w *world) resumeEngine() { w.engine.idle <- false }

// report patches an Application's status, as an engine does.
func (w *world) report(cr *v1alpha1.GitOpsDeployment, status map[string]any) {
	w.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	w.must(err)
	app := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: w.EngineNamespace, Name: appName(cr)}}
	w.must(w.api.Patch(w.ctx, app, client.RawPatch(types.MergePatchType, patch)))
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	must(t, err)
	return text
}

// touch has a CR looked at again.
func (w *world) touch(o client.Object) {
	w.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, rand.Text())
	w.must(w.api.Patch(w.ctx, o, client.RawPatch(types.MergePatchType, patch)))
}

func (w *world) namespaceUID(name string) string {
	w.Helper()
	ns := &corev1.Namespace{}
	w.must(w.api.Get(w.ctx, client.ObjectKey{Name: name}, ns))
	return string(ns.UID)
}

// zero is an answer for Eventually: empty for zero.
func zero(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprint(n)
}

func appName(cr *v1alpha1.GitOpsDeployment) string {
	return domain.EngineApplicationName(domain.ApplicationID(cr.UID))
}

// create applies a new deployment.
func (w *world) create(d *v1alpha1.GitOpsDeployment) *v1alpha1.GitOpsDeployment {
	w.Helper()
	w.must(w.api.Create(w.ctx, d))
	return d
}

// deployed creates one and waits for its Application.
func (w *world) deployed(namespace, name string, modify ...testkit.Modify) *v1alpha1.GitOpsDeployment {
	w.Helper()
	d := w.create(testkit.Deployment(namespace, name, modify...))
	w.awaitApplication(d)
	return d
}

// edit changes the newest version of a deployment.
func (w *world) edit(d *v1alpha1.GitOpsDeployment, modify ...testkit.Modify) *v1alpha1.GitOpsDeployment {
	w.Helper()
	for {
		latest := w.get(d)
		for _, m := range modify {
			m(latest)
		}
		err := w.api.Update(w.ctx, latest)
		if apierrors.IsConflict(err) {
			continue
		}
		w.must(err)
		return latest
	}
}

func (w *world) get(d *v1alpha1.GitOpsDeployment) *v1alpha1.GitOpsDeployment {
	w.Helper()
	latest := &v1alpha1.GitOpsDeployment{}
	w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(d), latest))
	return latest
}

func (w *world) delete(d *v1alpha1.GitOpsDeployment) {
	w.Helper()
	w.must(w.api.Delete(w.ctx, d))
}

// application reads a deployment's Application, nil where there is none.
func (w *world) application(d *v1alpha1.GitOpsDeployment) *argov1alpha1.Application {
	w.Helper()
	app := &argov1alpha1.Application{}
	err := w.api.Get(w.ctx, client.ObjectKey{Namespace: w.EngineNamespace, Name: appName(d)}, app)
	if apierrors.IsNotFound(err) {
		return nil
	}
	w.must(err)
	return app
}

func (w *world) awaitApplication(d *v1alpha1.GitOpsDeployment) *argov1alpha1.Application {
	w.Helper()
	var app *argov1alpha1.Application
	testkit.Eventually(w.T, "Application of "+d.Name, func() string {
		if app = w.application(d); app == nil {
			return "none"
		}
		return ""
	})
	return app
}

// awaitGone waits until nothing of a deployment is left at any layer.
func (w *world) awaitGone(d *v1alpha1.GitOpsDeployment) {
	w.Helper()
	testkit.Eventually(w.T, "all of "+d.Name+" gone", func() string {
		if w.application(d) != nil {
			return "the Application is there"
		}
		for _, table := range []string{"application", "application_state", "deployment_to_application_mapping"} {
			column := "application_id"
			if table == "application" {
				column = "id"
			}
			if n := w.count("SELECT count(*) FROM "+table+" WHERE "+column+" = $1", string(d.UID)); n != 0 {
				return fmt.Sprintf("%d rows in %s", n, table)
			}
		}
		return ""
	})
}

// awaitQuiet waits until every operation is finished and its CR removed.
func (w *world) awaitQuiet() {
	w.Helper()
	testkit.Eventually(w.T, "no operation left", func() string {
		if n := w.count("SELECT count(*) FROM operation WHERE state IN ('Waiting', 'In_Progress')"); n != 0 {
			return fmt.Sprintf("%d unfinished rows", n)
		}
		var ops operationv1alpha1.OperationList
		w.must(w.api.List(w.ctx, &ops, client.InNamespace(w.EngineNamespace)))
		if len(ops.Items) != 0 {
			return fmt.Sprintf("%d Operation CRs", len(ops.Items))
		}
		return ""
	})
}

// awaitStatus waits until a deployment's status satisfies a look at it.
func (w *world) awaitStatus(d *v1alpha1.GitOpsDeployment, what string, look func(*v1alpha1.GitOpsDeployment) string) {
	w.Helper()
	testkit.Eventually(w.T, what, func() string { return look(w.get(d)) })
}

func condition(d *v1alpha1.GitOpsDeployment, kind v1alpha1.ConditionType) v1alpha1.Condition {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return v1alpha1.Condition{}
}

// shows looks for a condition that holds and mentions the words.
func shows(kind v1alpha1.ConditionType, words ...string) func(*v1alpha1.GitOpsDeployment) string {
	return func(d *v1alpha1.GitOpsDeployment) string {
		c := condition(d, kind)
		if c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("condition %s is %q", kind, c.Status)
		}
		if c.Reason != v1alpha1.ConditionReason(kind) {
			return fmt.Sprintf("reason is %s", c.Reason)
		}
		return mention(c.Message, words...)
	}
}

// resolved looks for a condition that held and holds no longer.
func resolved(kind v1alpha1.ConditionType) func(*v1alpha1.GitOpsDeployment) string {
	return func(d *v1alpha1.GitOpsDeployment) string {
		c := condition(d, kind)
		if c.Status != metav1.ConditionFalse || c.Reason != v1alpha1.ConditionReason(kind).Resolved() {
			return fmt.Sprintf("condition %s is %q with reason %q", kind, c.Status, c.Reason)
		}
		return ""
	}
}

// removeAll clears a namespace of what services react to, and deletes it.
func removeAll(t *testing.T, namespace string) {
	api, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Error(err)
		return
	}
	ctx := context.WithoutCancel(t.Context())
	unfinalize := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	for _, list := range []client.ObjectList{
		&v1alpha1.GitOpsDeploymentSyncRunList{}, &v1alpha1.GitOpsDeploymentManagedEnvironmentList{}, &v1alpha1.GitOpsDeploymentRepositoryCredentialList{},
		&v1alpha1.GitOpsDeploymentList{}, &argov1alpha1.ApplicationList{}, &operationv1alpha1.OperationList{},
	} {
		if err := api.List(ctx, list, client.InNamespace(namespace)); err != nil {
			t.Error(err)
			return
		}
		for _, o := range items(list) {
			if err := api.Patch(ctx, o, unfinalize); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
			if err := api.Delete(ctx, o); client.IgnoreNotFound(err) != nil {
				t.Error(err)
			}
		}
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	if err := api.Delete(ctx, ns); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		out = append(out, o.(client.Object))
		return nil
	})
	return out
}
