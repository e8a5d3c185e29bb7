// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/store"
)

// credentialPlace has a credential with its Secret, and a repository that takes it.
func credentialPlace(cr *v1alpha1.GitOpsDeploymentRepositoryCredential) *place {
	p := newPlace()
	p.cluster.credential, p.cluster.credentialNow, p.cluster.secret = cr, cr, login()
	return p
}

// stepCredential gives when the step wants to look again.
func (p *place) stepCredential(t *testing.T, c *Credentials) time.Duration {
	t.Helper()
	err := c.Step(t.Context(), team, "git")
	var later *domain.Later
	switch {
	case errors.As(err, &later):
		return later.After
	case err != nil:
		t.Fatal(err)
	}
	return 0
}

func (p *place) storeCredential(t *testing.T, c *Credentials) {
	t.Helper()
	p.stepCredential(t, c)
	p.checks.answer(t)
	p.stepCredential(t, c)
	expect(t, "rows", []string{"uid-git"}, p.rows.uids())
}

func TestARepositoryIsAskedOnceAndAnswersLater(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	for range 3 {
		p.stepCredential(t, c)
	}
	expect(t, "asked", 1, p.checks.asked)
	expect(t, "rows", nil, p.rows.uids())
	p.checks.answer(t)
	for range 3 {
		expect(t, "again", recheckAfterOK, p.stepCredential(t, c))
	}
	expect(t, "asked", 1, p.checks.asked)
	expect(t, "changes", 1, len(p.rows.changes))
	expect(t, "announced", []domain.OperationID{"op-1"}, p.outbox.announced)
	expect(t, "refers", references{referrer(v1alpha1.RepositoryCredentialSecretType, team, "git"): team + "/login"}, p.refs)
	if len(p.reached.login) != 1 || p.reached.login[0] != (gitremote.Credential{Username: "robot", Password: canary}) {
		t.Errorf("asked with %v", p.reached.login)
	}
	row := p.rows.credentials[0].Credential
	expect(t, "key", "", string(row.SealedSSHKey))
	if !strings.HasPrefix(string(row.SealedPassword), string(tenantA)+"/repository_credentials/uid-git") || !strings.HasSuffix(string(row.SealedPassword), "/sealed_password="+canary) {
		t.Errorf("the password is sealed as %s", row.SealedPassword)
	}
}

func TestARepositoryIsAskedAgainNowAndThen(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	p.storeCredential(t, c)
	p.now = noon.Add(recheckAfterOK - time.Second)
	expect(t, "again", time.Second, p.stepCredential(t, c))
	expect(t, "asked", 1, p.checks.asked)
	p.now = noon.Add(recheckAfterOK)
	p.stepCredential(t, c)
	expect(t, "asked", 2, p.checks.asked)
	p.reached.failNext("Check", gitremote.ErrInvalidCredentials)
	p.checks.answer(t)
	expect(t, "again", recheckAfterFailure, p.stepCredential(t, c))
	expect(t, "rows: the engine keeps what it has", []string{"uid-git"}, p.rows.uids())
	expect(t, "changes", 1, len(p.rows.changes))
	p.now = p.now.Add(recheckAfterFailure)
	p.stepCredential(t, c)
	p.checks.answer(t)
	expect(t, "again", recheckAfterOK, p.stepCredential(t, c))
	expect(t, "shown last", "accepted", p.status.lines[len(p.status.lines)-1])
}

// An answer that was given is not lost with the write that followed it.
func TestAnAnswerSurvivesAConflict(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	p.stepCredential(t, c)
	p.checks.answer(t)
	p.rows.failNext("Apply", domain.ErrConflict)
	p.stepCredential(t, c)
	expect(t, "rows", []string{"uid-git"}, p.rows.uids())
	expect(t, "asked", 1, p.checks.asked)

	away := errors.New("database is away")
	p.cluster.secret = loginSecret(map[string]string{"password": "another"})
	p.stepCredential(t, c)
	p.checks.answer(t)
	p.rows.failNext("Apply", away)
	if err := c.Step(t.Context(), team, "git"); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	p.stepCredential(t, c)
	expect(t, "changes", 2, len(p.rows.changes))
	expect(t, "asked", 2, p.checks.asked)
}

func TestWhatARepositoryAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		reason v1alpha1.ConditionReason
		stored bool
	}{
		"accepted":        {nil, "", true},
		"wrong password":  {gitremote.ErrInvalidCredentials, v1alpha1.ReasonInvalidCredentials, false},
		"away":            {fmt.Errorf("dial: %w", gitremote.ErrUnreachable), v1alpha1.ReasonInvalidCredentials, true},
		"denied":          {gitremote.ErrDenied, v1alpha1.ReasonInvalidRepositoryURL, false},
		"no repository":   {gitremote.ErrNotFound, v1alpha1.ReasonInvalidRepositoryURL, false},
		"no git server":   {gitremote.ErrNotGit, v1alpha1.ReasonInvalidRepositoryURL, false},
		"another problem": {errors.New("odd"), v1alpha1.ReasonInvalidCredentials, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := credentialPlace(credential())
			steps := p.credentials()
			if c.err != nil {
				p.reached.failNext("Check", c.err)
			}
			answer := steps.check(t.Context(), repo, gitremote.Credential{})
			if c.reason == "" && answer.Problem != nil || c.reason != "" && (answer.Problem == nil || answer.Problem.Reason != c.reason) {
				t.Errorf("got %+v; want %s", answer.Problem, c.reason)
			}
			if c.err != nil {
				p.reached.failNext("Check", c.err)
			}
			p.stepCredential(t, steps)
			p.checks.answer(t)
			p.stepCredential(t, steps)
			expect(t, "stored", c.stored, len(p.rows.uids()) > 0)
		})
	}
}

func TestOtherContentsAreAskedAboutAndStored(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"another password": func(p *place) { p.cluster.secret.Data["password"] = []byte("another") },
		"another user":     func(p *place) { p.cluster.secret.Data["username"] = []byte("another") },
		"no user any more": func(p *place) { delete(p.cluster.secret.Data, "username") },
		"a key as well":    func(p *place) { p.cluster.secret.Data["sshPrivateKey"] = []byte("key") },
		"another address":  func(p *place) { p.cluster.credential.Spec.Repository = repo + "-2" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := credentialPlace(credential())
			c := p.credentials()
			p.storeCredential(t, c)
			change(p)
			p.stepCredential(t, c)
			expect(t, "asked", 2, p.checks.asked)
			expect(t, "changes so far", 1, len(p.rows.changes))
			p.checks.answer(t)
			p.stepCredential(t, c)
			p.stepCredential(t, c)
			expect(t, "changes", 2, len(p.rows.changes))
			expect(t, "version that was read", int64(1), p.rows.changes[1].PutCredential.Credential.Version)
		})
	}
}

func TestADamagedRowIsMadeAnew(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	p.storeCredential(t, c)
	p.rows.credentials[0].Credential.SealedPassword = []byte("noise")
	p.stepCredential(t, c)
	expect(t, "changes", 2, len(p.rows.changes))

	away := errors.New("key ring is away")
	p.sealer.failNext("Open", away, away)
	if err := c.Step(t.Context(), team, "git"); !errors.Is(err, away) {
		t.Errorf("got %v; nobody knows whether the row is good", err)
	}
}

func TestACredentialThatComesBackIsShownAgain(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	p.storeCredential(t, c)
	secret := p.cluster.secret
	p.cluster.secret = nil
	p.stepCredential(t, c)
	if last := p.status.lines[len(p.status.lines)-1]; !strings.Contains(last, "is not in this namespace") {
		t.Errorf("shown %q", last)
	}
	expect(t, "rows: a typing error takes nothing away", []string{"uid-git"}, p.rows.uids())
	p.cluster.secret = secret
	p.stepCredential(t, c)
	if len(p.checks.open) > 0 {
		p.checks.answer(t)
		p.stepCredential(t, c)
	}
	expect(t, "shown last", "accepted", p.status.lines[len(p.status.lines)-1])
	expect(t, "changes", 1, len(p.rows.changes))
}

func TestTheAPIServerIsAskedBeforeACredentialGoes(t *testing.T) {
	t.Parallel()
	p := credentialPlace(credential())
	c := p.credentials()
	p.storeCredential(t, c)
	p.cluster.credential = nil
	p.stepCredential(t, c)
	expect(t, "rows: the cache was behind", []string{"uid-git"}, p.rows.uids())

	away := errors.New("API server is away")
	p.cluster.failNext("CredentialNow", away)
	if err := c.Step(t.Context(), team, "git"); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
	expect(t, "rows: nobody confirmed it", []string{"uid-git"}, p.rows.uids())

	p.cluster.credentialNow = nil
	p.stepCredential(t, c)
	expect(t, "rows", nil, p.rows.uids())
	expect(t, "refers", references{}, p.refs)
	expect(t, "announced", []domain.OperationID{"op-1", "op-2"}, p.outbox.announced)
}

func TestAFailingOutboxDoesNotUndoACredential(t *testing.T) {
	t.Parallel()
	full := errors.New("engine cluster is away")
	p := credentialPlace(credential())
	c := p.credentials()
	p.stepCredential(t, c)
	p.checks.answer(t)
	p.outbox.failNext("Announce", full)
	if err := c.Step(t.Context(), team, "git"); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	p.stepCredential(t, c)
	expect(t, "rows", []string{"uid-git"}, p.rows.uids())
	expect(t, "changes", 1, len(p.rows.changes))
}

func TestRepositoriesThatAreNotAsked(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*place){
		"no Secret":         func(p *place) { p.cluster.secret = nil },
		"a bad address":     func(p *place) { p.cluster.credential.Spec.Repository = "file:///etc" },
		"no engine":         func(p *place) { p.rows.placement = store.Placement{} },
		"a namespace's end": func(p *place) { p.cluster.namespace.Terminating = true },
		"no longer there":   func(p *place) { p.cluster.credential, p.cluster.credentialNow = nil, nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := credentialPlace(credential())
			c := p.credentials()
			p.stepCredential(t, c)
			change(p)
			p.stepCredential(t, c)
			expect(t, "asked", 1, p.checks.asked)
			expect(t, "open", 0, len(p.checks.open))
			expect(t, "rows", nil, p.rows.uids())
		})
	}
}
