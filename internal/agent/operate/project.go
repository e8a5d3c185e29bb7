// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// ProjectEngine is what keeping projects needs of an engine's namespace.
type ProjectEngine interface {
	// Project gives an AppProject that is at least as new as our own last write to
	// it, nil where there is none.
	Project(ctx context.Context, name string) (*argov1alpha1.AppProject, error)
	// PutProject creates the project where have is nil, and otherwise replaces it
	// unless somebody changed it meanwhile: domain.ErrConflict.
	PutProject(ctx context.Context, have, want *argov1alpha1.AppProject) error
	DeleteProject(ctx context.Context, have *argov1alpha1.AppProject) error
	// ApplicationsOf lists a tenant's Applications as the cache has them.
	ApplicationsOf(ctx context.Context, t domain.TenantID) ([]argov1alpha1.Application, error)
}

// Projects keeps one AppProject for each tenant: what its Applications may
// deploy, and from where to where. It names exactly what the tenant's rows use.
//
// A project grows before the Application that needs it, and shrinks after the
// last one that needed it has gone. Whether it has to grow is seen from the
// project itself, so an Application from a repository that the tenant uses
// already costs nothing here.
//
// What is written was read from the rows under the tenant's lock, so of two
// operations of one tenant the later writes what is at least as new.
type Projects struct {
	Engine   ProjectEngine
	Store    store.Projects
	Instance store.Instance

	locks sync.Map // domain.TenantID → *sync.Mutex
}

// Allow makes the tenant's project allow what an Application needs.
func (p *Projects) Allow(ctx context.Context, t domain.TenantID, want *argov1alpha1.Application) error {
	have, err := p.Engine.Project(ctx, want.Spec.Project)
	if err != nil {
		return fmt.Errorf("read AppProject: %w", err)
	}
	if have != nil && allows(have, want) {
		return nil
	}
	return p.Refresh(ctx, t)
}

// Refresh makes the tenant's project equal to what its rows and its remaining
// Applications use.
func (p *Projects) Refresh(ctx context.Context, t domain.TenantID) error {
	lock, _ := p.locks.LoadOrStore(t, &sync.Mutex{})
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()

	uses, err := p.Store.ProjectUses(ctx, t)
	if err != nil {
		return err
	}
	remaining, err := p.Engine.ApplicationsOf(ctx, t)
	if err != nil {
		return fmt.Errorf("list the tenant's Applications: %w", err)
	}
	have, err := p.Engine.Project(ctx, domain.EngineProjectName(t))
	if err != nil {
		return fmt.Errorf("read AppProject: %w", err)
	}
	if len(uses) == 0 && len(remaining) == 0 {
		if have == nil {
			return nil
		}
		if err := p.Engine.DeleteProject(ctx, have); err != nil {
			return fmt.Errorf("delete AppProject: %w", err)
		}
		return nil
	}
	want := RenderProject(t, p.Instance, uses, remaining)
	if have != nil && equality.Semantic.DeepEqual(have.Spec, want.Spec) && have.Labels[argov1alpha1.TenantLabel] == string(t) {
		return nil
	}
	if err := p.Engine.PutProject(ctx, have, want); err != nil {
		return fmt.Errorf("write AppProject: %w", err)
	}
	return nil
}

// RenderProject gives the AppProject of a tenant. It is pure.
//
// Engines read the entries of these lists as patterns. There are none here: a
// repository with a character that stands for others is refused at intake, names
// of namespaces and clusters cannot have one.
func RenderProject(t domain.TenantID, i store.Instance, uses []store.ProjectUse, remaining []argov1alpha1.Application) *argov1alpha1.AppProject {
	project := &argov1alpha1.AppProject{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.Namespace, Name: domain.EngineProjectName(t),
			Labels: map[string]string{argov1alpha1.TenantLabel: string(t)},
		},
		Spec: argov1alpha1.AppProjectSpec{
			Description:                "What one tenant may deploy. Written by Weir; changes are undone.",
			NamespaceResourceBlacklist: deniedKinds(),
		},
	}
	spec := &project.Spec
	for _, u := range uses {
		spec.SourceRepos = append(spec.SourceRepos, u.Repository)
		spec.Destinations = append(spec.Destinations, destinationOf(t, u.Environment, u.Namespace))
		if u.ClusterResources {
			spec.ClusterResourceWhitelist = []argov1alpha1.ClusterResource{{Group: "*", Kind: "*"}}
		}
	}
	for _, app := range remaining {
		if app.Spec.Source != nil {
			spec.SourceRepos = append(spec.SourceRepos, app.Spec.Source.RepoURL)
		}
		spec.Destinations = append(spec.Destinations, app.Spec.Destination)
	}
	slices.Sort(spec.SourceRepos)
	spec.SourceRepos = slices.Compact(spec.SourceRepos)
	slices.SortFunc(spec.Destinations, compareDestinations)
	spec.Destinations = slices.Compact(spec.Destinations)
	for _, d := range spec.Destinations {
		if d.Server == localServer {
			spec.DestinationServiceAccounts = append(spec.DestinationServiceAccounts, argov1alpha1.DestinationServiceAccount{
				Server: d.Server, Namespace: d.Namespace, DefaultServiceAccount: d.Namespace + ":" + domain.DeployerServiceAccount,
			})
		}
	}
	return project
}

// deniedKinds are kinds with a namespace that no tenant's repository may hold:
// by them it could reach for more than it was given.
func deniedKinds() []metav1.GroupKind {
	return []metav1.GroupKind{
		{Group: "argoproj.io", Kind: "*"},
		{Group: "managed-gitops.redhat.com", Kind: "*"},
		{Group: "managedgitops.io", Kind: "*"},
		{Group: "rbac.authorization.k8s.io", Kind: "*"},
	}
}

// destinationOf is where an application of an environment goes: by the server's
// address on the engine's own cluster, by the name of its Secret elsewhere.
func destinationOf(t domain.TenantID, e domain.EnvironmentID, namespace string) argov1alpha1.ApplicationDestination {
	if e == domain.LocalEnvironment(t) {
		return argov1alpha1.ApplicationDestination{Server: localServer, Namespace: namespace}
	}
	return argov1alpha1.ApplicationDestination{Name: domain.ClusterSecretName(e), Namespace: namespace}
}

func compareDestinations(a, b argov1alpha1.ApplicationDestination) int {
	for _, c := range []int{strings.Compare(a.Server, b.Server), strings.Compare(a.Name, b.Name), strings.Compare(a.Namespace, b.Namespace)} {
		if c != 0 {
			return c
		}
	}
	return 0
}

func allows(p *argov1alpha1.AppProject, app *argov1alpha1.Application) bool {
	return slices.Contains(p.Spec.SourceRepos, app.Spec.Source.RepoURL) && slices.Contains(p.Spec.Destinations, app.Spec.Destination)
}
