// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/store"
)

// environmentPlace has an environment with its Secret, and a cluster that takes it.
func environmentPlace(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) *place {
	p := newPlace()
	p.cluster.environment, p.cluster.environmentNow, p.cluster.secret = cr, cr, accessSecret()
	p.reached.connected = reach.Connected{Access: kubeconfig.Access{Server: apiURL, Token: canary}}
	return p
}

// accountPlace is one whose cluster gives a token that ends after a day.
func accountPlace() *place {
	p := environmentPlace(environment(ownAccount))
	p.reached.connected.ServiceAccount, p.reached.connected.Expires = "kube-system/weir-uid-prod", noon.Add(24*time.Hour)
	return p
}

func (p *place) stepEnvironment(t *testing.T, e *Environments) error {
	t.Helper()
	return e.Step(t.Context(), team, "prod")
}

func (p *place) mustStepEnvironment(t *testing.T, e *Environments) {
	t.Helper()
	var later *domain.Later
	if err := p.stepEnvironment(t, e); err != nil && !errors.As(err, &later) {
		t.Fatal(err)
	}
}

// connected takes the environment in.
func (p *place) connectEnvironment(t *testing.T, e *Environments) {
	t.Helper()
	p.mustStepEnvironment(t, e)
	p.connect.answer(t)
	p.mustStepEnvironment(t, e)
	expect(t, "rows", []string{"uid-prod"}, p.rows.uids())
}

func (p *place) goes() { p.cluster.environment, p.cluster.environmentNow = nil, nil }

func TestAClusterIsAskedOnceAndAnswersLater(t *testing.T) {
	t.Parallel()
	p := environmentPlace(environment())
	e := p.environments()
	for range 3 {
		p.mustStepEnvironment(t, e)
	}
	expect(t, "asked", 1, p.connect.asked)
	expect(t, "rows", nil, p.rows.uids())
	p.connect.answer(t)
	for range 3 {
		p.mustStepEnvironment(t, e)
	}
	expect(t, "asked", 1, p.connect.asked)
	expect(t, "changes", 1, len(p.rows.changes))
	expect(t, "announced", []domain.OperationID{"op-1"}, p.outbox.announced)
	asking := "Connecting asking " + apiURL
	expect(t, "shown", []string{asking, asking, asking, "Succeeded", "Succeeded", "Succeeded"}, p.status.lines)
	expect(t, "refers", references{referrer(v1alpha1.ManagedEnvironmentSecretType, team, "prod"): team + "/access"}, p.refs)

	row := p.rows.environments[0].Environment.Credentials
	for what, text := range map[string][]byte{"access": row.SealedAccess, "origin": row.SealedOrigin} {
		if !strings.HasPrefix(string(text), string(tenantA)+"/cluster_credentials/uid-prod/sealed_") {
			t.Errorf("the %s is sealed as %s", what, text)
		}
	}
	// A restarted process asks nobody: the row says what it was made from.
	p.mustStepEnvironment(t, p.environments())
	expect(t, "asked after a restart", 1, p.connect.asked)
}

func TestOtherCredentialsAreAskedAbout(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"another token": func(p *place) {
			p.cluster.secret.Data["kubeconfig"] = []byte(strings.ReplaceAll(string(kubeconfigText()), canary, "another"))
		},
		"other namespaces":    func(p *place) { p.cluster.environment.Spec.Namespaces = []string{"shop"} },
		"cluster resources":   func(p *place) { p.cluster.environment.Spec.ClusterResources = true },
		"an account":          func(p *place) { p.cluster.environment.Spec.CreateNewServiceAccount = true },
		"the row was damaged": func(p *place) { p.rows.environments[0].Environment.Credentials.SealedOrigin = []byte("noise") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := environmentPlace(environment())
			e := p.environments()
			p.connectEnvironment(t, e)
			change(p)
			p.mustStepEnvironment(t, e)
			expect(t, "asked", 2, p.connect.asked)
			expect(t, "changes so far", 1, len(p.rows.changes))
			p.connect.answer(t)
			p.mustStepEnvironment(t, e)
			p.mustStepEnvironment(t, e)
			expect(t, "asked", 2, p.connect.asked)
			expect(t, "changes", 2, len(p.rows.changes))
		})
	}
}

func TestAClusterThatRefusesIsTriedAgain(t *testing.T) {
	t.Parallel()
	p := environmentPlace(environment())
	e := p.environments()
	p.mustStepEnvironment(t, e)
	p.reached.failNext("Connect", &reach.Problem{Reason: v1alpha1.ReasonUnableToValidateClusterCredentials, Message: "did not answer"}, errors.New("secret text of a stranger"))
	for _, want := range []string{"UnableToValidateClusterCredentials did not answer", "UnknownError the cluster could not be asked; this will be tried again"} {
		p.connect.answer(t)
		err := p.stepEnvironment(t, e)
		var later *domain.Later
		if !errors.As(err, &later) || later.After != time.Minute {
			t.Errorf("got %v; want to look again in a minute", err)
		}
		expect(t, "shown", want, p.status.lines[len(p.status.lines)-1])
		p.mustStepEnvironment(t, e)
	}
	expect(t, "rows", nil, p.rows.uids())
}

func TestAConflictOnAnEnvironmentAsksAgain(t *testing.T) {
	t.Parallel()
	p := environmentPlace(environment())
	e := p.environments()
	p.mustStepEnvironment(t, e)
	p.connect.answer(t)
	p.rows.failNext("Apply", domain.ErrConflict)
	p.mustStepEnvironment(t, e)
	expect(t, "asked", 2, p.connect.asked)
	p.connect.answer(t)
	p.mustStepEnvironment(t, e)
	expect(t, "rows", []string{"uid-prod"}, p.rows.uids())
}

func TestATokenIsRenewed(t *testing.T) {
	t.Parallel()
	p := accountPlace()
	e := p.environments()
	p.connectEnvironment(t, e)
	expect(t, "account asked for", "weir-uid-prod", p.reached.given[0].Account)
	p.now = noon.Add(16*time.Hour - time.Second)
	p.mustStepEnvironment(t, e)
	expect(t, "asked", 1, p.connect.asked)

	p.now = noon.Add(16 * time.Hour)
	p.reached.connected.Expires = p.now.Add(24 * time.Hour)
	p.mustStepEnvironment(t, e)
	expect(t, "asked", 2, p.connect.asked)
	p.connect.answer(t)
	// What this process remembers of the new token must wait for its row: with the
	// row as it was, it is the old token that ends.
	p.rows.failNext("Apply", domain.ErrConflict)
	p.mustStepEnvironment(t, e)
	expect(t, "asked", 3, p.connect.asked)
	p.connect.answer(t)
	p.mustStepEnvironment(t, e)
	expect(t, "changes", 2, len(p.rows.changes))
	expect(t, "expires", p.now.Add(24*time.Hour), p.rows.environments[0].Environment.Credentials.TokenExpires)
	p.mustStepEnvironment(t, e)
	expect(t, "asked", 3, p.connect.asked)
}

func TestAnAccountGoesBeforeItsRow(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"taken away": nil, "the cluster is away, and it is tried once": errors.New("timeout")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := accountPlace()
			e := p.environments()
			p.connectEnvironment(t, e)
			p.goes()
			for range 2 {
				p.mustStepEnvironment(t, e)
			}
			expect(t, "rows while the cluster is asked", []string{"uid-prod"}, p.rows.uids())
			if fault != nil {
				p.reached.failNext("Remove", fault)
			}
			p.connect.answer(t)
			p.mustStepEnvironment(t, e)
			expect(t, "asked", []string{"Remove(" + apiURL + " weir-uid-prod)"}, p.reached.log[len(p.reached.log)-1:])
			expect(t, "attempts", 1, p.reached.count("Remove"))
			expect(t, "rows", nil, p.rows.uids())
			expect(t, "announced", []domain.OperationID{"op-1", "op-2"}, p.outbox.announced)
			expect(t, "refers", references{}, p.refs)
			expect(t, "the log says that it stays", fault != nil, strings.Contains(p.log.String(), "stays on its cluster"))
		})
	}
}

func TestAnAccountOfAnUnreadableRowIsGivenUp(t *testing.T) {
	t.Parallel()
	p := accountPlace()
	e := p.environments()
	p.connectEnvironment(t, e)
	p.rows.environments[0].Environment.Credentials.SealedAccess = []byte("noise")
	p.goes()
	p.mustStepEnvironment(t, e)
	expect(t, "rows", nil, p.rows.uids())
	expect(t, "attempts", 0, p.reached.count("Remove"))
	if !strings.Contains(p.log.String(), "stays on the cluster") || strings.Contains(p.log.String(), canary) {
		t.Errorf("the log says:\n%s", p.log.String())
	}
}

// The operation that gave the engine its Secret is collected soon after it ended.
// The engine is told of the end all the same.
func TestTheEnginesSecretGoesLongAfterItsOperation(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"gone":          (*place).goes,
		"being deleted": func(p *place) { environmentDeleted(p.cluster.environment) },
		"made again": func(p *place) {
			cr := environment(environmentOf("uid-new"))
			p.cluster.environment, p.cluster.environmentNow = cr, cr
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := environmentPlace(environment())
			e := p.environments()
			p.connectEnvironment(t, e)
			change(p)
			p.mustStepEnvironment(t, e)
			expect(t, "rows", nil, p.rows.uids())
			expect(t, "announced", announces("op-2", tenantA, domain.ResourceManagedEnvironment, "uid-prod"), p.rows.changes[1].Announce)
		})
	}
}

func TestAnEnvironmentMadeAgainEndsTheOneBefore(t *testing.T) {
	t.Parallel()
	p := accountPlace()
	e := p.environments()
	p.connectEnvironment(t, e)
	cr := environment(environmentOf("uid-new"))
	p.cluster.environment, p.cluster.environmentNow = cr, cr
	p.mustStepEnvironment(t, e)
	p.connect.answer(t)
	p.mustStepEnvironment(t, e)
	expect(t, "removed", 1, p.reached.count("Remove"))
	expect(t, "rows of the one before", nil, p.rows.uids())
	p.connect.answer(t)
	p.mustStepEnvironment(t, e)
	expect(t, "rows", []string{"uid-new"}, p.rows.uids())
}

func TestTheAPIServerIsAskedBeforeAnEnvironmentGoes(t *testing.T) {
	t.Parallel()
	p := environmentPlace(environment())
	e := p.environments()
	p.connectEnvironment(t, e)
	p.cluster.environment = nil
	p.mustStepEnvironment(t, e)
	expect(t, "rows: the cache was behind", []string{"uid-prod"}, p.rows.uids())

	away := errors.New("API server is away")
	p.cluster.failNext("EnvironmentNow", away)
	if err := p.stepEnvironment(t, e); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	expect(t, "rows: nobody confirmed it", []string{"uid-prod"}, p.rows.uids())
}

func TestAFailingOutboxDoesNotUndoAnEnvironment(t *testing.T) {
	t.Parallel()
	full := errors.New("engine cluster is away")
	p := environmentPlace(environment())
	e := p.environments()
	p.mustStepEnvironment(t, e)
	p.connect.answer(t)
	p.outbox.failNext("Announce", full)
	if err := p.stepEnvironment(t, e); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	// The operation waits in the database, where the outbox's own sweep finds it.
	expect(t, "rows", []string{"uid-prod"}, p.rows.uids())
	p.mustStepEnvironment(t, e)
	expect(t, "changes", 1, len(p.rows.changes))
	expect(t, "asked", 1, p.connect.asked)
}

func TestWhatIsNotAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"no Secret":          func(p *place) { p.cluster.secret = nil },
		"no engine":          func(p *place) { p.rows.placement = store.Placement{} },
		"a namespace's end":  func(p *place) { p.cluster.namespace.Terminating = true },
		"beyond the quota":   func(p *place) { p.cluster.older = 50 },
		"no longer there":    (*place).goes,
		"its deletion began": func(p *place) { environmentDeleted(p.cluster.environment) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := environmentPlace(environment(ownAccount))
			e := p.environments()
			p.mustStepEnvironment(t, e)
			change(p)
			p.mustStepEnvironment(t, e)
			expect(t, "asked", 1, p.connect.asked)
			if name != "beyond the quota" {
				// An account that is made for what is gone would stay for ever.
				expect(t, "open", 0, len(p.connect.open))
			}
			expect(t, "rows", nil, p.rows.uids())
		})
	}
}
