// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"testing"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// The cache still shows a namespace that was deleted when a CR of the new one
// arrives. Once it has caught up, the step, which the namespace's arrival causes,
// leaves nothing of the CR with the old tenant.
func TestARowTakenInForAnEarlierNamespaceMovesToTheNewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.cluster.namespaces[team] = kube.Namespace{Name: team, UID: tenantB} // stale
	_ = w.step(t, "a")
	w.cluster.namespaces[team] = kube.Namespace{Name: team, UID: tenantA}
	w.mustStep(t, "a")
	for _, chains := range w.store.chains {
		for _, c := range chains {
			expect(t, "tenant", tenantA, c.Application.Tenant)
		}
	}
}

// The operation that completed is the one that created the Application.
func TestAnOlderCompletedOperationReleasesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")
	w.store.end("uid-a", domain.OperationCompleted)
	w.store.chains = map[string][]store.Chain{} // by hand, or an old backup
	w.cluster.set("a", deployment("a", beingDeleted()))
	w.mustStep(t, "a")
	if w.cluster.count("Release") != 0 {
		t.Error("released although nobody has removed the Application")
	}
}

func TestDeletionNeedsNoEngineWhereNothingWasDeployed(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a", beingDeleted()))
	w.store.ready = ""
	w.mustStep(t, "a")
	expect(t, "released", 1, w.cluster.count("Release"))
}

func TestAFailedRemovalIsExplained(t *testing.T) {
	t.Parallel()
	f := factsOf(deployment("a", beingDeleted()), withRemoval(domain.OperationFailed))
	f.removal.Message = "delete Application: not allowed"
	if d := decideDeployment(f); d.change == nil && errors.Is(d.verdict, waitForResources()) {
		t.Errorf("waits for ever and says %v", d.verdict)
	}
}

func TestTheChainOfAnUpdateIsTheRowThatIsWritten(t *testing.T) {
	t.Parallel()
	f := factsOf(deployment("a", withPath("other")), withChains(chainOf(deployment("a"), atVersion(4), onInstance("engine-2"))))
	d := decideDeployment(f)
	if got := d.chain.Application; got.Instance != "engine-2" || got.Version < 4 {
		t.Errorf("chain shows instance %s, version %d", got.Instance, got.Version)
	}
}

func TestHostileSourcesAreRefused(t *testing.T) {
	t.Parallel()
	for name, cr := range map[string]deploymentOption{
		"option as host (scp)":   withRepo("git@-oProxyCommand=x:path"),
		"option as path (scp)":   withRepo("git@git.example.com:-oProxyCommand=x"),
		"option as host (ssh)":   withRepo("ssh://-oProxyCommand=x/path"),
		"option as user (ssh)":   withRepo("ssh://-oProxyCommand=x@git.example.com/path"),
		"credentials":            withRepo("https://user:secret@git.example.com/x"),
		"ssh password":           withRepo("ssh://git:secret@git.example.com/x"),
		"no host":                withRepo("https://:8443/x"),
		"query":                  withRepo("https://git.example.com/x?ref=main"),
		"space":                  withRepo("git@git.example.com:a b"),
		"line break (scp)":       withRepo("git@git.example.com:a\nb"),
		"revision as option":     withRevision("--upload-pack=x"),
		"revision as range":      withRevision("a..b"),
		"revision w/ line break": withRevision("main\nx"),
		"path of spaces":         withPath(" "),
		"tab in path":            withPath("a\tb"),
	} {
		if _, err := desiredApplication(deployment("a", cr), Policy{}); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestReleaseNeverComesWithRemovalOfTheCRsOwnRow(t *testing.T) {
	t.Parallel()
	cr := deployment("a", beingDeleted())
	d := decideDeployment(factsOf(cr, withChains(chainOf(cr, ofTenant(tenantB))), unsettled()))
	if d.release && d.change != nil && len(d.change.Remove) > 0 {
		t.Error("releases in the same step in which it removes the row")
	}
}

// Another process has taken in generation 3; this one's cache still shows 2.
func TestAnOlderGenerationDoesNotOverwriteANewerOne(t *testing.T) {
	t.Parallel()
	newest := deployment("a", withPath("newer"), withPath("newest")) // generation 3
	w := newWorld(newest).has(chainOf(newest, func(c *store.Chain) {
		c.Application.Spec, c.Application.Generation = wanted("newest"), 3
	}))
	w.cluster.cached["a"] = deployment("a", withPath("newer")) // generation 2
	_ = w.step(t, "a")
	expect(t, "path in the database", "newest", w.store.find("uid-a").Application.Spec.Path)
}

// The schema accepts any user before '@'.
func TestAnotherSSHUserIsAccepted(t *testing.T) {
	t.Parallel()
	if err := checkRepository("deploy@git.example.com:team/app", Policy{}); err != nil {
		t.Error(err)
	}
}

// An empty database knows no tenant, and the engine may still run its applications.
func TestAnEmptyDatabaseReleasesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(deployment("a"))
	w.mustStep(t, "a")
	w.store.chains, w.store.operations, w.store.access = map[string][]store.Chain{}, map[string][]store.Operation{}, map[domain.TenantID]domain.InstanceID{}
	w.cluster.set("a", deployment("a", beingDeleted(), func(d *v1alpha1.GitOpsDeployment) { d.Status.ObservedGeneration = 1 }))
	w.restarted().mustStep(t, "a")
	expect(t, "released", 0, w.cluster.count("Release"))
}
