// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// TestDecisionsHoldForAllFacts draws facts as they can come together, also those
// that only a crash, an old backup or a hand in the database can produce, and
// checks what must hold for every decision.
func TestDecisionsHoldForAllFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := drawFacts(t)
		before := slices.Clone(f.chains)
		first := decideDeployment(f)
		checkDecision(t, f, first)
		if diff := cmp.Diff(before, f.chains); diff != "" {
			t.Fatalf("deciding changed the facts (-before +after):\n%s", diff)
		}
		if again := decideDeployment(applied(f, first)); again.change != nil {
			t.Fatalf("once %+v is written, the same CR still asks for %+v", first.change, again.change)
		}
	})
}

func checkDecision(t *rapid.T, f deploymentFacts, d deploymentDecision) {
	alive := f.cr != nil && f.cr.DeletionTimestamp.IsZero()
	if d.release && (f.cr == nil || alive) {
		t.Fatal("releases a CR that is not being deleted")
	}
	if d.release && (d.verdict != nil || d.chain != nil || (d.change != nil && removes(*d.change, domain.ApplicationID(f.cr.UID)))) {
		t.Fatal("releases a CR of which something is left")
	}
	if removed := f.removal; d.release && removed != nil && (removed.State != domain.OperationCompleted || removed.Message != domain.OperationRemoved) && f.placement.Settled {
		t.Fatalf("releases a CR although the last that is known of it is %+v", removed)
	}
	if d.chain != nil && (d.chain.Link.Application != domain.ApplicationID(f.cr.UID) || d.chain.Link.Tenant != f.tenant) {
		t.Fatalf("shows the chain of %s of tenant %s", d.chain.Link.Application, d.chain.Link.Tenant)
	}
	c := d.change
	if c == nil {
		return
	}
	for _, ref := range c.Remove {
		if alive && ref.ID == domain.ApplicationID(f.cr.UID) && ref.Tenant == f.tenant {
			t.Fatal("removes the chain of a live CR")
		}
		if !slices.ContainsFunc(f.chains, func(c store.Chain) bool { return c.Link.Application == ref.ID && c.Link.Tenant == ref.Tenant }) {
			t.Fatalf("removes %+v, which is not under this name", ref)
		}
		if !slices.ContainsFunc(c.Announce, func(o store.NewOperation) bool { return o.ResourceID == string(ref.ID) && o.Tenant == ref.Tenant }) {
			t.Fatalf("removes %+v without an operation", ref)
		}
	}
	checkOwners(t, f, *c)
	ids := map[domain.OperationID]bool{}
	for _, o := range c.Announce {
		if ids[o.ID] {
			t.Fatalf("two operations share the id %s", o.ID)
		}
		ids[o.ID] = true
	}
}

// checkOwners: what is written is the CR's and its namespace's, and an operation
// belongs to the owner of what it is about.
func checkOwners(t *rapid.T, f deploymentFacts, c store.Change) {
	if n := c.Tenant; n != nil && (n.ID != f.tenant || n.Namespace != f.cr.Namespace) {
		t.Fatalf("adds tenant %+v; the CR's is %s", n, f.tenant)
	}
	if n := c.Insert; n != nil && (n.Application.Tenant != f.tenant || n.Link.Tenant != f.tenant ||
		n.Application.Environment != domain.LocalEnvironment(f.tenant) || n.Link.Application != n.Application.ID ||
		n.Application.ID != domain.ApplicationID(f.cr.UID) || n.Link.Namespace != f.cr.Namespace || n.Link.Name != f.cr.Name) {
		t.Fatalf("inserts %+v for CR %s of tenant %s", n, f.cr.UID, f.tenant)
	}
	if n := c.Update; n != nil && (n.Tenant != f.tenant || n.ID != domain.ApplicationID(f.cr.UID) || n.Environment != domain.LocalEnvironment(f.tenant)) {
		t.Fatalf("updates %+v for CR %s of tenant %s", n, f.cr.UID, f.tenant)
	}
	for _, o := range c.Announce {
		removed := slices.ContainsFunc(c.Remove, func(r store.ApplicationRef) bool { return string(r.ID) == o.ResourceID && r.Tenant == o.Tenant })
		own := f.cr != nil && o.ResourceID == string(f.cr.UID) && o.Tenant == f.tenant
		if !removed && !own {
			t.Fatalf("announces %+v, which is neither the CR's nor removed", o)
		}
	}
}

// applied is a model of the database: the facts as they are once the decision
// has been written.
func applied(f deploymentFacts, d deploymentDecision) deploymentFacts {
	if d.change == nil {
		return f
	}
	c := *d.change
	f.chains = slices.DeleteFunc(slices.Clone(f.chains), func(have store.Chain) bool {
		return slices.Contains(c.Remove, store.ApplicationRef{ID: have.Application.ID, Tenant: have.Application.Tenant})
	})
	if c.Tenant != nil {
		f.placement = store.Placement{Instance: c.Tenant.Instance, Settled: true}
	}
	if c.Insert != nil {
		row := c.Insert.Application
		row.Version = 1
		f.chains = append(f.chains, store.Chain{Link: c.Insert.Link, Application: row})
	}
	for i, have := range f.chains {
		if c.Update != nil && c.Update.ID == have.Application.ID {
			f.chains[i].Application = *c.Update
			f.chains[i].Application.Version++
		}
	}
	for _, o := range c.Announce {
		op := &store.Operation{ID: o.ID, Tenant: o.Tenant, Instance: o.Instance, ResourceType: o.ResourceType, ResourceID: o.ResourceID, State: domain.OperationWaiting, Version: 1}
		for i := range f.chains {
			if string(f.chains[i].Application.ID) == o.ResourceID {
				f.chains[i].Operation = op
			}
		}
		if f.cr != nil && o.ResourceID == string(f.cr.UID) && !hasChain(f.chains, f.cr) {
			f.removal = op
		}
	}
	return f
}

func drawFacts(t *rapid.T) deploymentFacts {
	tenants := rapid.SampledFrom([]domain.TenantID{tenantA, tenantB, "uid-of-namespace-team-c"})
	instances := rapid.SampledFrom([]domain.InstanceID{"engine-1", "engine-2"})
	states := rapid.SampledFrom([]domain.OperationState{domain.OperationWaiting, domain.OperationInProgress, domain.OperationCompleted, domain.OperationFailed})
	f := deploymentFacts{quotas: DefaultQuotas(), newID: counter()}
	for _, uid := range rapid.SliceOfNDistinct(rapid.IntRange(1, 4), 0, 4, rapid.ID).Draw(t, "chains") {
		c := chainOf(deployment("a", withUID(fmt.Sprintf("uid-%d", uid))),
			ofTenant(tenants.Draw(t, "owner")), onInstance(instances.Draw(t, "instance")), atVersion(rapid.Int64Range(1, 9).Draw(t, "version")))
		c.Application.Spec.Path = rapid.SampledFrom([]string{"deploy", "other"}).Draw(t, "deployed path")
		if rapid.IntRange(0, 4).Draw(t, "moved") == 0 {
			c.Application.Environment = "uid-of-prod"
		}
		if rapid.Bool().Draw(t, "has operation") {
			withOperation("earlier", states.Draw(t, "state"))(&c)
		}
		f.chains = append(f.chains, c)
	}
	if rapid.IntRange(0, 5).Draw(t, "gone") == 0 {
		return f
	}
	options := []deploymentOption{
		withUID(fmt.Sprintf("uid-%d", rapid.IntRange(1, 4).Draw(t, "uid"))),
		withPath(rapid.SampledFrom([]string{"deploy", "other", "/"}).Draw(t, "path")),
		withDestination(rapid.SampledFrom([]string{"", "", "", "prod"}).Draw(t, "environment"), team),
	}
	if rapid.Bool().Draw(t, "being deleted") {
		options = append(options, beingDeleted())
	}
	f.cr = deployment("a", options...)
	f.tenant = tenants.Draw(t, "tenant")
	f.terminating = rapid.IntRange(0, 4).Draw(t, "terminating") == 0
	f.placement = store.Placement{Instance: instances.Draw(t, "placement"), Settled: rapid.Bool().Draw(t, "settled")}
	for _, c := range f.chains {
		if c.Link.Tenant == f.tenant {
			f.placement = store.Placement{Instance: c.Application.Instance, Settled: true}
		}
	}
	if !f.cr.DeletionTimestamp.IsZero() && !hasChain(f.chains, f.cr) && rapid.Bool().Draw(t, "has removal") {
		f.removal = operation("removal", domain.ApplicationID(f.cr.UID), states.Draw(t, "removal state"))
		f.removal.Message = rapid.SampledFrom([]string{"", domain.OperationRemoved}).Draw(t, "removal message")
	}
	return f
}
