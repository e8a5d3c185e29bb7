// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/store"
)

type credentialFactsOption func(*credentialFacts)

func credentialFactsOf(cr *v1alpha1.GitOpsDeploymentRepositoryCredential, options ...credentialFactsOption) credentialFacts {
	f := credentialFacts{
		cr: cr, tenant: tenantA, quotas: DefaultQuotas(), placement: settledAt(), repository: repo,
		given: gitremote.Credential{Username: "robot", Password: canary}, newID: counter(),
	}
	if cr == nil {
		f.tenant, f.placement = "", store.Placement{}
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

func withCredentials(c ...store.CredentialChain) credentialFactsOption {
	return func(f *credentialFacts) { f.chains = c }
}

func checkedAs(a CheckAnswer) credentialFactsOption {
	return func(f *credentialFacts) { f.answer = &a }
}

func unchanged(f *credentialFacts) { f.same = true }

func TestDecideCredential(t *testing.T) {
	t.Parallel()
	own := storedAs("uid-git")
	bad := &CredentialProblem{v1alpha1.ReasonInvalidCredentials, "not taken"}
	unreachable := CheckAnswer{Problem: bad, Unreachable: true}
	announced := announces("op-1", tenantA, domain.ResourceRepositoryCredential, "uid-git")
	row := func(version int64) *store.PutCredential {
		return &store.PutCredential{
			Credential: store.RepositoryCredential{ID: "uid-git", Tenant: tenantA, Instance: engineID, Repository: repo, Version: version},
			Link:       own.Link,
		}
	}
	removal := func(t domain.TenantID, uid string) *store.Change {
		return &store.Change{
			RemoveCredentials: []store.CredentialRef{{ID: domain.CredentialID(uid), Tenant: t}},
			Announce:          announces("op-1", t, domain.ResourceRepositoryCredential, uid),
		}
	}
	waits := func(message string) CredentialVerdict {
		return CredentialVerdict{Secret: &CredentialProblem{v1alpha1.ReasonErrorOccurred, message}}
	}
	for name, c := range map[string]struct {
		facts credentialFacts
		want  credentialDecision
	}{
		"new, and being asked": {credentialFactsOf(credential()), credentialDecision{keep: true}},
		"new, and accepted": {
			credentialFactsOf(credential(), checkedAs(CheckAnswer{})),
			credentialDecision{change: &store.Change{PutCredential: row(0), Announce: announced}, seal: true, verdict: CredentialVerdict{Checked: &CheckAnswer{}}},
		},
		"the tenant's first": {
			credentialFactsOf(credential(), checkedAs(CheckAnswer{}), func(f *credentialFacts) { f.placement.Settled = false }),
			credentialDecision{
				change: &store.Change{Tenant: &store.Tenant{ID: tenantA, Namespace: team, Instance: engineID}, PutCredential: row(0), Announce: announced},
				seal:   true, verdict: CredentialVerdict{Checked: &CheckAnswer{}},
			},
		},
		"new, and refused": {
			credentialFactsOf(credential(), checkedAs(CheckAnswer{Problem: bad})),
			credentialDecision{verdict: CredentialVerdict{Checked: &CheckAnswer{Problem: bad}}},
		},
		"new, and nobody could be asked: it may be good": {
			credentialFactsOf(credential(), checkedAs(unreachable)),
			credentialDecision{change: &store.Change{PutCredential: row(0), Announce: announced}, seal: true, verdict: CredentialVerdict{Checked: &unreachable}},
		},
		"another password, being asked": {credentialFactsOf(credential(), withCredentials(own)), credentialDecision{keep: true}},
		"another password, accepted": {
			credentialFactsOf(credential(), withCredentials(own), checkedAs(CheckAnswer{})),
			credentialDecision{
				change: &store.Change{PutCredential: row(3), Announce: announced}, seal: true,
				verdict: CredentialVerdict{Checked: &CheckAnswer{}, Rotated: true},
			},
		},
		"another password, refused: the engine keeps the one before": {
			credentialFactsOf(credential(), withCredentials(own), checkedAs(CheckAnswer{Problem: bad})),
			credentialDecision{verdict: CredentialVerdict{Checked: &CheckAnswer{Problem: bad}}},
		},
		"unchanged":                           {credentialFactsOf(credential(), withCredentials(own), unchanged), credentialDecision{keep: true}},
		"unchanged, and asked again":          {credentialFactsOf(credential(), withCredentials(own), unchanged, checkedAs(CheckAnswer{})), credentialDecision{verdict: CredentialVerdict{Checked: &CheckAnswer{}}}},
		"unchanged, and not taken any more":   {credentialFactsOf(credential(), withCredentials(own), unchanged, checkedAs(CheckAnswer{Problem: bad})), credentialDecision{verdict: CredentialVerdict{Checked: &CheckAnswer{Problem: bad}}}},
		"a bad address keeps what was stored": {credentialFactsOf(credential(), withCredentials(own), func(f *credentialFacts) { f.url = bad }), credentialDecision{verdict: CredentialVerdict{URL: bad}}},
		"a bad Secret keeps what was stored":  {credentialFactsOf(credential(), withCredentials(own), func(f *credentialFacts) { f.secret = bad }), credentialDecision{verdict: CredentialVerdict{Secret: bad}}},
		"the engine has not got it": {
			credentialFactsOf(credential(), unchanged, withCredentials(storedAs("uid-git", func(c *store.CredentialChain) {
				c.Operation = operationOn(domain.ResourceRepositoryCredential, "uid-git", domain.OperationFailed, "no key ring")
			}))),
			credentialDecision{keep: true, verdict: CredentialVerdict{Operation: "no key ring"}},
		},
		"the engine has got it": {
			credentialFactsOf(credential(), unchanged, withCredentials(storedAs("uid-git", func(c *store.CredentialChain) {
				c.Operation = operationOn(domain.ResourceRepositoryCredential, "uid-git", domain.OperationCompleted, "old trouble")
			}))),
			credentialDecision{keep: true},
		},
		"no engine": {
			credentialFactsOf(credential(), func(f *credentialFacts) { f.placement = store.Placement{} }),
			credentialDecision{verdict: waits("waiting for a GitOps engine: none is registered and ready")},
		},
		"the namespace goes": {
			credentialFactsOf(credential(), func(f *credentialFacts) { f.terminating = true }),
			credentialDecision{verdict: waits("waiting for its namespace, which is being deleted")},
		},
		"beyond the quota": {
			credentialFactsOf(credential(), func(f *credentialFacts) { f.older = 100 }),
			credentialDecision{verdict: CredentialVerdict{Secret: &CredentialProblem{ReasonQuotaExceeded, beyond(QuotaCredentials, "GitOpsDeploymentRepositoryCredentials", 100, 100).Error()}}},
		},
		"beyond a quota that came later": {
			credentialFactsOf(credential(), unchanged, withCredentials(own), func(f *credentialFacts) { f.older = 100 }),
			credentialDecision{keep: true},
		},
		"gone":          {credentialFactsOf(nil, withCredentials(own)), credentialDecision{change: removal(tenantA, "uid-git")}},
		"being deleted": {credentialFactsOf(credential(credentialDeleted), withCredentials(own)), credentialDecision{change: removal(tenantA, "uid-git")}},
		"gone, and the row before it": {
			credentialFactsOf(nil, withCredentials(storedAs("uid-git", func(c *store.CredentialChain) { c.Credential = nil }))),
			credentialDecision{change: &store.Change{RemoveCredentials: []store.CredentialRef{{ID: "uid-git", Tenant: tenantA}}}},
		},
		"made again under its name": {
			credentialFactsOf(credential(), withCredentials(storedAs("uid-old"))),
			credentialDecision{change: removal(tenantA, "uid-old"), keep: true},
		},
		"an earlier namespace's, and its own one": {
			credentialFactsOf(credential(), unchanged, withCredentials(storedAs("uid-old", credentialTenant(tenantB)), own)),
			credentialDecision{change: removal(tenantB, "uid-old"), keep: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decideCredential(c.facts)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(credentialDecision{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCredentialOf(t *testing.T) {
	t.Parallel()
	typed := func(kind corev1.SecretType) *corev1.Secret {
		s := login()
		s.Type = kind
		return s
	}
	for name, c := range map[string]struct {
		cr     *v1alpha1.GitOpsDeploymentRepositoryCredential
		secret *corev1.Secret
		want   gitremote.Credential
		reason v1alpha1.ConditionReason
		says   string
	}{
		"a login":       {credential(), login(), gitremote.Credential{Username: "robot", Password: canary}, "", ""},
		"a token":       {credential(), loginSecret(map[string]string{"password": canary}), gitremote.Credential{Password: canary}, "", ""},
		"a key":         {credential(), loginSecret(map[string]string{"sshPrivateKey": canary}), gitremote.Credential{SSHPrivateKey: canary}, "", ""},
		"not named":     {credential(func(cr *v1alpha1.GitOpsDeploymentRepositoryCredential) { cr.Spec.Secret = "" }), nil, gitremote.Credential{}, v1alpha1.ReasonSecretNotSpecified, "spec.secret is empty"},
		"absent":        {credential(), nil, gitremote.Credential{}, v1alpha1.ReasonSecretNotFound, "spec.secret names Secret login, which is not in this namespace"},
		"another type":  {credential(), typed("kubernetes.io/basic-auth"), gitremote.Credential{}, v1alpha1.ReasonSecretInvalidType, "Secret login is not of type managed-gitops.redhat.com/repository-credential"},
		"a name only":   {credential(), loginSecret(map[string]string{"username": canary}), gitremote.Credential{}, v1alpha1.ReasonInvalidCredentials, "Secret login has neither"},
		"nothing in it": {credential(), loginSecret(nil), gitremote.Credential{}, v1alpha1.ReasonInvalidCredentials, "Secret login has neither"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := credentialOf(c.cr, c.secret)
			if got != c.want {
				t.Errorf("got %v", got)
			}
			switch {
			case c.reason == "" && problem != nil:
				t.Errorf("refused: %+v", problem)
			case c.reason != "" && (problem == nil || problem.Reason != c.reason || !strings.HasPrefix(problem.Message, c.says) || strings.Contains(problem.Message, canary)):
				t.Errorf("got %+v; want %s: %s…", problem, c.reason, c.says)
			}
		})
	}
}

func TestRepositoryOf(t *testing.T) {
	t.Parallel()
	plain := Policy{AllowPlainHTTP: true}
	for name, c := range map[string]struct {
		repository string
		policy     Policy
		good       bool
	}{
		"https":                      {repo, Policy{}, true},
		"ssh":                        {"ssh://git@git.example.com/a/b", Policy{}, true},
		"scp":                        {"git@git.example.com:a/b", Policy{}, true},
		"http":                       {"http://git.example.com/a", Policy{}, false},
		"http where that is allowed": {"http://git.example.com/a", plain, true},
		"a file":                     {"file:///etc", plain, false},
		"a password":                 {"https://u:" + canary + "@git.example.com/a", Policy{}, false},
		"a pattern":                  {"https://git.example.com/*", Policy{}, false},
		"nothing":                    {"", Policy{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, problem := repositoryOf(credential(forRepository(c.repository)), c.policy)
			switch {
			case c.good && (problem != nil || got != c.repository):
				t.Errorf("got %q, %+v", got, problem)
			case !c.good && (problem == nil || problem.Reason != v1alpha1.ReasonInvalidRepositoryURL || !strings.HasPrefix(problem.Message, "spec.repository") || strings.Contains(problem.Message, canary)):
				t.Errorf("got %q, %+v", got, problem)
			}
		})
	}
}
