// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// calls is a log of calls, which can make the next call of a method fail.
type calls struct {
	log []string
	// NextErr holds, for each method, the errors of its next calls.
	NextErr map[string][]error
}

func (c *calls) called(method string, what any) error {
	c.log = append(c.log, fmt.Sprintf("%s(%v)", method, what))
	queue := c.NextErr[method]
	if len(queue) == 0 {
		return nil
	}
	c.NextErr[method] = queue[1:]
	return queue[0]
}

func (c *calls) failNext(method string, errs ...error) {
	if c.NextErr == nil {
		c.NextErr = map[string][]error{}
	}
	c.NextErr[method] = append(c.NextErr[method], errs...)
}

// count says how often a method was called.
func (c *calls) count(method string) int {
	n := 0
	for _, line := range c.log {
		if strings.HasPrefix(line, method+"(") {
			n++
		}
	}
	return n
}

// fakeCluster has a cache that shows what it is told to, and the truth.
type fakeCluster struct {
	calls
	cached, live map[string]*v1alpha1.GitOpsDeployment
	namespaces   map[string]kube.Namespace
	environments map[string]*v1alpha1.GitOpsDeploymentManagedEnvironment
	older        int
}

func (c *fakeCluster) Environment(_ context.Context, _, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error) {
	return c.environments[name].DeepCopy(), c.called("Environment", name)
}

func (c *fakeCluster) OlderDeployments(context.Context, *v1alpha1.GitOpsDeployment) (int, error) {
	return c.older, nil
}

// set makes a CR known to the API server and to the cache; nil removes it.
func (c *fakeCluster) set(name string, cr *v1alpha1.GitOpsDeployment) {
	c.cached[name], c.live[name] = cr, cr
}

func (c *fakeCluster) Deployment(_ context.Context, _, name string) (*v1alpha1.GitOpsDeployment, error) {
	return c.cached[name].DeepCopy(), c.called("Deployment", name)
}

func (c *fakeCluster) DeploymentNow(_ context.Context, _, name string) (*v1alpha1.GitOpsDeployment, error) {
	if err := c.called("DeploymentNow", name); err != nil {
		return nil, err
	}
	return c.live[name].DeepCopy(), nil
}

func (c *fakeCluster) Namespace(_ context.Context, name string) (kube.Namespace, error) {
	if err := c.called("Namespace", name); err != nil {
		return kube.Namespace{}, err
	}
	ns, ok := c.namespaces[name]
	if !ok {
		return ns, domain.ErrNotFound
	}
	return ns, nil
}

func (c *fakeCluster) Release(_ context.Context, cr *v1alpha1.GitOpsDeployment) error {
	if err := c.called("Release", cr.Name); err != nil {
		return err
	}
	c.set(cr.Name, nil)
	return nil
}

// fakeStore is a database of plain values with the constraints that steps rely
// on: versions, one row for each id, and no application without its tenant's access
// to the instance.
type fakeStore struct {
	calls
	chains map[string][]store.Chain
	// operations are all there ever were of each resource, oldest first.
	operations map[string][]store.Operation
	access     map[domain.TenantID]domain.InstanceID
	// ready is the instance that unsettled tenants are sent to, empty for none.
	ready        domain.InstanceID
	environments map[domain.EnvironmentID]store.Environment

	// meanwhile, where not nil, runs once just before the next Apply: what another
	// process does in between. replyLost fails the next Apply after it has committed.
	meanwhile func()
	replyLost error
	changes   []store.Change
}

func (s *fakeStore) Environment(_ context.Context, t domain.TenantID, id domain.EnvironmentID) (store.Environment, error) {
	if e, ok := s.environments[id]; ok && e.Tenant == t {
		return e, s.called("Environment", id)
	}
	return store.Environment{}, errors.Join(domain.ErrNotFound, s.called("Environment", id))
}

func (s *fakeStore) Chains(_ context.Context, _, name string) ([]store.Chain, error) {
	if err := s.called("Chains", name); err != nil {
		return nil, err
	}
	out := slices.Clone(s.chains[name])
	for i := range out {
		if op, ok := s.latest(string(out[i].Application.ID)); ok {
			out[i].Operation = &op
		}
	}
	return out, nil
}

func (s *fakeStore) Placement(_ context.Context, t domain.TenantID) (store.Placement, error) {
	if err := s.called("Placement", t); err != nil {
		return store.Placement{}, err
	}
	if i, settled := s.access[t]; settled {
		return store.Placement{Instance: i, Settled: true}, nil
	}
	if s.ready == "" {
		return store.Placement{}, domain.ErrNotFound
	}
	return store.Placement{Instance: s.ready}, nil
}

func (s *fakeStore) LatestOperation(_ context.Context, _ domain.ResourceType, id string) (store.Operation, error) {
	if err := s.called("LatestOperation", id); err != nil {
		return store.Operation{}, err
	}
	op, ok := s.latest(id)
	if !ok {
		return op, domain.ErrNotFound
	}
	return op, nil
}

func (s *fakeStore) latest(resource string) (store.Operation, bool) {
	all := s.operations[resource]
	if len(all) == 0 {
		return store.Operation{}, false
	}
	return all[len(all)-1], true
}

// end lets the newest operation on a resource end.
func (s *fakeStore) end(resource string, state domain.OperationState) {
	all := s.operations[resource]
	all[len(all)-1].State = state
	if state == domain.OperationCompleted && !s.hasRow(resource) {
		all[len(all)-1].Message = domain.OperationRemoved
	}
}

func (s *fakeStore) hasRow(resource string) bool {
	for _, chains := range s.chains {
		for _, c := range chains {
			if string(c.Application.ID) == resource {
				return true
			}
		}
	}
	return false
}

func (s *fakeStore) Apply(_ context.Context, c store.Change) ([]store.Operation, error) {
	if meanwhile := s.meanwhile; meanwhile != nil {
		s.meanwhile = nil
		meanwhile()
	}
	if err := s.called("Apply", len(s.changes)); err != nil {
		return nil, err
	}
	if err := s.check(c); err != nil {
		return nil, err
	}
	s.changes = append(s.changes, c)
	ops := s.commit(c)
	if err := s.replyLost; err != nil {
		s.replyLost = nil
		return nil, err
	}
	return ops, nil
}

func (s *fakeStore) check(c store.Change) error {
	access := func(t domain.TenantID, i domain.InstanceID) error {
		have, settled := s.access[t]
		if !settled && c.Tenant != nil && c.Tenant.ID == t {
			have = c.Tenant.Instance
		}
		if have != i {
			return fmt.Errorf("access of %s to %s: %w", t, i, domain.ErrMissingParent)
		}
		return nil
	}
	if n := c.Insert; n != nil {
		have := s.find(n.Application.ID)
		if have != nil && !slices.Contains(c.Remove, store.ApplicationRef{ID: have.Application.ID, Tenant: have.Application.Tenant}) {
			return fmt.Errorf("application %s is there: %w", n.Application.ID, domain.ErrConflict)
		}
		return access(n.Application.Tenant, n.Application.Instance)
	}
	if u := c.Update; u != nil {
		if have := s.find(u.ID); have == nil || have.Application.Version != u.Version {
			return fmt.Errorf("application %s at version %d: %w", u.ID, u.Version, domain.ErrConflict)
		}
		return access(u.Tenant, u.Instance)
	}
	return nil
}

func (s *fakeStore) find(id domain.ApplicationID) *store.Chain {
	for name := range s.chains {
		for i := range s.chains[name] {
			if s.chains[name][i].Application.ID == id {
				return &s.chains[name][i]
			}
		}
	}
	return nil
}

func (s *fakeStore) commit(c store.Change) []store.Operation {
	if c.Tenant != nil {
		if _, settled := s.access[c.Tenant.ID]; !settled {
			s.access[c.Tenant.ID] = c.Tenant.Instance
		}
	}
	for name := range s.chains {
		s.chains[name] = slices.DeleteFunc(s.chains[name], func(have store.Chain) bool {
			return slices.Contains(c.Remove, store.ApplicationRef{ID: have.Application.ID, Tenant: have.Application.Tenant})
		})
	}
	if n := c.Insert; n != nil {
		row := n.Application
		row.Version = 1
		s.chains[n.Link.Name] = append(s.chains[n.Link.Name], store.Chain{Link: n.Link, Application: row})
	}
	if c.Update != nil {
		have := s.find(c.Update.ID)
		have.Application = *c.Update
		have.Application.Version++
	}
	var ops []store.Operation
	for _, n := range c.Announce {
		ops = append(ops, s.announce(n))
	}
	return ops
}

// announce reuses the operation that waits.
func (s *fakeStore) announce(n store.NewOperation) store.Operation {
	all := s.operations[n.ResourceID]
	if i := len(all) - 1; i >= 0 && all[i].State == domain.OperationWaiting && all[i].Instance == n.Instance {
		all[i].Version++
		return all[i]
	}
	op := store.Operation{
		ID: n.ID, Tenant: n.Tenant, Instance: n.Instance, ResourceType: n.ResourceType, ResourceID: n.ResourceID,
		State: domain.OperationWaiting, Version: 1,
	}
	s.operations[n.ResourceID] = append(all, op)
	return op
}

// fakeOutbox keeps what was announced.
type fakeOutbox struct {
	calls
	announced []domain.OperationID
}

func (o *fakeOutbox) Announce(_ context.Context, op store.Operation) error {
	if err := o.called("Announce", op.ID); err != nil {
		return err
	}
	o.announced = append(o.announced, op.ID)
	return nil
}

// shown is what a tenant got to see.
type shown struct {
	UID     string
	Chain   *store.Chain
	Verdict error
}

type fakeProjector struct {
	calls
	shown []shown
}

func (p *fakeProjector) Show(_ context.Context, cr *v1alpha1.GitOpsDeployment, chain *store.Chain, verdict error) error {
	if err := p.called("Show", cr.Name); err != nil {
		return err
	}
	p.shown = append(p.shown, shown{string(cr.UID), chain, verdict})
	return nil
}

func (p *fakeProjector) last(t *testing.T) shown {
	t.Helper()
	if len(p.shown) == 0 {
		t.Fatal("the tenant was shown nothing")
	}
	return p.shown[len(p.shown)-1]
}

// world is everything around a step.
type world struct {
	*Deployments
	cluster *fakeCluster
	store   *fakeStore
	outbox  *fakeOutbox
	status  *fakeProjector
	log     *strings.Builder
}

// newWorld has one ready engine, namespace team-a, and the CRs given.
func newWorld(crs ...*v1alpha1.GitOpsDeployment) *world {
	w := &world{
		cluster: &fakeCluster{
			cached: map[string]*v1alpha1.GitOpsDeployment{}, live: map[string]*v1alpha1.GitOpsDeployment{},
			namespaces: map[string]kube.Namespace{team: {Name: team, UID: tenantA}},
		},
		store: &fakeStore{
			chains: map[string][]store.Chain{}, operations: map[string][]store.Operation{},
			access: map[domain.TenantID]domain.InstanceID{}, ready: engineID,
		},
		outbox: &fakeOutbox{}, status: &fakeProjector{}, log: &strings.Builder{},
	}
	for _, cr := range crs {
		w.cluster.set(cr.Name, cr)
	}
	w.Deployments = &Deployments{
		Cluster: w.cluster, Store: w.store, Outbox: w.outbox, Status: w.status,
		Quotas: DefaultQuotas(), NewID: counter(), Log: slog.New(slog.NewTextHandler(w.log, nil)),
	}
	return w
}

// has puts chains into the database as if they had been taken in before, with
// their tenants' access.
func (w *world) has(chains ...store.Chain) *world {
	for _, c := range chains {
		w.store.chains[c.Link.Name] = append(w.store.chains[c.Link.Name], c)
		w.store.access[c.Application.Tenant] = c.Application.Instance
	}
	return w
}

// restarted is the same world with a process that remembers nothing.
func (w *world) restarted() *world {
	d := w.Deployments
	w.Deployments = &Deployments{Cluster: d.Cluster, Store: d.Store, Outbox: d.Outbox, Status: d.Status, Quotas: d.Quotas, NewID: d.NewID, Log: d.Log}
	return w
}

func (w *world) step(t *testing.T, name string) error {
	t.Helper()
	return w.Step(t.Context(), team, name)
}

func (w *world) mustStep(t *testing.T, name string) {
	t.Helper()
	if err := w.step(t, name); err != nil {
		t.Fatalf("Step(%s): %v", name, err)
	}
}

// uids are the applications that the database holds under a name.
func (w *world) uids(name string) []string {
	var out []string
	for _, c := range w.store.chains[name] {
		out = append(out, string(c.Application.ID))
	}
	return out
}
