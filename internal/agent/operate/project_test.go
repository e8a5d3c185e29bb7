// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

const local = "https://kubernetes.default.svc"

func use(repository, namespace string) store.ProjectUse {
	return store.ProjectUse{Repository: repository, Environment: "tenant-a", Namespace: namespace}
}

func useIn(e domain.EnvironmentID, repository, namespace string, clusterResources bool) store.ProjectUse {
	return store.ProjectUse{Repository: repository, Environment: e, Namespace: namespace, ClusterResources: clusterResources}
}

func TestRenderProject(t *testing.T) {
	t.Parallel()
	denied := []metav1.GroupKind{
		{Group: "argoproj.io", Kind: "*"},
		{Group: "managed-gitops.redhat.com", Kind: "*"},
		{Group: "managedgitops.io", Kind: "*"},
		{Group: "rbac.authorization.k8s.io", Kind: "*"},
	}
	account := func(namespace string) argov1alpha1.DestinationServiceAccount {
		return argov1alpha1.DestinationServiceAccount{Server: local, Namespace: namespace, DefaultServiceAccount: namespace + ":weir-deployer"}
	}
	here := func(namespace string) argov1alpha1.ApplicationDestination {
		return argov1alpha1.ApplicationDestination{Server: local, Namespace: namespace}
	}
	there := func(name, namespace string) argov1alpha1.ApplicationDestination {
		return argov1alpha1.ApplicationDestination{Name: name, Namespace: namespace}
	}
	everything := []argov1alpha1.ClusterResource{{Group: "*", Kind: "*"}}
	for name, c := range map[string]struct {
		uses      []store.ProjectUse
		remaining []argov1alpha1.Application
		want      argov1alpha1.AppProjectSpec
	}{
		"one": {
			[]store.ProjectUse{use("https://a", "team-a")},
			nil,
			argov1alpha1.AppProjectSpec{
				SourceRepos: []string{"https://a"}, Destinations: []argov1alpha1.ApplicationDestination{here("team-a")},
				DestinationServiceAccounts: []argov1alpha1.DestinationServiceAccount{account("team-a")},
			},
		},
		"in order, and each once": {
			[]store.ProjectUse{use("https://c", "team-a"), use("https://a", "team-a"), use("https://c", "team-a"), use("https://b", "team-a")},
			nil,
			argov1alpha1.AppProjectSpec{
				SourceRepos: []string{"https://a", "https://b", "https://c"}, Destinations: []argov1alpha1.ApplicationDestination{here("team-a")},
				DestinationServiceAccounts: []argov1alpha1.DestinationServiceAccount{account("team-a")},
			},
		},
		"service accounts only on the engine's own cluster": {
			[]store.ProjectUse{useIn("uid-z", "https://a", "shop", false), use("https://a", "team-a"), useIn("uid-b", "https://a", "shop", false), useIn("uid-b", "https://a", "db", false)},
			nil,
			argov1alpha1.AppProjectSpec{
				SourceRepos: []string{"https://a"},
				Destinations: []argov1alpha1.ApplicationDestination{
					there("managed-env-uid-b", "db"), there("managed-env-uid-b", "shop"), there("managed-env-uid-z", "shop"), here("team-a"),
				},
				DestinationServiceAccounts: []argov1alpha1.DestinationServiceAccount{account("team-a")},
			},
		},
		"resources without a namespace": {
			[]store.ProjectUse{use("https://a", "team-a"), useIn("uid-b", "https://a", "shop", true), useIn("uid-c", "https://a", "shop", true)},
			nil,
			argov1alpha1.AppProjectSpec{
				SourceRepos: []string{"https://a"},
				Destinations: []argov1alpha1.ApplicationDestination{
					there("managed-env-uid-b", "shop"), there("managed-env-uid-c", "shop"), here("team-a"),
				},
				ClusterResourceWhitelist:   everything,
				DestinationServiceAccounts: []argov1alpha1.DestinationServiceAccount{account("team-a")},
			},
		},
		"what remains of an application that goes": {
			[]store.ProjectUse{use("https://a", "team-a")},
			[]argov1alpha1.Application{
				*RenderApplication(application(), instance),
				{Spec: argov1alpha1.ApplicationSpec{Destination: there("managed-env-uid-b", "old")}},
			},
			argov1alpha1.AppProjectSpec{
				SourceRepos:                []string{"https://a", "https://git.example.com/shop"},
				Destinations:               []argov1alpha1.ApplicationDestination{there("managed-env-uid-b", "old"), here("team-a")},
				DestinationServiceAccounts: []argov1alpha1.DestinationServiceAccount{account("team-a")},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.want.Description = "What one tenant may deploy. Written by Weir; changes are undone."
			c.want.NamespaceResourceBlacklist = denied
			want := &argov1alpha1.AppProject{
				ObjectMeta: metav1.ObjectMeta{Namespace: "argocd", Name: "tenant-tenant-a", Labels: map[string]string{"managedgitops.io/tenant": "tenant-a"}},
				Spec:       c.want,
			}
			got := RenderProject("tenant-a", instance, c.uses, c.remaining)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			reversed := slices.Clone(c.uses)
			slices.Reverse(reversed)
			if diff := cmp.Diff(got, RenderProject("tenant-a", instance, reversed, c.remaining)); diff != "" {
				t.Errorf("the order of the rows makes a difference:\n%s", diff)
			}
		})
	}
}

// ordered is a fake engine that many use at once, and that keeps the order of what
// is done to Applications and projects.
type ordered struct {
	*fakeEngine
	mu    sync.Mutex
	order []string
}

func (o *ordered) do(what string) func() {
	o.mu.Lock()
	o.order = append(o.order, what)
	return o.mu.Unlock
}

func (o *ordered) ApplicationsOf(ctx context.Context, t domain.TenantID) ([]argov1alpha1.Application, error) {
	defer o.do("list")()
	return o.fakeEngine.ApplicationsOf(ctx, t)
}

func (o *ordered) Project(ctx context.Context, name string) (*argov1alpha1.AppProject, error) {
	defer o.do("read")()
	return o.fakeEngine.Project(ctx, name)
}

func (o *ordered) PutProject(ctx context.Context, have, want *argov1alpha1.AppProject) error {
	defer o.do("put")()
	return o.fakeEngine.PutProject(ctx, have, want)
}

func (o *ordered) DeleteProject(ctx context.Context, have *argov1alpha1.AppProject) error {
	defer o.do("delete")()
	return o.fakeEngine.DeleteProject(ctx, have)
}

// uses is a table of what tenants' applications use, which many change at once.
type uses struct {
	mu   sync.Mutex
	rows []store.ProjectUse
}

func (u *uses) add(row store.ProjectUse) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.rows = append(u.rows, row)
}

func (u *uses) ProjectUses(context.Context, domain.TenantID) ([]store.ProjectUse, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.rows), nil
}

func projectsOf(rows ...store.ProjectUse) (*Projects, *ordered, *uses) {
	engine := &ordered{fakeEngine: &fakeEngine{applications: map[string]*argov1alpha1.Application{}, projects: map[string]*argov1alpha1.AppProject{}}}
	table := &uses{rows: rows}
	return &Projects{Engine: engine, Store: table, Instance: instance}, engine, table
}

func wantingRepo(url string) *argov1alpha1.Application {
	row := application()
	row.Spec.RepoURL = url
	return RenderApplication(row, instance)
}

func TestAProjectGrowsOnlyWhereItHasTo(t *testing.T) {
	t.Parallel()
	p, engine, table := projectsOf(use("https://a", "team-a"))
	puts := func() int {
		return len(slices.DeleteFunc(slices.Clone(engine.order), func(s string) bool { return s != "put" }))
	}
	for range 2 {
		if err := p.Allow(t.Context(), "tenant-a", wantingRepo("https://a")); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "writes", 1, puts())
	table.add(use("https://b", "team-a"))
	if err := p.Allow(t.Context(), "tenant-a", wantingRepo("https://a")); err != nil {
		t.Fatal(err)
	}
	expect(t, "writes for what is allowed already", 1, puts())
	if err := p.Allow(t.Context(), "tenant-a", wantingRepo("https://b")); err != nil {
		t.Fatal(err)
	}
	expect(t, "repositories", []string{"https://a", "https://b"}, engine.projects["tenant-tenant-a"].Spec.SourceRepos)
	for range 2 {
		if err := p.Refresh(t.Context(), "tenant-a"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "writes in all", 2, puts())
	// Somebody else's change is undone.
	engine.projects["tenant-tenant-a"].Spec.SourceRepos = []string{"*"}
	if err := p.Refresh(t.Context(), "tenant-a"); err != nil {
		t.Fatal(err)
	}
	expect(t, "repositories", []string{"https://a", "https://b"}, engine.projects["tenant-tenant-a"].Spec.SourceRepos)
}

func TestAProjectShrinksWithTheLastThatNeededIt(t *testing.T) {
	t.Parallel()
	p, engine, table := projectsOf(use("https://git.example.com/shop", "team-a"))
	engine.applications[appName] = RenderApplication(application(), instance)
	if err := p.Refresh(t.Context(), "tenant-a"); err != nil {
		t.Fatal(err)
	}
	table.rows = nil
	if err := p.Refresh(t.Context(), "tenant-a"); err != nil {
		t.Fatal(err)
	}
	expect(t, "repositories while the Application is still there", []string{"https://git.example.com/shop"}, engine.projects["tenant-tenant-a"].Spec.SourceRepos)
	delete(engine.applications, appName)
	for range 2 {
		if err := p.Refresh(t.Context(), "tenant-a"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "projects", 0, len(engine.projects))
	expect(t, "deleted", 1, len(slices.DeleteFunc(engine.order, func(s string) bool { return s != "delete" })))
}

// Many operations of one tenant at once, each for a repository of its own: the
// project allows all of them in the end, and each when its turn has come.
func TestOperationsOfOneTenantAtOnceEndWithAll(t *testing.T) {
	t.Parallel()
	p, engine, table := projectsOf()
	var want []string
	var all sync.WaitGroup
	for i := range 30 {
		repository := "https://git.example.com/" + string(rune('A'+i))
		want = append(want, repository)
		all.Go(func() {
			table.add(use(repository, "team-a"))
			if err := p.Allow(t.Context(), "tenant-a", wantingRepo(repository)); err != nil {
				t.Error(err)
			}
			engine.mu.Lock()
			defer engine.mu.Unlock()
			if have := engine.projects["tenant-tenant-a"]; have == nil || !slices.Contains(have.Spec.SourceRepos, repository) {
				t.Errorf("%s is not allowed after Allow", repository)
			}
		})
	}
	all.Wait()
	slices.Sort(want)
	expect(t, "repositories", want, engine.projects["tenant-tenant-a"].Spec.SourceRepos)
}

func TestAProjectIsWrittenBeforeItsApplicationAndAfterItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, wanting("deploy"), announced("1"))
	w.engine.failNext("PutProject", errors.New("away"))
	if w.step(t) == nil {
		t.Error("no error")
	}
	expect(t, "created without its project", 0, len(w.engine.applications))
	w.mustStep(t)
	expect(t, "projects", 1, len(w.engine.projects))

	delete(w.store.applications, appID)
	announced("2")(w)
	w.mustStep(t)
	expect(t, "projects while the engine removes", 1, len(w.engine.projects))
	delete(w.engine.applications, appName)
	w.mustStep(t)
	expect(t, "projects", 0, len(w.engine.projects))
}

func TestProjectErrorsAreHandedOn(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, method := range []string{"Project", "ApplicationsOf", "PutProject"} {
		p, engine, _ := projectsOf(use("https://a", "team-a"))
		engine.failNext(method, away)
		if err := p.Allow(t.Context(), "tenant-a", wantingRepo("https://a")); !errors.Is(err, away) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}
