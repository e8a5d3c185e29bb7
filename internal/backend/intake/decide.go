// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"reflect"
	"slices"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// deploymentFacts is all that the decision about one name looks at.
type deploymentFacts struct {
	// cr is nil where there is no CR under the name.
	cr *v1alpha1.GitOpsDeployment
	// tenant is the UID of the CR's namespace as it is now; terminating says that the
	// namespace is going away.
	tenant      domain.TenantID
	terminating bool

	chains    []store.Chain
	placement store.Placement
	// removal is the newest operation on a CR that is being deleted and has no
	// chain any more.
	removal *store.Operation

	// environment is what spec.destination.environment names, nil where it names
	// none.
	environment *environmentFacts

	// older is how many deployments of the namespace are older than this one.
	older  int
	quotas Quotas

	policy Policy
	newID  func() domain.OperationID
}

// environmentFacts are what is known of the environment that a deployment names.
type environmentFacts struct {
	// row is nil where there is no such environment, or none that is connected;
	// problem then says which.
	row     *store.Environment
	problem string
}

// deploymentDecision is what follows from the facts.
type deploymentDecision struct {
	// change is nil where the rows are as they should be.
	change *store.Change
	// chain is the CR's own chain as it is once the change is written; nil where
	// the CR has none.
	chain *store.Chain
	// verdict is nil, or why the CR is not (fully) carried out: a
	// *domain.Refusal or *domain.Waiting for the tenant to read.
	verdict error
	// release says that nothing of the CR is left, so its finalizer can go.
	release bool
}

// decideDeployment says what the rows under one name should be. It is pure.
func decideDeployment(f deploymentFacts) deploymentDecision {
	var own *store.Chain
	var change store.Change
	for i, c := range f.chains {
		if f.cr != nil && c.Link.Application == domain.ApplicationID(f.cr.UID) && c.Link.Tenant == f.tenant {
			own = &f.chains[i]
			continue
		}
		// Another UID under the same name is another object: it goes first, in the
		// same transaction, so that nothing of it can be taken for the new one's.
		remove(&change, c, f.newID)
	}
	switch {
	case f.cr == nil:
		return deploymentDecision{change: orNil(change)}
	case !f.cr.DeletionTimestamp.IsZero():
		return decideDeletion(f, own, change)
	default:
		return decideLive(f, own, change)
	}
}

// decideDeletion removes the rows of a CR that is on its way out. A CR with our
// finalizer stays until the operation that followed has ended.
func decideDeletion(f deploymentFacts, own *store.Chain, change store.Change) deploymentDecision {
	if own != nil {
		remove(&change, *own, f.newID)
	}
	last := f.removal
	switch {
	case removes(change, domain.ApplicationID(f.cr.UID)):
		return deploymentDecision{change: &change, verdict: waitForResources()}
	case last != nil && last.State == domain.OperationCompleted && last.Message == domain.OperationRemoved:
		return deploymentDecision{change: orNil(change), release: true}
	case last != nil && last.State == domain.OperationFailed:
		return deploymentDecision{change: orNil(change), verdict: &domain.Waiting{For: "the engine, which could not remove what it deployed: " + last.Message}}
	case last != nil && !last.State.Final():
		return deploymentDecision{change: orNil(change), verdict: waitForResources()}
	case f.placement.Instance == "" || !f.placement.Settled && f.cr.Status.ObservedGeneration == 0:
		// There is no engine, or the tenant never had an application and nobody
		// ever looked at this CR: nothing of it was deployed.
		return deploymentDecision{change: orNil(change), release: true}
	default:
		// The rows went without an operation that saw the end of it: by another
		// hand, or in an older database. One more operation makes sure.
		change.Announce = append(change.Announce, store.NewOperation{
			ID: f.newID(), Tenant: f.tenant, Instance: f.placement.Instance,
			ResourceType: domain.ResourceApplication, ResourceID: string(f.cr.UID),
		})
		return deploymentDecision{change: &change, verdict: waitForResources()}
	}
}

func waitForResources() error {
	return &domain.Waiting{For: "the engine to remove what it deployed"}
}

func decideLive(f deploymentFacts, own *store.Chain, change store.Change) deploymentDecision {
	spec, err := desiredApplication(f.cr, f.policy)
	if err != nil {
		// What was deployed before stays as it was: a typing error must not
		// take a running application away.
		return deploymentDecision{change: orNil(change), chain: own, verdict: err}
	}
	environment, err := destination(f, &spec)
	if err != nil {
		return deploymentDecision{change: orNil(change), chain: own, verdict: err}
	}
	if f.terminating {
		return deploymentDecision{change: orNil(change), chain: own, verdict: &domain.Waiting{For: "its namespace, which is being deleted"}}
	}
	if own == nil {
		if err := beyond(QuotaDeployments, "GitOpsDeployments", f.older, f.quotas.Deployments); err != nil {
			return deploymentDecision{change: orNil(change), verdict: err}
		}
	}
	if own != nil && own.Application.Spec.Equal(spec) && own.Application.Environment == environment {
		return deploymentDecision{change: orNil(change), chain: own}
	}

	row := store.Application{
		ID: domain.ApplicationID(f.cr.UID), Tenant: f.tenant, Name: f.cr.Name,
		Spec: spec, Instance: f.placement.Instance, Environment: environment,
		Generation: f.cr.Generation,
	}
	after := store.Chain{Link: store.Link{Application: row.ID, Tenant: f.tenant, Namespace: f.cr.Namespace, Name: f.cr.Name}}
	if own == nil {
		change.Insert = &store.NewApplication{Application: row, Link: after.Link}
	} else {
		row.Version, row.Instance = own.Application.Version, own.Application.Instance
		if own.Application.Environment != environment {
			change.LeavesEnvironment = f.tenant
		}
		after.State = own.State
		change.Update = &row
	}
	after.Application = row
	if !f.placement.Settled {
		change.Tenant = &store.Tenant{ID: f.tenant, Namespace: f.cr.Namespace, Instance: row.Instance}
	}
	change.Announce = append(change.Announce, store.NewOperation{
		ID: f.newID(), Tenant: f.tenant, Instance: row.Instance,
		ResourceType: domain.ResourceApplication, ResourceID: string(row.ID),
	})
	return deploymentDecision{change: &change, chain: &after}
}

// destination says which environment an application goes to, and holds the spec
// to what the environment allows.
func destination(f deploymentFacts, spec *domain.ApplicationSpec) (domain.EnvironmentID, error) {
	if spec.Environment == "" {
		return domain.LocalEnvironment(f.tenant), nil
	}
	e := f.environment
	if e == nil || e.row == nil {
		problem := "is not there"
		if e != nil {
			problem = e.problem
		}
		return "", &domain.Waiting{For: "GitOpsDeploymentManagedEnvironment " + spec.Environment + ", which " + problem}
	}
	if allowed := e.row.Credentials.Namespaces; len(allowed) > 0 && !slices.Contains(allowed, spec.Namespace) {
		return "", &domain.Refusal{
			Field: "spec.destination.namespace", Problem: "is not one of the namespaces that GitOpsDeploymentManagedEnvironment " + spec.Environment + " lists",
			Remedy: "use one of them, or add it to spec.namespaces of the environment",
		}
	}
	// Automated only where both sides want it.
	spec.Automated = spec.Automated && e.row.AllowAutomated
	return e.row.ID, nil
}

func remove(c *store.Change, chain store.Chain, newID func() domain.OperationID) {
	if chain.Application.Environment != domain.LocalEnvironment(chain.Application.Tenant) {
		c.LeavesEnvironment = chain.Application.Tenant
	}
	c.Remove = append(c.Remove, store.ApplicationRef{ID: chain.Application.ID, Tenant: chain.Application.Tenant})
	c.Announce = append(c.Announce, store.NewOperation{
		ID: newID(), Tenant: chain.Application.Tenant, Instance: chain.Application.Instance,
		ResourceType: domain.ResourceApplication, ResourceID: string(chain.Application.ID),
	})
}

func removes(c store.Change, id domain.ApplicationID) bool {
	return slices.ContainsFunc(c.Remove, func(r store.ApplicationRef) bool { return r.ID == id })
}

func orNil(c store.Change) *store.Change {
	if reflect.ValueOf(c).IsZero() {
		return nil
	}
	return &c
}
