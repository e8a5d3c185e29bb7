// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

const (
	team     = "team-a"
	tenantA  = domain.TenantID("uid-of-namespace-team-a")
	tenantB  = domain.TenantID("uid-of-an-earlier-namespace-team-a")
	engineID = domain.InstanceID("engine-1")
	repo     = "https://git.example.com/team-a/shop"
)

type deploymentOption func(*v1alpha1.GitOpsDeployment)

// deployment is a valid automated deployment in namespace team-a, whose UID is
// made from its name.
func deployment(name string, options ...deploymentOption) *v1alpha1.GitOpsDeployment {
	cr := &v1alpha1.GitOpsDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec: v1alpha1.GitOpsDeploymentSpec{
			Source: v1alpha1.ApplicationSource{RepoURL: repo, Path: "deploy", TargetRevision: "main"},
			Type:   v1alpha1.DeploymentTypeAutomated,
		},
	}
	for _, o := range options {
		o(cr)
	}
	return cr
}

func withUID(uid string) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.UID = types.UID(uid) }
}

func withRepo(url string) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Spec.Source.RepoURL = url }
}

// withPath is an edit, so it also moves the generation on.
func withPath(p string) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Spec.Source.Path, cr.Generation = p, cr.Generation+1 }
}

func withRevision(r string) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Spec.Source.TargetRevision = r }
}

func withType(t v1alpha1.DeploymentType) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Spec.Type = t }
}

func withOptions(o ...v1alpha1.SyncOption) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) { cr.Spec.SyncPolicy = &v1alpha1.SyncPolicy{SyncOptions: o} }
}

func withDestination(environment, namespace string) deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) {
		cr.Spec.Destination = v1alpha1.ApplicationDestination{Environment: environment, Namespace: namespace}
	}
}

func beingDeleted() deploymentOption {
	return func(cr *v1alpha1.GitOpsDeployment) {
		cr.Finalizers = []string{v1alpha1.DeletionFinalizer}
		t := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
		cr.DeletionTimestamp = &t
	}
}

// wanted is the application that deployment(…) asks for, written down by hand
// so that the tests do not ask the code what is right.
func wanted(path string, options ...string) domain.ApplicationSpec {
	return domain.ApplicationSpec{
		RepoURL: repo, Path: path, TargetRevision: "main",
		Namespace: team, Automated: true, SyncOptions: options,
	}
}

type chainOption func(*store.Chain)

// chainOf is what the database holds of a deployment at path "deploy".
func chainOf(cr *v1alpha1.GitOpsDeployment, options ...chainOption) store.Chain {
	id := domain.ApplicationID(cr.UID)
	c := store.Chain{
		Link: store.Link{Application: id, Tenant: tenantA, Namespace: cr.Namespace, Name: cr.Name},
		Application: store.Application{
			ID: id, Tenant: tenantA, Name: cr.Name, Spec: wanted("deploy"),
			Instance: engineID, Environment: domain.LocalEnvironment(tenantA), Generation: 1, Version: 1,
		},
	}
	for _, o := range options {
		o(&c)
	}
	return c
}

func ofTenant(t domain.TenantID) chainOption {
	return func(c *store.Chain) {
		c.Link.Tenant, c.Application.Tenant = t, t
		c.Application.Environment = domain.LocalEnvironment(t)
	}
}

func atVersion(v int64) chainOption {
	return func(c *store.Chain) { c.Application.Version = v }
}

func onInstance(i domain.InstanceID) chainOption {
	return func(c *store.Chain) { c.Application.Instance = i }
}

func reporting(health string) chainOption {
	return func(c *store.Chain) {
		c.State = &domain.ApplicationState{Application: c.Application.ID, Tenant: c.Application.Tenant, EngineUID: "e", Sequence: 7, Health: health}
	}
}

func withOperation(id string, s domain.OperationState) chainOption {
	return func(c *store.Chain) {
		c.Operation = operation(id, c.Application.ID, s)
	}
}

func operation(id string, resource domain.ApplicationID, s domain.OperationState) *store.Operation {
	return &store.Operation{
		ID: domain.OperationID(id), Tenant: tenantA, Instance: engineID,
		ResourceType: domain.ResourceApplication, ResourceID: string(resource), State: s, Version: 1,
	}
}

// announcement is the operation that a decision asks for.
func announcement(id string, t domain.TenantID, resource domain.ApplicationID) store.NewOperation {
	return store.NewOperation{
		ID: domain.OperationID(id), Tenant: t, Instance: engineID,
		ResourceType: domain.ResourceApplication, ResourceID: string(resource),
	}
}

// counter makes operation ids op-1, op-2, … .
func counter() func() domain.OperationID {
	n := 0
	return func() domain.OperationID {
		n++
		return domain.OperationID(fmt.Sprintf("op-%d", n))
	}
}

type factsOption func(*deploymentFacts)

// factsOf a CR of a tenant that is settled on engine-1.
func factsOf(cr *v1alpha1.GitOpsDeployment, options ...factsOption) deploymentFacts {
	f := deploymentFacts{
		cr: cr, tenant: tenantA,
		placement: store.Placement{Instance: engineID, Namespace: "engine", Settled: true},
		quotas:    DefaultQuotas(),
		newID:     counter(),
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

func withChains(c ...store.Chain) factsOption {
	return func(f *deploymentFacts) { f.chains = c }
}

func unsettled() factsOption {
	return func(f *deploymentFacts) { f.placement.Settled = false }
}

func terminating() factsOption {
	return func(f *deploymentFacts) { f.terminating = true }
}

func withRemoval(s domain.OperationState) factsOption {
	return func(f *deploymentFacts) {
		f.removal = operation("earlier", domain.ApplicationID(f.cr.UID), s)
		switch s {
		case domain.OperationCompleted:
			f.removal.Message = domain.OperationRemoved
		case domain.OperationFailed:
			f.removal.Message = "not allowed"
		}
	}
}
