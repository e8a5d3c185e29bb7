// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// Cluster is what the step reads from, and the one thing that it writes to, the
// cluster with the tenants' namespaces.
type Cluster interface {
	// Deployment reads from the cache, DeploymentNow from the API server. Both
	// give nil for a CR that is not there.
	Deployment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error)
	DeploymentNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error)
	// Environment reads from the cache, nil for one that is not there.
	Environment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error)
	// OlderDeployments counts those of the same namespace that are older.
	OlderDeployments(ctx context.Context, cr *v1alpha1.GitOpsDeployment) (int, error)
	// Namespace gives domain.ErrNotFound for one that is not there.
	Namespace(ctx context.Context, name string) (kube.Namespace, error)
	// Release takes our finalizer off.
	Release(ctx context.Context, cr *v1alpha1.GitOpsDeployment) error
}

// Outbox tells agents of operations that have been committed.
type Outbox interface {
	Announce(ctx context.Context, op store.Operation) error
}

// Projector shows a tenant how its deployment is.
type Projector interface {
	// Show writes the status that follows from the chain, which is nil where the
	// CR has none, and from the verdict, which is nil where all is well.
	Show(ctx context.Context, cr *v1alpha1.GitOpsDeployment, chain *store.Chain, verdict error) error
}

// Deployers prepare a tenant's namespace for being deployed into.
type Deployers interface {
	Ensure(ctx context.Context, t domain.TenantID, namespace string) error
}

// DeploymentStore is where deployments are taken in.
type DeploymentStore interface {
	store.Deployments
	Environment(ctx context.Context, tenant domain.TenantID, id domain.EnvironmentID) (store.Environment, error)
}

// Deployments takes GitOpsDeployments in.
type Deployments struct {
	Cluster Cluster
	Store   DeploymentStore
	// Deployers may be nil where nothing deploys.
	Deployers Deployers
	Outbox    Outbox
	Status    Projector
	Policy    Policy
	Quotas    Quotas
	NewID     func() domain.OperationID
	Log       *slog.Logger

	placed placements
}

// decideTries bounds how often a step reads and decides again when somebody
// else was faster. What is still contended after that goes back to the queue,
// which backs off.
const decideTries = 3

// Step makes the rows under one name follow the CR under that name, and the
// CR's status follow the rows.
func (d *Deployments) Step(ctx context.Context, namespace, name string) error {
	for try := 1; ; try++ {
		err := d.try(ctx, namespace, name)
		again := errors.Is(err, domain.ErrConflict) || errors.Is(err, domain.ErrMissingParent)
		if !again || try == decideTries {
			return err
		}
	}
}

func (d *Deployments) try(ctx context.Context, namespace, name string) error {
	facts, err := d.gather(ctx, namespace, name)
	if err != nil {
		return d.explain(ctx, facts.cr, err)
	}
	if facts.cr != nil {
		ctx = telemetry.WithWork(ctx, telemetry.Work{Tenant: string(facts.tenant), UID: string(facts.cr.UID)})
	}
	decision := decideDeployment(facts)
	if err := d.prepare(ctx, facts, decision); err != nil {
		return d.explain(ctx, facts.cr, err)
	}
	if err := d.act(ctx, &decision); err != nil {
		d.placed.forget(facts.tenant)
		return d.explain(ctx, facts.cr, err)
	}
	if decision.change != nil && decision.change.Tenant != nil {
		d.placed.settle(facts.tenant, facts.placement)
	}
	return d.project(ctx, facts.cr, decision)
}

// prepare makes a tenant's namespace ready before anything is to be deployed into
// it.
func (d *Deployments) prepare(ctx context.Context, f deploymentFacts, decision deploymentDecision) error {
	c := decision.change
	if d.Deployers == nil || c == nil || c.Insert == nil && c.Update == nil || decision.chain.Application.Environment != domain.LocalEnvironment(f.tenant) {
		return nil
	}
	return d.Deployers.Ensure(ctx, f.tenant, f.cr.Namespace)
}

// gather reads the facts. On an error the facts hold at least the CR, where it
// could be read, so that its tenant can be told.
func (d *Deployments) gather(ctx context.Context, namespace, name string) (deploymentFacts, error) {
	f := deploymentFacts{policy: d.Policy, newID: d.NewID}
	var err error
	if f.cr, err = d.Cluster.Deployment(ctx, namespace, name); err != nil {
		return f, fmt.Errorf("read GitOpsDeployment: %w", err)
	}
	if f.chains, err = d.Store.Chains(ctx, namespace, name); err != nil {
		return f, err
	}
	if wouldRemove(f.cr, f.chains) || isBehind(f.cr, f.chains) {
		if f.cr, err = d.Cluster.DeploymentNow(ctx, namespace, name); err != nil {
			return f, fmt.Errorf("read the GitOpsDeployment as it is now: %w", err)
		}
	}
	if f.cr == nil {
		return f, nil
	}
	ns, err := d.Cluster.Namespace(ctx, namespace)
	if err != nil {
		return f, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	f.tenant, f.terminating, f.quotas = ns.UID, ns.Terminating, d.Quotas.In(ns.Annotations)
	if !hasChain(f.chains, f.cr) {
		if f.older, err = d.Cluster.OlderDeployments(ctx, f.cr); err != nil {
			return f, fmt.Errorf("count the namespace's deployments: %w", err)
		}
	}
	if f.environment, err = d.environment(ctx, f); err != nil {
		return f, err
	}
	if f.placement, err = d.place(ctx, f); err != nil {
		return f, err
	}
	if !f.cr.DeletionTimestamp.IsZero() && !hasChain(f.chains, f.cr) {
		f.removal, err = d.removal(ctx, f.cr)
	}
	return f, err
}

// environment reads what is known of the environment that the deployment names.
func (d *Deployments) environment(ctx context.Context, f deploymentFacts) (*environmentFacts, error) {
	name := f.cr.Spec.Destination.Environment
	if name == "" || !f.cr.DeletionTimestamp.IsZero() {
		return nil, nil
	}
	cr, err := d.Cluster.Environment(ctx, f.cr.Namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read GitOpsDeploymentManagedEnvironment %s: %w", name, err)
	}
	if cr == nil || !cr.DeletionTimestamp.IsZero() {
		return &environmentFacts{problem: "is not there"}, nil
	}
	row, err := d.Store.Environment(ctx, f.tenant, domain.EnvironmentID(cr.UID))
	switch {
	case errors.Is(err, domain.ErrNotFound), err == nil && row.Credentials == nil:
		return &environmentFacts{problem: "is not connected; its own conditions say why"}, nil
	case err != nil:
		return nil, err
	}
	return &environmentFacts{row: &row}, nil
}

// wouldRemove says whether the chains hold any other UID than the CR's.
func wouldRemove(cr *v1alpha1.GitOpsDeployment, chains []store.Chain) bool {
	return slices.ContainsFunc(chains, func(c store.Chain) bool {
		return cr == nil || c.Link.Application != domain.ApplicationID(cr.UID)
	})
}

// isBehind says whether the rows were taken from a later generation than the
// one that the cache shows: another backend, or this one before a restart, has
// seen more.
func isBehind(cr *v1alpha1.GitOpsDeployment, chains []store.Chain) bool {
	return slices.ContainsFunc(chains, func(c store.Chain) bool {
		return cr != nil && c.Link.Application == domain.ApplicationID(cr.UID) && c.Application.Generation > cr.Generation
	})
}

func hasChain(chains []store.Chain, cr *v1alpha1.GitOpsDeployment) bool {
	return slices.ContainsFunc(chains, func(c store.Chain) bool {
		return c.Link.Application == domain.ApplicationID(cr.UID)
	})
}

// place says where the tenant's applications are or are to go. A tenant with a
// chain has its place in that chain, one seen before in memory; only a new one
// costs a statement.
func (d *Deployments) place(ctx context.Context, f deploymentFacts) (store.Placement, error) {
	for _, c := range f.chains {
		if c.Link.Tenant == f.tenant {
			return store.Placement{Instance: c.Application.Instance, Settled: true}, nil
		}
	}
	if p, known := d.placed.get(f.tenant); known {
		return p, nil
	}
	p, err := d.Store.Placement(ctx, f.tenant)
	if errors.Is(err, domain.ErrNotFound) {
		if !f.cr.DeletionTimestamp.IsZero() {
			// Without an engine nothing was deployed, and nothing has to be removed.
			return p, nil
		}
		return p, &domain.Waiting{For: "a GitOps engine: none is registered and ready"}
	}
	if err == nil && p.Settled {
		d.placed.settle(f.tenant, p)
	}
	return p, err
}

func (d *Deployments) removal(ctx context.Context, cr *v1alpha1.GitOpsDeployment) (*store.Operation, error) {
	op, err := d.Store.LatestOperation(ctx, domain.ResourceApplication, string(cr.UID))
	switch {
	case errors.Is(err, domain.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return &op, nil
}

// act writes the decision, then announces it. A crash in between leaves a
// waiting operation, which the outbox finds; so does this very step, when it
// runs again and sees the operation in the chain.
func (d *Deployments) act(ctx context.Context, decision *deploymentDecision) error {
	var announce []store.Operation
	if decision.change != nil {
		ops, err := d.Store.Apply(ctx, *decision.change)
		if err != nil {
			return err
		}
		announce = ops
		d.report(ctx, *decision.change, ops)
	} else if c := decision.chain; c != nil && c.Operation != nil && c.Operation.State == domain.OperationWaiting {
		announce = []store.Operation{*c.Operation}
	}
	for _, op := range announce {
		if decision.chain != nil && op.ResourceID == string(decision.chain.Application.ID) {
			decision.chain.Operation = &op
		}
		if err := d.Outbox.Announce(ctx, op); err != nil {
			return fmt.Errorf("announce operation %s: %w", op.ID, err)
		}
	}
	return nil
}

// report logs a change, a line for each operation that it caused.
func (d *Deployments) report(ctx context.Context, c store.Change, ops []store.Operation) {
	for _, op := range ops {
		what := "removed"
		switch {
		case c.Insert != nil && string(c.Insert.Application.ID) == op.ResourceID:
			what = "taken in"
		case c.Update != nil && string(c.Update.ID) == op.ResourceID:
			what = "changed"
		}
		ctx := telemetry.WithWork(ctx, telemetry.Work{Tenant: string(op.Tenant), UID: op.ResourceID, Operation: string(op.ID)})
		d.Log.InfoContext(ctx, "deployment "+what)
	}
}

func (d *Deployments) project(ctx context.Context, cr *v1alpha1.GitOpsDeployment, decision deploymentDecision) error {
	if cr == nil {
		return nil
	}
	if decision.release {
		return d.Cluster.Release(ctx, cr)
	}
	if err := d.Status.Show(ctx, cr, decision.chain, decision.verdict); err != nil {
		return err
	}
	// An error that is being worked on ends with a notification, which may have
	// come before the cache knew that the error was shown. So it is looked at again.
	if c := decision.chain; c != nil && c.Operation != nil && !c.Operation.State.Final() && c.Operation.Message != "" {
		return &domain.Waiting{For: "operation " + string(c.Operation.ID)}
	}
	return nil
}

// explain shows the tenant what the step waits for, where the error is of that
// kind, and hands the error on so that the queue tries again.
func (d *Deployments) explain(ctx context.Context, cr *v1alpha1.GitOpsDeployment, err error) error {
	verdict := err
	var waiting *domain.Waiting
	switch {
	case cr == nil:
		return err
	case errors.Is(err, domain.ErrUnavailable):
		verdict = &domain.Waiting{For: "the service's database, which does not answer"}
	case !errors.As(err, &waiting):
		return err
	}
	if shown := d.Status.Show(ctx, cr, nil, verdict); shown != nil && !errors.Is(shown, domain.ErrConflict) {
		d.Log.WarnContext(ctx, "cannot show the tenant why its deployment waits", "error", shown)
	}
	return err
}
