// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

const appID = domain.ApplicationID("0b8d8b0e-6f4e-4d0f-9a53-2d6f7f0a9d11")

type appOption func(*argov1alpha1.Application)

// application is an engine's Application of which nothing has been said yet.
func application(options ...appOption) *argov1alpha1.Application {
	app := &argov1alpha1.Application{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "argocd", Name: domain.EngineApplicationName(appID), UID: "engine-uid", ResourceVersion: "41",
			Labels: map[string]string{argov1alpha1.TenantLabel: "tenant-a"},
		},
		Spec: argov1alpha1.ApplicationSpec{
			Source:      &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/shop", Path: "deploy", TargetRevision: "main"},
			Destination: argov1alpha1.ApplicationDestination{Server: "https://kubernetes.default.svc", Namespace: "team-a"},
		},
	}
	for _, o := range options {
		o(app)
	}
	return app
}

func named(name string) appOption { return func(a *argov1alpha1.Application) { a.Name = name } }

func atVersion(v string) appOption {
	return func(a *argov1alpha1.Application) { a.ResourceVersion = v }
}

func withUID(uid types.UID) appOption {
	return func(a *argov1alpha1.Application) { a.UID = uid }
}

func synced(revision string) appOption {
	return func(a *argov1alpha1.Application) {
		a.Status.Sync = argov1alpha1.SyncStatus{Status: argov1alpha1.SyncStatusSynced, Revision: revision}
	}
}

func healthy(s argov1alpha1.HealthStatusCode, message string) appOption {
	return func(a *argov1alpha1.Application) { a.Status.Health.Status, a.Status.Health.Message = s, message }
}

func withConditions(c ...argov1alpha1.ApplicationCondition) appOption {
	return func(a *argov1alpha1.Application) { a.Status.Conditions = c }
}

// said is what an engine reported of application(), before any detail.
func said(health, sync string, options ...func(*domain.ApplicationState)) domain.ApplicationState {
	s := domain.ApplicationState{
		Application: appID, Tenant: "tenant-a", EngineUID: "engine-uid", Sequence: 41, Health: health, Sync: sync,
		Detail: domain.StateDetail{
			Source:      domain.ReconciledSource{RepoURL: "https://git.example.com/shop", Path: "deploy", Branch: "main"},
			Destination: domain.ReconciledDestination{Namespace: "team-a"},
		},
	}
	for _, o := range options {
		o(&s)
	}
	return s
}

func TestReduce(t *testing.T) {
	t.Parallel()
	comparison := argov1alpha1.ApplicationCondition{Type: argov1alpha1.ConditionComparisonError, Message: "no such path", LastTransitionTime: &metav1.Time{Time: time.Unix(9, 0)}}
	for name, c := range map[string]struct {
		app  *argov1alpha1.Application
		want domain.ApplicationState
	}{
		"synced and healthy": {
			application(synced("4f0c"), healthy("Healthy", "all pods run")),
			said("Healthy", "Synced", func(s *domain.ApplicationState) { s.Revision, s.HealthMessage = "4f0c", "all pods run" }),
		},
		"only its health is known": {application(healthy("Missing", "")), said("Missing", "Unknown")},
		"only its sync is known":   {application(synced("")), said("Unknown", "Synced")},
		"only a condition": {
			application(withConditions(comparison)),
			said("Unknown", "Unknown", func(s *domain.ApplicationState) {
				s.Detail.Conditions = []domain.EngineCondition{{Type: "ComparisonError", Message: "no such path"}}
			}),
		},
		"conditions in the engine's order": {
			application(synced(""), withConditions(argov1alpha1.ApplicationCondition{Type: "SyncError", Message: "s"}, comparison)),
			said("Unknown", "Synced", func(s *domain.ApplicationState) {
				s.Detail.Conditions = []domain.EngineCondition{{Type: "SyncError", Message: "s"}, {Type: "ComparisonError", Message: "no such path"}}
			}),
		},
		"compared to what it was before an edit": {
			application(synced("4f0c"), func(a *argov1alpha1.Application) {
				a.Status.Sync.ComparedTo = argov1alpha1.ComparedTo{
					Source:      &argov1alpha1.ApplicationSource{RepoURL: "https://git.example.com/old", Path: "before", TargetRevision: "v1"},
					Destination: argov1alpha1.ApplicationDestination{Name: "cluster-0b8d", Namespace: "elsewhere"},
				}
			}),
			said("Unknown", "Synced", func(s *domain.ApplicationState) {
				s.Revision = "4f0c"
				s.Detail.Source = domain.ReconciledSource{RepoURL: "https://git.example.com/old", Path: "before", Branch: "v1"}
				s.Detail.Destination.Namespace = "elsewhere"
			}),
		},
		"no source at all": {
			application(synced(""), func(a *argov1alpha1.Application) { a.Spec.Source = nil }),
			said("Unknown", "Synced", func(s *domain.ApplicationState) { s.Detail.Source = domain.ReconciledSource{} }),
		},
		"of nobody's": {
			application(synced(""), func(a *argov1alpha1.Application) { a.Labels = nil }),
			said("Unknown", "Synced", func(s *domain.ApplicationState) { s.Tenant = "" }),
		},
		"resources, and only what tenants see of them": {
			application(synced(""), func(a *argov1alpha1.Application) {
				a.Status.Resources = []argov1alpha1.ResourceStatus{
					{
						Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "team-a", Name: "shop", Status: "OutOfSync", SyncWave: 3, RequiresPruning: true,
						Health: &argov1alpha1.HealthStatus{Status: "Degraded", Message: "crashing", LastTransitionTime: &metav1.Time{Time: time.Unix(9, 0)}},
					},
					{Version: "v1", Kind: "ConfigMap", Name: "settings", Status: "Synced", Hook: true},
				}
			}),
			said("Unknown", "Synced", func(s *domain.ApplicationState) {
				s.Detail.Resources = json.RawMessage(`[{"group":"apps","version":"v1","kind":"Deployment","namespace":"team-a","name":"shop","status":"OutOfSync","health":{"status":"Degraded","message":"crashing"}},` +
					`{"version":"v1","kind":"ConfigMap","name":"settings","status":"Synced"}]`)
			}),
		},
		"a running sync, before anything else is known": {
			application(func(a *argov1alpha1.Application) {
				a.Status.OperationState = &argov1alpha1.OperationState{
					Phase: argov1alpha1.OperationRunning, Message: "waiting for healthy state", RetryCount: 1,
					Operation: argov1alpha1.Operation{Sync: &argov1alpha1.SyncOperation{Revision: "4f0c", Prune: true}},
					StartedAt: &metav1.Time{Time: time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)},
				}
			}),
			said("Unknown", "Unknown", func(s *domain.ApplicationState) {
				s.Detail.OperationState = json.RawMessage(`{"operation":{"sync":{"revision":"4f0c","prune":true}},"phase":"Running","message":"waiting for healthy state","startedAt":"2026-03-02T09:00:00Z","retryCount":1}`)
			}),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := c.app.DeepCopy()
			got, spoken, err := Reduce(c.app)
			if err != nil || !spoken {
				t.Fatalf("said %v: %v", spoken, err)
			}
			if diff := cmp.Diff(c.want, got, cmp.Transformer("text", func(m json.RawMessage) string { return string(m) })); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, c.app); diff != "" {
				t.Errorf("reducing changed the Application:\n%s", diff)
			}
		})
	}
}

func TestReduceSaysNothing(t *testing.T) {
	t.Parallel()
	for name, app := range map[string]*argov1alpha1.Application{
		"before the engine does":        application(),
		"not even before it is written": application(atVersion("")),
		"of what is not ours":           application(synced("4f0c"), named("guestbook")),
		"of what is nearly ours":        application(synced("4f0c"), named("gitopsdepl-guestbook")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, spoken, err := Reduce(app); spoken || err != nil {
				t.Errorf("got %+v, %v, %v", got, spoken, err)
			}
		})
	}
}

// A report that cannot be put in order must not be stored as if it could.
func TestReduceNeedsAVersionThatIsANumber(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"", "abc", "1.5", "99999999999999999999"} {
		_, spoken, err := Reduce(application(synced(""), atVersion(version)))
		if spoken || err == nil || !strings.Contains(err.Error(), "resourceVersion") {
			t.Errorf("resourceVersion %q: said %v, %v; want an error that names it", version, spoken, err)
		}
	}
}

func TestReduceKeepsTheLastOfTheHistory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, historyShown, historyShown + 1, 40} {
		app := application(synced(""))
		for i := range n {
			app.Status.History = append(app.Status.History, argov1alpha1.RevisionHistory{ID: int64(i), Revision: fmt.Sprint("r", i)})
		}
		got, _, err := Reduce(app)
		if err != nil {
			t.Fatal(err)
		}
		var entries []argov1alpha1.RevisionHistory
		if len(got.Detail.History) > 0 {
			if err := json.Unmarshal(got.Detail.History, &entries); err != nil {
				t.Fatal(err)
			}
		}
		if len(entries) != min(n, historyShown) {
			t.Errorf("%d of %d entries shown", len(entries), n)
		}
		for i, e := range entries {
			if want := int64(n - len(entries) + i); e.ID != want {
				t.Errorf("of %d entries, number %d shown is %d; want %d", n, i, e.ID, want)
			}
		}
	}
}
