// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

type rowOption func(*store.Application)

// application is a row of a manual deployment without options.
func application(options ...rowOption) store.Application {
	row := store.Application{
		ID: appID, Tenant: "tenant-a", Name: "shop", Instance: instance.ID, Environment: "tenant-a",
		Spec: domain.ApplicationSpec{RepoURL: "https://git.example.com/shop", Path: "deploy", TargetRevision: "main", Namespace: "team-a"},
	}
	for _, o := range options {
		o(&row)
	}
	return row
}

func atPath(p string) rowOption { return func(r *store.Application) { r.Spec.Path = p } }

func automated(r *store.Application) { r.Spec.Automated = true }

func withOptions(o ...string) rowOption { return func(r *store.Application) { r.Spec.SyncOptions = o } }

func TestRenderApplication(t *testing.T) {
	t.Parallel()
	whole := func(options ...func(*argov1alpha1.Application)) *argov1alpha1.Application {
		app := &argov1alpha1.Application{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "argocd", Name: appName,
				Labels:     map[string]string{"managedgitops.io/tenant": "tenant-a", "managedgitops.io/application": appID},
				Finalizers: []string{"resources-finalizer.argocd.argoproj.io"},
			},
			Spec: argov1alpha1.ApplicationSpec{
				Project:     "tenant-tenant-a",
				Source:      &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/shop", Path: "deploy", TargetRevision: "main"},
				Destination: argov1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: "team-a"},
			},
		}
		for _, o := range options {
			o(app)
		}
		return app
	}
	policy := func(p argov1alpha1.SyncPolicy) func(*argov1alpha1.Application) {
		return func(app *argov1alpha1.Application) { app.Spec.SyncPolicy = &p }
	}
	// What was emptied by accident is not pruned.
	byItself := &argov1alpha1.SyncPolicyAutomated{Prune: true, SelfHeal: true, AllowEmpty: false}
	noEngine := instance
	noEngine.Kind = store.EngineNone
	builtIn := instance
	builtIn.Kind = store.EngineBuiltIn
	for name, c := range map[string]struct {
		row      store.Application
		instance store.Instance
		want     *argov1alpha1.Application
	}{
		"manual":                              {application(), instance, whole()},
		"automated":                           {application(automated), instance, whole(policy(argov1alpha1.SyncPolicy{Automated: byItself}))},
		"options":                             {application(withOptions("PruneLast=true")), instance, whole(policy(argov1alpha1.SyncPolicy{SyncOptions: []string{"PruneLast=true"}}))},
		"automated with options":              {application(automated, withOptions("a", "b")), instance, whole(policy(argov1alpha1.SyncPolicy{Automated: byItself, SyncOptions: []string{"a", "b"}}))},
		"built-in engine":                     {application(), builtIn, whole()},
		"nobody would take the finalizer off": {application(), noEngine, whole(withoutFinalizers)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, RenderApplication(c.row, c.instance)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Tenant text never becomes a name, a label or a project.
func TestRenderKeepsTenantTextOutOfIdentities(t *testing.T) {
	t.Parallel()
	hostile := application(func(r *store.Application) {
		r.Name = "../../argocd"
		r.Spec.Environment = "tenant-tenant-a"
		r.Spec.RepoURL = "https://git.example.com/*"
	})
	app := RenderApplication(hostile, instance)
	expect(t, "name", appName, app.Name)
	expect(t, "namespace", "argocd", app.Namespace)
	expect(t, "project", "tenant-tenant-a", app.Spec.Project)
	expect(t, "labels", map[string]string{argov1alpha1.TenantLabel: "tenant-a", argov1alpha1.ApplicationLabel: appID}, app.Labels)
	expect(t, "cluster", argov1alpha1.ApplicationDestination{Server: localServer, Namespace: "team-a"}, app.Spec.Destination)
}
