// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// wholeDecision compares all of a decision but the version of the row that the
// chain shows: versions are given by the database.
var wholeDecision = cmp.Options{
	cmp.AllowUnexported(deploymentDecision{}),
	cmpopts.EquateEmpty(),
	cmp.FilterPath(func(p cmp.Path) bool { return p.String() == "chain.Application.Version" }, cmp.Ignore()),
}

// row is the application row of deployment "a" at a path, as it is inserted.
func row(path string, generation int64) store.Application {
	return store.Application{
		ID: "uid-a", Tenant: tenantA, Name: "a", Spec: wanted(path),
		Instance: engineID, Environment: domain.LocalEnvironment(tenantA), Generation: generation,
	}
}

var linkA = store.Link{Application: "uid-a", Tenant: tenantA, Namespace: team, Name: "a"}

// written is the chain that the CR "a" has once a row is written.
func written(r store.Application) *store.Chain {
	return &store.Chain{Link: linkA, Application: r}
}

func refusedPath() *domain.Refusal {
	return &domain.Refusal{
		Field: "spec.source.path", Problem: "is empty",
		Remedy: `name a folder inside the repository, such as "deploy" or, for all of it, "."`,
	}
}

func TestDecideLiveDeployment(t *testing.T) {
	t.Parallel()
	a := deployment("a")
	own := chainOf(a)
	inserted := &store.NewApplication{Application: row("deploy", 1), Link: linkA}
	for name, c := range map[string]struct {
		facts deploymentFacts
		want  deploymentDecision
	}{
		"new": {
			factsOf(a),
			deploymentDecision{
				change: &store.Change{Insert: inserted, Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")}},
				chain:  written(row("deploy", 1)),
			},
		},
		"new, and the tenant's first": {
			factsOf(a, unsettled()),
			deploymentDecision{
				change: &store.Change{
					Tenant:   &store.Tenant{ID: tenantA, Namespace: team, Instance: engineID},
					Insert:   inserted,
					Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")},
				},
				chain: written(row("deploy", 1)),
			},
		},
		"unchanged": {
			factsOf(a, withChains(chainOf(a, reporting("Healthy"), withOperation("earlier", domain.OperationWaiting)))),
			deploymentDecision{chain: new(chainOf(a, reporting("Healthy"), withOperation("earlier", domain.OperationWaiting)))},
		},
		"unchanged but for the order of options": {
			factsOf(deployment("a", withOptions("PruneLast=true", "CreateNamespace=true")),
				withChains(chainOf(a, func(c *store.Chain) { c.Application.Spec = wanted("deploy", "CreateNamespace=true", "PruneLast=true") }))),
			deploymentDecision{chain: new(chainOf(a, func(c *store.Chain) {
				c.Application.Spec = wanted("deploy", "CreateNamespace=true", "PruneLast=true")
			}))},
		},
		"a generation that changed nothing": {
			factsOf(deployment("a", withPath("deploy")), withChains(own)),
			deploymentDecision{chain: &own},
		},
		"changed": {
			factsOf(deployment("a", withPath("other")), withChains(chainOf(a, atVersion(4), reporting("Healthy"), withOperation("earlier", domain.OperationFailed)))),
			deploymentDecision{
				change: &store.Change{
					Update:   new(func() store.Application { r := row("other", 2); r.Version = 4; return r }()),
					Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")},
				},
				chain: new(func() store.Chain {
					c := chainOf(a, reporting("Healthy"))
					c.Application = row("other", 2)
					return c
				}()),
			},
		},
		"the row points to another environment": {
			factsOf(a, withChains(chainOf(a, func(c *store.Chain) { c.Application.Environment = "uid-of-prod" }))),
			deploymentDecision{
				change: &store.Change{
					LeavesEnvironment: tenantA,
					Update:            new(func() store.Application { r := row("deploy", 1); r.Version = 1; return r }()),
					Announce:          []store.NewOperation{announcement("op-1", tenantA, "uid-a")},
				},
				chain: written(row("deploy", 1)),
			},
		},
		"invalid, and never deployed": {
			factsOf(deployment("a", withPath(""))),
			deploymentDecision{verdict: refusedPath()},
		},
		"invalid keeps what was deployed": {
			factsOf(deployment("a", withPath("")), withChains(own)),
			deploymentDecision{chain: &own, verdict: refusedPath()},
		},
		"an environment waits for it": {
			factsOf(deployment("a", withDestination("prod", "shop")), withChains(own)),
			deploymentDecision{chain: &own, verdict: &domain.Waiting{For: "GitOpsDeploymentManagedEnvironment prod, which is not there"}},
		},
		"new in a terminating namespace": {
			factsOf(a, terminating()),
			deploymentDecision{verdict: &domain.Waiting{For: "its namespace, which is being deleted"}},
		},
		"changed in a terminating namespace": {
			factsOf(deployment("a", withPath("other")), withChains(own), terminating()),
			deploymentDecision{chain: &own, verdict: &domain.Waiting{For: "its namespace, which is being deleted"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decideDeployment(c.facts), wholeDecision); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Another UID under the name is another object, whatever becomes of the CR that
// is there now.
func TestDecideWithAnotherUIDUnderTheName(t *testing.T) {
	t.Parallel()
	a := deployment("a")
	old := chainOf(deployment("a", withUID("uid-old")))
	own := chainOf(a)
	removeOld := []store.ApplicationRef{{ID: "uid-old", Tenant: tenantA}}
	announceOld := announcement("op-1", tenantA, "uid-old")
	for name, c := range map[string]struct {
		facts deploymentFacts
		want  deploymentDecision
	}{
		"recreated": {
			factsOf(a, withChains(old)),
			deploymentDecision{
				change: &store.Change{
					Remove:   removeOld,
					Insert:   &store.NewApplication{Application: row("deploy", 1), Link: linkA},
					Announce: []store.NewOperation{announceOld, announcement("op-2", tenantA, "uid-a")},
				},
				chain: written(row("deploy", 1)),
			},
		},
		"recreated, and taken in already": {
			factsOf(a, withChains(old, own)),
			deploymentDecision{change: &store.Change{Remove: removeOld, Announce: []store.NewOperation{announceOld}}, chain: &own},
		},
		"recreated with a mistake": {
			factsOf(deployment("a", withPath("")), withChains(old)),
			deploymentDecision{change: &store.Change{Remove: removeOld, Announce: []store.NewOperation{announceOld}}, verdict: refusedPath()},
		},
		"recreated with an environment": {
			factsOf(deployment("a", withDestination("prod", "shop")), withChains(old)),
			deploymentDecision{
				change:  &store.Change{Remove: removeOld, Announce: []store.NewOperation{announceOld}},
				verdict: &domain.Waiting{For: "GitOpsDeploymentManagedEnvironment prod, which is not there"},
			},
		},
		"recreated in a terminating namespace": {
			factsOf(a, withChains(old), terminating()),
			deploymentDecision{
				change:  &store.Change{Remove: removeOld, Announce: []store.NewOperation{announceOld}},
				verdict: &domain.Waiting{For: "its namespace, which is being deleted"},
			},
		},
		"recreated together with its namespace": {
			factsOf(a, withChains(chainOf(deployment("a", withUID("uid-old")), ofTenant(tenantB))), unsettled()),
			deploymentDecision{
				change: &store.Change{
					Tenant:   &store.Tenant{ID: tenantA, Namespace: team, Instance: engineID},
					Remove:   []store.ApplicationRef{{ID: "uid-old", Tenant: tenantB}},
					Insert:   &store.NewApplication{Application: row("deploy", 1), Link: linkA},
					Announce: []store.NewOperation{announcement("op-1", tenantB, "uid-old"), announcement("op-2", tenantA, "uid-a")},
				},
				chain: written(row("deploy", 1)),
			},
		},
		"its own UID in another tenant's row": {
			factsOf(a, withChains(chainOf(a, ofTenant(tenantB)))),
			deploymentDecision{
				change: &store.Change{
					Remove:   []store.ApplicationRef{{ID: "uid-a", Tenant: tenantB}},
					Insert:   &store.NewApplication{Application: row("deploy", 1), Link: linkA},
					Announce: []store.NewOperation{announcement("op-1", tenantB, "uid-a"), announcement("op-2", tenantA, "uid-a")},
				},
				chain: written(row("deploy", 1)),
			},
		},
		"nothing there, no rows": {factsOf(nil), deploymentDecision{}},
		"nothing there": {
			factsOf(nil, withChains(old, own)),
			deploymentDecision{change: &store.Change{
				Remove:   []store.ApplicationRef{{ID: "uid-old", Tenant: tenantA}, {ID: "uid-a", Tenant: tenantA}},
				Announce: []store.NewOperation{announceOld, announcement("op-2", tenantA, "uid-a")},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decideDeployment(c.facts), wholeDecision); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDecideDeletion(t *testing.T) {
	t.Parallel()
	going := deployment("a", beingDeleted())
	own := chainOf(going)
	old := chainOf(deployment("a", withUID("uid-old")))
	removeOwn := &store.Change{
		Remove:   []store.ApplicationRef{{ID: "uid-a", Tenant: tenantA}},
		Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")},
	}
	wait := &domain.Waiting{For: "the engine to remove what it deployed"}
	for name, c := range map[string]struct {
		facts deploymentFacts
		want  deploymentDecision
	}{
		"with rows":                            {factsOf(going, withChains(own)), deploymentDecision{change: removeOwn, verdict: wait}},
		"with rows, though invalid":            {factsOf(deployment("a", withPath(""), beingDeleted()), withChains(own)), deploymentDecision{change: removeOwn, verdict: wait}},
		"with rows in a terminating namespace": {factsOf(going, withChains(own), terminating()), deploymentDecision{change: removeOwn, verdict: wait}},
		"the operation waits":                  {factsOf(going, withRemoval(domain.OperationWaiting)), deploymentDecision{verdict: wait}},
		"the operation is under way":           {factsOf(going, withRemoval(domain.OperationInProgress)), deploymentDecision{verdict: wait}},
		"the operation failed":                 {factsOf(going, withRemoval(domain.OperationFailed)), deploymentDecision{verdict: &domain.Waiting{For: "the engine, which could not remove what it deployed: not allowed"}}},
		"the operation is completed":           {factsOf(going, withRemoval(domain.OperationCompleted)), deploymentDecision{release: true}},
		"an earlier operation is completed": {
			factsOf(going, withRemoval(domain.OperationCompleted), func(f *deploymentFacts) { f.removal.Message = "" }),
			deploymentDecision{change: &store.Change{Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")}}, verdict: wait},
		},
		"with rows of another tenant": {
			factsOf(going, withChains(chainOf(going, ofTenant(tenantB))), unsettled()),
			deploymentDecision{
				change: &store.Change{
					Remove:   []store.ApplicationRef{{ID: "uid-a", Tenant: tenantB}},
					Announce: []store.NewOperation{announcement("op-1", tenantB, "uid-a")},
				},
				verdict: wait,
			},
		},
		"the tenant never had an application": {factsOf(going, unsettled()), deploymentDecision{release: true}},
		"the rows went without an operation": {
			factsOf(going),
			deploymentDecision{change: &store.Change{Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-a")}}, verdict: wait},
		},
		"completed, and another UID is left": {
			factsOf(going, withChains(old), withRemoval(domain.OperationCompleted)),
			deploymentDecision{
				change:  &store.Change{Remove: []store.ApplicationRef{{ID: "uid-old", Tenant: tenantA}}, Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-old")}},
				release: true,
			},
		},
		"with rows, and another UID is left": {
			factsOf(going, withChains(own, old)),
			deploymentDecision{
				change: &store.Change{
					Remove:   []store.ApplicationRef{{ID: "uid-old", Tenant: tenantA}, {ID: "uid-a", Tenant: tenantA}},
					Announce: []store.NewOperation{announcement("op-1", tenantA, "uid-old"), announcement("op-2", tenantA, "uid-a")},
				},
				verdict: wait,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(c.want, decideDeployment(c.facts), wholeDecision); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// An application stays where it is, although its tenant's next one would go
// elsewhere.
func TestAnUpdateStaysOnItsInstance(t *testing.T) {
	t.Parallel()
	f := factsOf(deployment("a", withPath("other")), withChains(chainOf(deployment("a"), onInstance("engine-2"))))
	got := decideDeployment(f).change
	if got == nil || got.Update == nil || len(got.Announce) != 1 {
		t.Fatalf("decided %+v; want an update and its operation", got)
	}
	if got.Update.Instance != "engine-2" || got.Announce[0].Instance != "engine-2" {
		t.Errorf("row to %s, operation to %s; want both on engine-2", got.Update.Instance, got.Announce[0].Instance)
	}
}
