// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// written1 is one row that a change removes, puts or announces, whatever its kind.
type written1 struct {
	uid    string
	tenant domain.TenantID
}

// others are a change's rows of the kinds besides deployments.
type others struct {
	removes, puts, announces []written1
}

func othersOf(c *store.Change, kind domain.ResourceType) others {
	var o others
	if c == nil {
		return o
	}
	for _, r := range c.RemoveSyncs {
		o.removes = append(o.removes, written1{string(r.ID), r.Tenant})
	}
	for _, r := range c.RemoveEnvironments {
		o.removes = append(o.removes, written1{string(r.ID), r.Tenant})
	}
	for _, r := range c.RemoveCredentials {
		o.removes = append(o.removes, written1{string(r.ID), r.Tenant})
	}
	for _, link := range linksOf(c) {
		o.puts = append(o.puts, written1{link.UID, link.Tenant})
	}
	for _, a := range c.Announce {
		if a.ResourceType == kind {
			o.announces = append(o.announces, written1{a.ResourceID, a.Tenant})
		}
	}
	return o
}

func linksOf(c *store.Change) []store.CRLink {
	var links []store.CRLink
	if n := c.InsertSync; n != nil {
		links = append(links, n.Link)
	}
	if n := c.PutEnvironment; n != nil {
		links = append(links, n.Link)
	}
	if n := c.PutCredential; n != nil {
		links = append(links, n.Link)
	}
	return links
}

// held is a chain as the rules below see it.
type held struct {
	written1
	// known says that an engine can have something of it, and that it can be told.
	known bool
}

// checkOthers is what holds for every decision of these kinds.
func checkOthers(t *rapid.T, c *store.Change, kind domain.ResourceType, chains []held, live *written1) {
	o := othersOf(c, kind)
	if c != nil && len(c.Announce) != len(o.announces) {
		t.Fatalf("announces operations on other kinds: %+v", c.Announce)
	}
	for _, r := range o.removes {
		if live != nil && r == *live {
			t.Fatal("removes the chain of a live CR")
		}
		i := slices.IndexFunc(chains, func(h held) bool { return h.written1 == r })
		if i < 0 {
			t.Fatalf("removes %+v, which is not under this name", r)
		}
		if chains[i].known && !slices.Contains(o.announces, r) {
			t.Fatalf("removes %+v without an operation: the engine would keep what it has", r)
		}
	}
	for _, p := range o.puts {
		if live == nil || p != *live {
			t.Fatalf("writes %+v; the CR is %+v", p, live)
		}
		if !slices.Contains(o.announces, p) {
			t.Fatalf("writes %+v without an operation", p)
		}
	}
	ids := map[domain.OperationID]bool{}
	for i, a := range o.announces {
		if !slices.Contains(o.removes, a) && !slices.Contains(o.puts, a) {
			t.Fatalf("announces %+v, which it neither removes nor writes", a)
		}
		if ids[c.Announce[i].ID] || c.Announce[i].Instance == "" {
			t.Fatalf("announces %+v", c.Announce[i])
		}
		ids[c.Announce[i].ID] = true
	}
	if c != nil && c.Tenant != nil && (live == nil || c.Tenant.ID != live.tenant) {
		t.Fatalf("adds tenant %+v; the CR is %+v", c.Tenant, live)
	}
}

func drawTenant(t *rapid.T) domain.TenantID {
	return rapid.SampledFrom([]domain.TenantID{tenantA, tenantB}).Draw(t, "tenant")
}

func drawUIDs(t *rapid.T) []string {
	var uids []string
	for _, n := range rapid.SliceOfNDistinct(rapid.IntRange(1, 3), 0, 3, rapid.ID).Draw(t, "chains") {
		uids = append(uids, fmt.Sprintf("uid-%d", n))
	}
	return uids
}

func drawUID(t *rapid.T) string { return fmt.Sprintf("uid-%d", rapid.IntRange(1, 3).Draw(t, "uid")) }

func oneIn(t *rapid.T, n int, what string) bool { return rapid.IntRange(1, n).Draw(t, what) == 1 }

func drawOperation(t *rapid.T, kind domain.ResourceType, uid string, owner domain.TenantID) *store.Operation {
	if rapid.Bool().Draw(t, "collected") {
		return nil
	}
	states := rapid.SampledFrom([]domain.OperationState{domain.OperationWaiting, domain.OperationInProgress, domain.OperationCompleted, domain.OperationFailed})
	op := operationOn(kind, uid, states.Draw(t, "state"), rapid.SampledFrom([]string{"", "trouble"}).Draw(t, "message"))
	op.Tenant = owner
	return op
}

func TestDecisionsOnSyncRunsHoldForAllFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := runFacts(nil)
		f.tenant = drawTenant(t)
		f.terminating = oneIn(t, 5, "terminating")
		f.deployment.Application.Tenant = f.tenant
		if oneIn(t, 4, "no deployment") {
			f.deployment = nil
		}
		var chains []held
		for _, uid := range drawUIDs(t) {
			c := syncOf(uid, syncTenant(drawTenant(t)))
			if oneIn(t, 3, "ended") {
				syncEnded(noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour))(&c)
			}
			if oneIn(t, 4, "row gone") {
				c.Sync = nil
			}
			if oneIn(t, 4, "no operation") {
				c.Operation = nil
			}
			f.chains = append(f.chains, c)
			chains = append(chains, held{written1{uid, c.Link.Tenant}, c.Sync != nil && !c.Sync.Result.Phase.Final() && c.Operation != nil})
		}
		var live *written1
		if !oneIn(t, 5, "gone") {
			f.cr = run("r", runOf(drawUID(t)), runRevision(rapid.SampledFrom([]string{"v1", "v2", "a..b"}).Draw(t, "revision")))
			if oneIn(t, 4, "finished") {
				runFinished(noon.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "hours")) * time.Hour))(f.cr)
			}
			if oneIn(t, 4, "deleted") {
				runDeleted(f.cr)
			} else {
				live = &written1{string(f.cr.UID), f.tenant}
			}
		}
		before := slices.Clone(f.chains)
		d := decideSyncRun(f)
		if live != nil && d.verdict != nil && d.chain == nil && len(chains) > 0 {
			// The one way in which a live CR's own chain goes: only its link is left.
			if i := slices.IndexFunc(f.chains, func(c store.SyncChain) bool { return c.Link.UID == live.uid && c.Link.Tenant == live.tenant }); i >= 0 && f.chains[i].Sync == nil {
				live = nil
			}
		}
		checkOthers(t, d.change, domain.ResourceSyncOperation, chains, live)
		if diff := cmp.Diff(before, f.chains); diff != "" {
			t.Fatalf("deciding changed the facts:\n%s", diff)
		}
		if d.expired && (f.cr == nil || f.cr.Status.FinishedAt == nil || noon.Sub(f.cr.Status.FinishedAt.Time) < f.ttl) {
			t.Fatalf("expires %+v", f.cr)
		}
		// Once that is written, nothing is left to write.
		f.chains = slices.DeleteFunc(slices.Clone(f.chains), func(c store.SyncChain) bool {
			return d.change != nil && slices.Contains(d.change.RemoveSyncs, store.SyncRef{ID: domain.SyncOperationID(c.Link.UID), Tenant: c.Link.Tenant})
		})
		if d.change != nil && d.change.InsertSync != nil {
			n := d.change.InsertSync
			f.chains = append(f.chains, store.SyncChain{Link: n.Link, Sync: &n.Sync})
		}
		if f.cr != nil && errors.Is(d.verdict, errDeploymentGone) {
			runFinished(noon)(f.cr)
		}
		if again := decideSyncRun(f); again.change != nil {
			t.Fatalf("once %+v is written, the same CR still asks for %+v", d.change, again.change)
		}
	})
}

func TestDecisionsOnEnvironmentsHoldForAllFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := environmentFactsOf(nil)
		f.tenant, f.placement = drawTenant(t), settledAt()
		f.placement.Settled = rapid.Bool().Draw(t, "settled")
		f.terminating = oneIn(t, 5, "terminating")
		f.older = rapid.SampledFrom([]int{0, 0, 50}).Draw(t, "older")
		var chains []held
		for _, uid := range drawUIDs(t) {
			c := connectedAs(uid, environmentTenant(drawTenant(t)))
			c.Operation = drawOperation(t, domain.ResourceManagedEnvironment, uid, c.Link.Tenant)
			if rapid.Bool().Draw(t, "account") {
				withAccount(&c)
				f.removed[domain.EnvironmentID(uid)] = rapid.Bool().Draw(t, "account removed")
			}
			if oneIn(t, 5, "row gone") {
				c.Environment = nil
			}
			f.chains = append(f.chains, c)
			chains = append(chains, held{written1{uid, c.Link.Tenant}, true})
		}
		var live *written1
		if !oneIn(t, 5, "gone") {
			f.cr = environment(environmentOf(drawUID(t)))
			if oneIn(t, 4, "manual only") {
				manualOnly(f.cr)
			}
			switch rapid.IntRange(0, 4).Draw(t, "known of it") {
			case 0:
				f.problem = &reach.Problem{Reason: v1alpha1.ReasonInvalidSecretType, Message: "no"}
			case 1:
				f.answer = &ConnectAnswer{}
			case 2:
				f.answer = &ConnectAnswer{Problem: &reach.Problem{Reason: v1alpha1.ReasonInvalidSecretType, Message: "no"}}
			case 3:
				f.stored = "something else"
			}
			if oneIn(t, 4, "deleted") {
				environmentDeleted(f.cr)
			} else {
				live = &written1{string(f.cr.UID), f.tenant}
			}
		}
		d := decideEnvironment(f)
		checkOthers(t, d.change, domain.ResourceManagedEnvironment, chains, live)
		for _, c := range f.chains {
			gone := d.change != nil && slices.Contains(d.change.RemoveEnvironments, store.EnvironmentRef{ID: domain.EnvironmentID(c.Link.UID), Tenant: c.Link.Tenant})
			if gone && hasAccount(c) && !f.removed[c.Environment.ID] {
				t.Fatalf("the row of %s goes before its account", c.Link.UID)
			}
		}
		if d.put != nil && (f.answer == nil || f.answer.Problem != nil) {
			t.Fatal("takes in what nobody answered for")
		}
		f.chains = afterEnvironments(f, d)
		if d.change != nil && d.change.PutEnvironment != nil {
			f.answer, f.stored, f.placement.Settled = nil, f.origin, true
		}
		if again := decideEnvironment(f); again.change != nil {
			t.Fatalf("once %+v is written, the same CR still asks for %+v", d.change, again.change)
		}
	})
}

// afterEnvironments are the chains once a decision is written.
func afterEnvironments(f environmentCRFacts, d environmentDecision) []store.EnvironmentChain {
	if d.change == nil {
		return f.chains
	}
	put := d.change.PutEnvironment
	chains := slices.DeleteFunc(slices.Clone(f.chains), func(c store.EnvironmentChain) bool {
		return slices.Contains(d.change.RemoveEnvironments, store.EnvironmentRef{ID: domain.EnvironmentID(c.Link.UID), Tenant: c.Link.Tenant}) ||
			put != nil && c.Link.UID == put.Link.UID && c.Link.Tenant == put.Link.Tenant
	})
	if put != nil {
		chains = append(chains, store.EnvironmentChain{Link: put.Link, Environment: &put.Environment})
	}
	return chains
}

func TestDecisionsOnCredentialsHoldForAllFacts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		f := credentialFactsOf(nil)
		f.tenant, f.placement = drawTenant(t), settledAt()
		f.placement.Settled = rapid.Bool().Draw(t, "settled")
		f.terminating = oneIn(t, 5, "terminating")
		f.older = rapid.SampledFrom([]int{0, 0, 100}).Draw(t, "older")
		var chains []held
		for _, uid := range drawUIDs(t) {
			c := storedAs(uid, credentialTenant(drawTenant(t)))
			c.Operation = drawOperation(t, domain.ResourceRepositoryCredential, uid, c.Link.Tenant)
			if oneIn(t, 5, "row gone") {
				c.Credential = nil
			}
			f.chains = append(f.chains, c)
			chains = append(chains, held{written1{uid, c.Link.Tenant}, c.Credential != nil})
		}
		var live *written1
		if !oneIn(t, 5, "gone") {
			f.cr = credential(credentialUID(drawUID(t)))
			if oneIn(t, 4, "deleted") {
				credentialDeleted(f.cr)
			} else {
				live = &written1{string(f.cr.UID), f.tenant}
				f.same = rapid.Bool().Draw(t, "same") && slices.ContainsFunc(f.chains, func(c store.CredentialChain) bool {
					return c.Link.UID == live.uid && c.Link.Tenant == live.tenant && c.Credential != nil
				})
			}
			bad := &CredentialProblem{v1alpha1.ReasonInvalidCredentials, "no"}
			switch rapid.IntRange(0, 5).Draw(t, "known of it") {
			case 0:
				f.url = bad
			case 1:
				f.secret = bad
			case 2:
				f.answer = &CheckAnswer{}
			case 3:
				f.answer = &CheckAnswer{Problem: bad}
			case 4:
				f.answer = &CheckAnswer{Problem: bad, Unreachable: true}
			}
		}
		d := decideCredential(f)
		checkOthers(t, d.change, domain.ResourceRepositoryCredential, chains, live)
		if put := d.change != nil && d.change.PutCredential != nil; put != d.seal || put && (f.same || f.url != nil || f.secret != nil || f.answer == nil) {
			t.Fatalf("puts: %v, seals: %v", put, d.seal)
		}
		if d.change == nil {
			return
		}
		put := d.change.PutCredential
		f.chains = slices.DeleteFunc(slices.Clone(f.chains), func(c store.CredentialChain) bool {
			return slices.Contains(d.change.RemoveCredentials, store.CredentialRef{ID: domain.CredentialID(c.Link.UID), Tenant: c.Link.Tenant}) ||
				put != nil && c.Link.UID == put.Link.UID && c.Link.Tenant == put.Link.Tenant
		})
		if put != nil {
			f.chains, f.same, f.placement.Settled = append(f.chains, store.CredentialChain{Link: put.Link, Credential: &put.Credential}), true, true
		}
		if again := decideCredential(f); again.change != nil {
			t.Fatalf("once %+v is written, the same CR still asks for %+v", d.change, again.change)
		}
	})
}
