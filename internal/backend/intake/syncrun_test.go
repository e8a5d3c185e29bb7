// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"testing"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// runPlace has deployment "shop", taken in, and a run of it.
func runPlace(cr *v1alpha1.GitOpsDeploymentSyncRun, chains ...store.SyncChain) *place {
	p := newPlace()
	p.cluster.run, p.cluster.runNow = cr, cr
	p.cluster.deployment = deployment("shop")
	p.rows.deployments = []store.Chain{chainOf(deployment("shop"))}
	p.rows.syncs = chains
	return p
}

func TestARunIsTakenInAndAnnounced(t *testing.T) {
	t.Parallel()
	p := runPlace(run("r"))
	steps := p.syncRuns()
	for range 2 {
		if err := steps.Step(t.Context(), team, "r"); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, "rows", []string{"uid-r"}, p.rows.uids())
	expect(t, "changes", 1, len(p.rows.changes))
	// The second step finds the operation waiting and tells of it once more.
	expect(t, "announced", []domain.OperationID{"op-1", "op-1"}, p.outbox.announced)
	expect(t, "the API server was asked", 0, p.cluster.count("SyncRunNow"))
}

func TestARunMadeAgainIsOneTransaction(t *testing.T) {
	t.Parallel()
	p := runPlace(run("r"), syncOf("uid-old"))
	if err := p.syncRuns().Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "rows", []string{"uid-r"}, p.rows.uids())
	expect(t, "changes", 1, len(p.rows.changes))
	expect(t, "shown", []string{"<nil>"}, p.status.lines)
}

func TestAConflictOnARunDecidesAgain(t *testing.T) {
	t.Parallel()
	p := runPlace(run("r"))
	p.rows.failNext("Apply", domain.ErrConflict, domain.ErrMissingParent)
	if err := p.syncRuns().Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "reads", 3, p.rows.count("SyncChains"))
	expect(t, "rows", []string{"uid-r"}, p.rows.uids())

	p = runPlace(run("r"))
	p.rows.failNext("Apply", domain.ErrConflict, domain.ErrConflict, domain.ErrConflict)
	if err := p.syncRuns().Step(t.Context(), team, "r"); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want the conflict, for the queue to back off", err)
	}
	expect(t, "reads", decideTries, p.rows.count("SyncChains"))
}

func TestAConflictWhileShowingARunReadsAgain(t *testing.T) {
	t.Parallel()
	p := runPlace(run("r"))
	p.status.failNext("Show", domain.ErrConflict)
	if err := p.syncRuns().Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "changes", 1, len(p.rows.changes))
	expect(t, "shown", 1, len(p.status.lines))
}

func TestTheAPIServerIsAskedBeforeARunGoes(t *testing.T) {
	t.Parallel()
	p := runPlace(nil, syncOf("uid-r"))
	p.cluster.runNow = run("r")
	if err := p.syncRuns().Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "rows: the cache was behind", []string{"uid-r"}, p.rows.uids())

	away := errors.New("API server is away")
	p = runPlace(nil, syncOf("uid-r"))
	p.cluster.failNext("SyncRunNow", away)
	if err := p.syncRuns().Step(t.Context(), team, "r"); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	expect(t, "rows: nobody confirmed it", []string{"uid-r"}, p.rows.uids())

	if err := p.syncRuns().Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "rows", nil, p.rows.uids())
	expect(t, "announced", []domain.OperationID{"op-1"}, p.outbox.announced)
}

func TestAFailingOutboxLeavesTheOperationForLater(t *testing.T) {
	t.Parallel()
	full := errors.New("engine cluster is away")
	p := runPlace(run("r"))
	p.outbox.failNext("Announce", full)
	steps := p.syncRuns()
	if err := steps.Step(t.Context(), team, "r"); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	expect(t, "rows", []string{"uid-r"}, p.rows.uids())
	if err := steps.Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "announced", []domain.OperationID{"op-1"}, p.outbox.announced)
	expect(t, "changes", 1, len(p.rows.changes))
}

func TestARunWaitsForItsDeployment(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"absent":        func(p *place) { p.cluster.deployment = nil },
		"being deleted": func(p *place) { p.cluster.deployment = deployment("shop", beingDeleted()) },
		"not taken in":  func(p *place) { p.rows.deployments = nil },
		"another UID's": func(p *place) { p.rows.deployments = []store.Chain{chainOf(deployment("shop", withUID("uid-old")))} },
		"an earlier namespace's": func(p *place) {
			p.rows.deployments = []store.Chain{chainOf(deployment("shop"), ofTenant(tenantB))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := runPlace(run("r"))
			change(p)
			err := p.syncRuns().Step(t.Context(), team, "r")
			var waiting *domain.Waiting
			if !errors.As(err, &waiting) {
				t.Fatalf("got %v; want that it waits", err)
			}
			expect(t, "shown", []string{waiting.Error()}, p.status.lines)
			expect(t, "changes", 0, len(p.rows.changes))
		})
	}
}

func TestAnEndedRunStaysItsTimeAndGoes(t *testing.T) {
	t.Parallel()
	p := runPlace(run("r", runFinished(noon)), syncOf("uid-r", syncEnded(noon)))
	steps := p.syncRuns()
	p.now = noon.Add(59 * time.Minute)
	var later *domain.Later
	if err := steps.Step(t.Context(), team, "r"); !errors.As(err, &later) || later.After != time.Minute {
		t.Errorf("got %v; want to look again in a minute", err)
	}
	expect(t, "deleted", 0, p.cluster.count("DeleteSyncRun"))
	p.now = noon.Add(time.Hour)
	if err := steps.Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "deleted", 1, p.cluster.count("DeleteSyncRun"))
	expect(t, "rows stay until the CR is gone", []string{"uid-r"}, p.rows.uids())

	p.cluster.run, p.cluster.runNow = nil, nil
	if err := steps.Step(t.Context(), team, "r"); err != nil {
		t.Fatal(err)
	}
	expect(t, "rows", nil, p.rows.uids())
	expect(t, "announced: it is over", nil, p.outbox.announced)
}

func TestStepErrorsOfRunsAreHandedOn(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for _, method := range []string{"SyncRun", "Namespace", "Deployment"} {
		p := runPlace(run("r"))
		p.cluster.failNext(method, away)
		if err := p.syncRuns().Step(t.Context(), team, "r"); !errors.Is(err, away) {
			t.Errorf("%s: got %v", method, err)
		}
		expect(t, method+": changes", 0, len(p.rows.changes))
	}
	for _, method := range []string{"SyncChains", "Chains"} {
		p := runPlace(run("r"))
		p.rows.failNext(method, away)
		if err := p.syncRuns().Step(t.Context(), team, "r"); !errors.Is(err, away) {
			t.Errorf("%s: got %v", method, err)
		}
	}
}
