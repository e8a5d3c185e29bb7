// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

type runFactsOption func(*syncRunFacts)

func runFacts(cr *v1alpha1.GitOpsDeploymentSyncRun, options ...runFactsOption) syncRunFacts {
	shop := chainOf(deployment("shop"))
	f := syncRunFacts{cr: cr, tenant: tenantA, quotas: DefaultQuotas(), deployment: &shop, now: noon, ttl: time.Hour, newID: counter()}
	if cr == nil {
		f.tenant = ""
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

func withSyncs(c ...store.SyncChain) runFactsOption {
	return func(f *syncRunFacts) { f.chains = c }
}

func TestDecideSyncRun(t *testing.T) {
	t.Parallel()
	own := syncOf("uid-r")
	link := own.Link
	inserted := store.SyncOperation{ID: "uid-r", Tenant: tenantA, Application: "uid-shop", Deployment: "shop", Revision: "v1", RunningLimit: 20}
	taken := syncRunDecision{
		change: &store.Change{
			InsertSync: &store.NewSync{Sync: inserted, Link: link},
			Announce:   announces("op-1", tenantA, domain.ResourceSyncOperation, "uid-r"),
		},
		chain: &store.SyncChain{Link: link, Sync: &inserted},
	}
	limited := inserted
	limited.RunningLimit = 1
	removal := func(t domain.TenantID, uid string) *store.Change {
		return &store.Change{
			RemoveSyncs: []store.SyncRef{{ID: domain.SyncOperationID(uid), Tenant: t}},
			Announce:    announces("op-1", t, domain.ResourceSyncOperation, uid),
		}
	}
	silent := func(uid string) *store.Change {
		return &store.Change{RemoveSyncs: []store.SyncRef{{ID: domain.SyncOperationID(uid), Tenant: tenantA}}}
	}
	ended := syncOf("uid-r", syncEnded(noon.Add(-time.Minute)))
	for name, c := range map[string]struct {
		facts syncRunFacts
		want  syncRunDecision
	}{
		"new": {runFacts(run("r")), taken},
		"new, where the quota is none: one at a time": {
			runFacts(run("r"), func(f *syncRunFacts) { f.quotas.RunningSyncs = 0 }),
			syncRunDecision{
				change: &store.Change{
					InsertSync: &store.NewSync{Sync: limited, Link: link},
					Announce:   announces("op-1", tenantA, domain.ResourceSyncOperation, "uid-r"),
				},
				chain: &store.SyncChain{Link: link, Sync: &limited},
			},
		},
		"no deployment yet": {
			runFacts(run("r"), func(f *syncRunFacts) { f.deployment = nil }),
			syncRunDecision{verdict: &domain.Waiting{For: "GitOpsDeployment shop, which is not there or not taken in yet"}},
		},
		"the namespace goes": {
			runFacts(run("r"), func(f *syncRunFacts) { f.terminating = true }),
			syncRunDecision{verdict: &domain.Waiting{For: "its namespace, which is being deleted"}},
		},
		"a revision that is none": {
			runFacts(run("r", runRevision("a..b"))),
			syncRunDecision{verdict: &domain.Refusal{Field: "spec.revisionID", Problem: "is not the name of one revision", Remedy: "name a branch, a tag or a commit"}},
		},
		"its deployment was removed while it ran": {
			runFacts(run("r", runStarted)),
			syncRunDecision{verdict: &domain.Ended{Why: "its GitOpsDeployment was removed while it ran"}},
		},
		"taken in": {runFacts(run("r"), withSyncs(own)), syncRunDecision{chain: &own}},
		"taken in, and its spec was changed": {
			runFacts(run("r", runRevision("v2")), withSyncs(own)),
			syncRunDecision{chain: &own, verdict: &domain.Refusal{
				Field: "spec", Problem: "is immutable, and was changed after the run was taken in", Remedy: "create another GitOpsDeploymentSyncRun instead",
			}},
		},
		"its row is gone, and only the link is left": {
			runFacts(run("r"), withSyncs(syncOf("uid-r", syncGone))),
			syncRunDecision{change: silent("uid-r"), verdict: &domain.Ended{Why: "its GitOpsDeployment was removed while it ran"}},
		},
		"ended, and not shown yet": {
			runFacts(run("r"), withSyncs(ended)),
			syncRunDecision{chain: &ended, stays: 59 * time.Minute},
		},
		"ended long ago, and not shown yet: it stays until it is": {
			runFacts(run("r"), withSyncs(syncOf("uid-r", syncEnded(noon.Add(-2*time.Hour))))),
			syncRunDecision{chain: new(syncOf("uid-r", syncEnded(noon.Add(-2*time.Hour)))), stays: -time.Hour},
		},
		"ended and shown": {
			runFacts(run("r", runFinished(noon.Add(-time.Minute))), withSyncs(ended)),
			syncRunDecision{chain: &ended, stays: 59 * time.Minute},
		},
		"has stayed its time": {
			runFacts(run("r", runFinished(noon.Add(-time.Hour))), withSyncs(ended)),
			syncRunDecision{chain: &ended, expired: true},
		},
		"has stayed its own time": {
			runFacts(run("r", runTTL("1m"), runFinished(noon.Add(-time.Minute))), withSyncs(ended)),
			syncRunDecision{chain: &ended, expired: true},
		},
		"ended, and its rows went with the deployment: it is not begun again": {
			runFacts(run("r", runFinished(noon))),
			syncRunDecision{stays: time.Hour},
		},
		"gone while it ran":          {runFacts(nil, withSyncs(own)), syncRunDecision{change: removal(tenantA, "uid-r")}},
		"gone after it ended":        {runFacts(nil, withSyncs(ended)), syncRunDecision{change: silent("uid-r")}},
		"gone with its deployment":   {runFacts(nil, withSyncs(syncOf("uid-r", syncGone))), syncRunDecision{change: silent("uid-r")}},
		"gone, and never announced":  {runFacts(nil, withSyncs(syncOf("uid-r", syncWithoutOperation))), syncRunDecision{change: silent("uid-r")}},
		"gone, and nothing is known": {runFacts(nil), syncRunDecision{}},
		"being deleted":              {runFacts(run("r", runDeleted), withSyncs(own)), syncRunDecision{change: removal(tenantA, "uid-r")}},
		"made again under its name": {
			runFacts(run("r"), withSyncs(syncOf("uid-old"))),
			syncRunDecision{
				change: &store.Change{
					RemoveSyncs: []store.SyncRef{{ID: "uid-old", Tenant: tenantA}},
					InsertSync:  &store.NewSync{Sync: inserted, Link: link},
					Announce: append(announces("op-1", tenantA, domain.ResourceSyncOperation, "uid-old"),
						announces("op-2", tenantA, domain.ResourceSyncOperation, "uid-r")...),
				},
				chain: taken.chain,
			},
		},
		"an earlier namespace's": {
			runFacts(run("r"), withSyncs(syncOf("uid-old", syncTenant(tenantB)), own)),
			syncRunDecision{change: removal(tenantB, "uid-old"), chain: &own},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decideSyncRun(c.facts)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(syncRunDecision{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTimeToLive(t *testing.T) {
	t.Parallel()
	for ttl, want := range map[string]time.Duration{
		"": time.Hour, "10m": 10 * time.Minute, "48h": 48 * time.Hour, "0s": 0,
		"-1m": time.Hour, "soon": time.Hour, "10": time.Hour,
	} {
		expect(t, "with "+ttl, want, timeToLive(run("r", runTTL(ttl)), time.Hour))
	}
	expect(t, "without the annotation", time.Hour, timeToLive(run("r"), time.Hour))
}

func TestQuotasIn(t *testing.T) {
	t.Parallel()
	standard := Quotas{Deployments: 10, Environments: 5, Credentials: 4, RunningSyncs: 3}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        Quotas
	}{
		"none":               {nil, standard},
		"all":                {map[string]string{QuotaDeployments: "1", QuotaEnvironments: "2", QuotaCredentials: "3", QuotaRunningSyncs: "4"}, Quotas{1, 2, 3, 4}},
		"one":                {map[string]string{QuotaEnvironments: "50"}, Quotas{10, 50, 4, 3}},
		"nothing at all":     {map[string]string{QuotaDeployments: "0"}, Quotas{0, 5, 4, 3}},
		"negative":           {map[string]string{QuotaDeployments: "-1"}, standard},
		"no number":          {map[string]string{QuotaDeployments: "many", QuotaCredentials: "1.5", QuotaEnvironments: ""}, standard},
		"beyond all numbers": {map[string]string{QuotaDeployments: "99999999999999999999"}, standard},
		"somebody else's":    {map[string]string{"example.com/quota-deployments": "1"}, standard},
	} {
		expect(t, name, c.want, standard.In(c.annotations))
	}
	expect(t, "the standard is left alone", Quotas{10, 5, 4, 3}, standard)
}

func TestBeyond(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before, quota int
		refused       bool
	}{{0, 1, false}, {1, 1, true}, {2, 1, true}, {0, 0, true}, {9, 10, false}} {
		if err := beyond(QuotaCredentials, "credentials", c.before, c.quota); (err != nil) != c.refused {
			t.Errorf("%d before, of %d: %v", c.before, c.quota, err)
		}
	}
	want := "quota managedgitops.io/quota-credentials allows this namespace 3 GitOpsDeploymentRepositoryCredentials, and there are as many that are older than this one; delete one, or ask your operator for a larger quota"
	expect(t, "message", want, beyond(QuotaCredentials, "GitOpsDeploymentRepositoryCredentials", 3, 3).Error())
}

func TestDestination(t *testing.T) {
	t.Parallel()
	row := func(change func(*store.Environment)) *environmentFacts {
		e := connectedAs("uid-prod").Environment
		change(e)
		return &environmentFacts{row: e}
	}
	limited := func(e *store.Environment) { e.Credentials.Namespaces = []string{"shop", "stock"} }
	for name, c := range map[string]struct {
		spec      domain.ApplicationSpec
		facts     *environmentFacts
		want      domain.EnvironmentID
		err       error
		automated bool
	}{
		"none":                            {domain.ApplicationSpec{Namespace: team, Automated: true}, nil, domain.LocalEnvironment(tenantA), nil, true},
		"connected":                       {domain.ApplicationSpec{Environment: "prod", Namespace: "any", Automated: true}, row(func(*store.Environment) {}), "uid-prod", nil, true},
		"manual stays so":                 {domain.ApplicationSpec{Environment: "prod"}, row(func(*store.Environment) {}), "uid-prod", nil, false},
		"the environment allows no other": {domain.ApplicationSpec{Environment: "prod", Automated: true}, row(func(e *store.Environment) { e.AllowAutomated = false }), "uid-prod", nil, false},
		"a namespace it lists":            {domain.ApplicationSpec{Environment: "prod", Namespace: "stock"}, row(limited), "uid-prod", nil, false},
		"a namespace it does not list": {
			domain.ApplicationSpec{Environment: "prod", Namespace: "kube-system"},
			row(limited), "",
			&domain.Refusal{
				Field: "spec.destination.namespace", Problem: "is not one of the namespaces that GitOpsDeploymentManagedEnvironment prod lists",
				Remedy: "use one of them, or add it to spec.namespaces of the environment",
			}, false,
		},
		"absent": {
			domain.ApplicationSpec{Environment: "prod"},
			nil, "",
			&domain.Waiting{For: "GitOpsDeploymentManagedEnvironment prod, which is not there"}, false,
		},
		"not connected": {
			domain.ApplicationSpec{Environment: "prod"},
			&environmentFacts{problem: "is not connected; its own conditions say why"}, "",
			&domain.Waiting{For: "GitOpsDeploymentManagedEnvironment prod, which is not connected; its own conditions say why"}, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOf(deployment("a"), func(f *deploymentFacts) { f.environment = c.facts })
			got, err := destination(f, &c.spec)
			expect(t, "environment", c.want, got)
			expect(t, "error", c.err, err)
			if err == nil {
				expect(t, "automated", c.automated, c.spec.Automated)
			}
		})
	}
}
