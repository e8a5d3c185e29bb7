// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
)

type environmentFactsOption func(*environmentCRFacts)

// environmentFactsOf a CR whose Secret gives access, and whose row, if it has one,
// was made from just that.
func environmentFactsOf(cr *v1alpha1.GitOpsDeploymentManagedEnvironment, options ...environmentFactsOption) environmentCRFacts {
	f := environmentCRFacts{
		cr: cr, tenant: tenantA, quotas: DefaultQuotas(), placement: settledAt(), origin: "given", stored: "given",
		engines: map[domain.TenantID]domain.InstanceID{tenantA: engineID, tenantB: engineID},
		removed: map[domain.EnvironmentID]bool{}, now: noon, newID: counter(),
	}
	if cr == nil {
		f.tenant, f.placement = "", store.Placement{}
	}
	for _, o := range options {
		o(&f)
	}
	return f
}

func withEnvironments(c ...store.EnvironmentChain) environmentFactsOption {
	return func(f *environmentCRFacts) { f.chains = c }
}

func answeredBy(a ConnectAnswer) environmentFactsOption {
	return func(f *environmentCRFacts) { f.answer = &a }
}

func otherOrigin(f *environmentCRFacts) { f.origin = "something else" }

func TestDecideEnvironment(t *testing.T) {
	t.Parallel()
	own := connectedAs("uid-prod")
	link := own.Link
	answer := ConnectAnswer{Connected: reach.Connected{Access: kubeconfig.Access{Server: apiURL, Token: canary}}}
	withToken := ConnectAnswer{Connected: reach.Connected{
		Access: kubeconfig.Access{Server: apiURL, Token: canary}, ServiceAccount: "kube-system/weir-uid-prod", Expires: noon.Add(24 * time.Hour),
	}}
	refusal := ConnectAnswer{Problem: &reach.Problem{Reason: v1alpha1.ReasonUnableToValidateClusterCredentials, Message: "did not answer"}}
	announced := announces("op-1", tenantA, domain.ResourceManagedEnvironment, "uid-prod")
	row := func(version int64, change ...func(*store.Environment)) *store.PutEnvironment {
		e := store.Environment{
			ID: "uid-prod", Tenant: tenantA, Name: "prod", AllowAutomated: true,
			Credentials: &store.ClusterCredentials{Host: apiURL, Version: version},
		}
		for _, c := range change {
			c(&e)
		}
		return &store.PutEnvironment{Environment: e, Instance: engineID, Link: link}
	}
	tokenOf := func(e *store.Environment) {
		e.Credentials.ServiceAccount, e.Credentials.TokenExpires = "kube-system/weir-uid-prod", noon.Add(24*time.Hour)
	}
	removal := func(t domain.TenantID, uid string) *store.Change {
		return &store.Change{
			RemoveEnvironments: []store.EnvironmentRef{{ID: domain.EnvironmentID(uid), Tenant: t}},
			Announce:           announces("op-1", t, domain.ResourceManagedEnvironment, uid),
		}
	}
	good := func(d environmentDecision) environmentDecision {
		d.condition = &EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded}
		return d
	}
	rotated := func(d environmentDecision) environmentDecision {
		d.condition = &EnvironmentCondition{Reason: v1alpha1.ReasonSucceeded, Rotated: true}
		return d
	}
	says := func(reason v1alpha1.ConditionReason, message string) environmentDecision {
		return environmentDecision{condition: &EnvironmentCondition{Reason: reason, Message: message}}
	}
	for name, c := range map[string]struct {
		facts environmentCRFacts
		want  environmentDecision
	}{
		"new, and being asked": {
			environmentFactsOf(environment()), says(ReasonConnecting, "asking "+apiURL),
		},
		"new, and it answered": {
			environmentFactsOf(environment(), answeredBy(answer)),
			good(environmentDecision{change: &store.Change{PutEnvironment: row(0), Announce: announced}, put: &answer.Connected}),
		},
		"the tenant's first": {
			environmentFactsOf(environment(), answeredBy(answer), func(f *environmentCRFacts) { f.placement.Settled = false }),
			good(environmentDecision{
				change: &store.Change{Tenant: &store.Tenant{ID: tenantA, Namespace: team, Instance: engineID}, PutEnvironment: row(0), Announce: announced},
				put:    &answer.Connected,
			}),
		},
		"namespaces are kept in order": {
			environmentFactsOf(environment(func(cr *v1alpha1.GitOpsDeploymentManagedEnvironment) {
				cr.Spec.Namespaces, cr.Spec.ClusterResources = []string{"b", "a"}, true
			}), answeredBy(answer)),
			good(environmentDecision{change: &store.Change{PutEnvironment: row(0, func(e *store.Environment) {
				e.Credentials.Namespaces, e.Credentials.ClusterResources = []string{"a", "b"}, true
			}), Announce: announced}, put: &answer.Connected}),
		},
		"with an account of its own": {
			environmentFactsOf(environment(ownAccount), answeredBy(withToken)),
			good(environmentDecision{
				change: &store.Change{PutEnvironment: row(0, tokenOf), Announce: announced}, put: &withToken.Connected,
				renewAt: noon.Add(16 * time.Hour), later: 16 * time.Hour,
			}),
		},
		"renewed": {
			environmentFactsOf(environment(ownAccount), answeredBy(withToken), withEnvironments(connectedAs("uid-prod", withAccount, expiring(noon)))),
			rotated(environmentDecision{
				change: &store.Change{PutEnvironment: row(3, tokenOf), Announce: announced}, put: &withToken.Connected,
				renewAt: noon.Add(16 * time.Hour), later: 16 * time.Hour,
			}),
		},
		"it refused": {
			environmentFactsOf(environment(), answeredBy(refusal)),
			environmentDecision{condition: &EnvironmentCondition{Reason: v1alpha1.ReasonUnableToValidateClusterCredentials, Message: "did not answer"}, later: time.Minute},
		},
		"other credentials that it refused: what was connected stays": {
			environmentFactsOf(environment(), answeredBy(refusal), otherOrigin, withEnvironments(own)),
			environmentDecision{condition: &EnvironmentCondition{Reason: v1alpha1.ReasonUnableToValidateClusterCredentials, Message: "did not answer"}, later: time.Minute},
		},
		"connected":                                  {environmentFactsOf(environment(), withEnvironments(own)), says(v1alpha1.ReasonSucceeded, "")},
		"other credentials, being asked":             {environmentFactsOf(environment(), otherOrigin, withEnvironments(own)), environmentDecision{}},
		"connected, and the engine has not got it":   {environmentFactsOf(environment(), withEnvironments(connectedAs("uid-prod", environmentOperation(domain.OperationFailed, "no key ring")))), says(v1alpha1.ReasonUnableToCreateClusterCredentials, "no key ring")},
		"connected, and the engine is getting it":    {environmentFactsOf(environment(), withEnvironments(connectedAs("uid-prod", environmentOperation(domain.OperationWaiting, "")))), says(v1alpha1.ReasonSucceeded, "")},
		"connected, and the engine had some trouble": {environmentFactsOf(environment(), withEnvironments(connectedAs("uid-prod", environmentOperation(domain.OperationCompleted, "old")))), says(v1alpha1.ReasonSucceeded, "")},
		"connected with a token": {
			environmentFactsOf(environment(ownAccount), withEnvironments(connectedAs("uid-prod", withAccount, expiring(noon.Add(10*time.Hour))))),
			good(environmentDecision{later: 2 * time.Hour}),
		},
		"only whether it allows automated deployments has changed": {
			environmentFactsOf(environment(manualOnly), withEnvironments(own)),
			good(environmentDecision{change: &store.Change{
				PutEnvironment: row(3, func(e *store.Environment) {
					e.AllowAutomated = false
					e.Credentials.SealedAccess, e.Credentials.SealedOrigin, e.Credentials.KeyID = []byte("sealed"), []byte("sealed origin"), "key"
				}),
				Announce: announced,
			}}),
		},
		"no access: what was connected stays": {
			environmentFactsOf(environment(), withEnvironments(own), func(f *environmentCRFacts) {
				f.problem = &reach.Problem{Reason: v1alpha1.ReasonInvalidSecretType, Message: "not of type"}
			}),
			says(v1alpha1.ReasonInvalidSecretType, "not of type"),
		},
		"no engine": {
			environmentFactsOf(environment(), func(f *environmentCRFacts) { f.placement = store.Placement{} }),
			says(v1alpha1.ReasonUnknownError, "waiting for a GitOps engine: none is registered and ready"),
		},
		"the namespace goes": {
			environmentFactsOf(environment(), answeredBy(answer), func(f *environmentCRFacts) { f.terminating = true }),
			says(v1alpha1.ReasonKubernetesError, "waiting for its namespace, which is being deleted"),
		},
		"beyond the quota": {
			environmentFactsOf(environment(), answeredBy(answer), func(f *environmentCRFacts) { f.older = 50 }),
			says(ReasonQuotaExceeded, beyond(QuotaEnvironments, "GitOpsDeploymentManagedEnvironments", 50, 50).Error()),
		},
		"beyond a quota that came later: what is connected stays": {
			environmentFactsOf(environment(), withEnvironments(own), func(f *environmentCRFacts) { f.older = 50 }),
			says(v1alpha1.ReasonSucceeded, ""),
		},
		"gone":                                    {environmentFactsOf(nil, withEnvironments(own)), environmentDecision{change: removal(tenantA, "uid-prod")}},
		"being deleted":                           {environmentFactsOf(environment(environmentDeleted), withEnvironments(own)), environmentDecision{change: removal(tenantA, "uid-prod")}},
		"gone, with its account still there":      {environmentFactsOf(nil, withEnvironments(connectedAs("uid-prod", withAccount))), environmentDecision{}},
		"gone, and its account too":               {environmentFactsOf(nil, withEnvironments(connectedAs("uid-prod", withAccount)), func(f *environmentCRFacts) { f.removed["uid-prod"] = true }), environmentDecision{change: removal(tenantA, "uid-prod")}},
		"gone, and the row before it":             {environmentFactsOf(nil, withEnvironments(connectedAs("uid-prod", func(c *store.EnvironmentChain) { c.Environment = nil }))), environmentDecision{change: removal(tenantA, "uid-prod")}},
		"gone, and there is no engine":            {environmentFactsOf(nil, withEnvironments(own), func(f *environmentCRFacts) { f.engines = nil }), environmentDecision{change: &store.Change{RemoveEnvironments: []store.EnvironmentRef{{ID: "uid-prod", Tenant: tenantA}}}}},
		"made again under its name":               {environmentFactsOf(environment(), withEnvironments(connectedAs("uid-old"))), environmentDecision{change: removal(tenantA, "uid-old"), condition: &EnvironmentCondition{Reason: ReasonConnecting, Message: "asking " + apiURL}}},
		"an earlier namespace's, and its own one": {environmentFactsOf(environment(), withEnvironments(connectedAs("uid-old", environmentTenant(tenantB)), own)), good(environmentDecision{change: removal(tenantB, "uid-old")})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decideEnvironment(c.facts)
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(environmentDecision{}), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRenewal(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, c := range map[string]struct {
		expires, renewAt time.Time
		due              bool
		again            time.Duration
	}{
		"never ends":                                  {time.Time{}, time.Time{}, false, 0},
		"never ends, whatever is known":               {time.Time{}, at(-time.Hour), false, 0},
		"a day, just begun":                           {at(24 * time.Hour), at(16 * time.Hour), false, 16 * time.Hour},
		"a day, two thirds over":                      {at(8 * time.Hour), at(0), true, time.Minute},
		"an hour, just begun":                         {at(time.Hour), at(40 * time.Minute), false, 40 * time.Minute},
		"not known since when, and long to go":        {at(20 * time.Hour), time.Time{}, false, 12 * time.Hour},
		"not known since when, and not so long to go": {at(8 * time.Hour), time.Time{}, true, time.Minute},
		"over": {at(-time.Hour), time.Time{}, true, time.Minute},
	} {
		c2 := store.ClusterCredentials{TokenExpires: c.expires}
		expect(t, name+": due", c.due, due(&c2, c.renewAt, noon))
		expect(t, name+": again", c.again, renewal(c2, c.renewAt, noon))
	}
	expect(t, "no credentials", false, due(nil, at(-time.Hour), noon))
	expect(t, "two thirds of a day", at(16*time.Hour), renewalOf(at(24*time.Hour), noon))
	expect(t, "two thirds of ten minutes", at(400*time.Second), renewalOf(at(10*time.Minute), noon))
	expect(t, "of what does not end", time.Time{}, renewalOf(time.Time{}, noon))
}

func TestAccessOf(t *testing.T) {
	t.Parallel()
	secret := func(change func(*corev1.Secret)) *corev1.Secret {
		s := accessSecret()
		change(s)
		return s
	}
	put := func(text string) *corev1.Secret {
		return secret(func(s *corev1.Secret) { s.Data["kubeconfig"] = []byte(text) })
	}
	for name, c := range map[string]struct {
		secret *corev1.Secret
		reason v1alpha1.ConditionReason
		says   string
	}{
		"good":              {accessSecret(), "", ""},
		"absent":            {nil, v1alpha1.ReasonKubernetesError, "spec.credentialsSecret names Secret access, which is not in this namespace"},
		"another type":      {secret(func(s *corev1.Secret) { s.Type = "Opaque" }), v1alpha1.ReasonInvalidSecretType, "Secret access is not of type managed-gitops.redhat.com/managed-environment"},
		"no key":            {secret(func(s *corev1.Secret) { s.Data = nil }), v1alpha1.ReasonMissingKubeConfigField, "Secret access has no key kubeconfig"},
		"an empty key":      {put(""), v1alpha1.ReasonMissingKubeConfigField, "Secret access has no key kubeconfig"},
		"no kubeconfig":     {put("password: " + canary), v1alpha1.ReasonUnableToLocateContext, "Secret access: "},
		"no YAML":           {put("\x00{" + canary), v1alpha1.ReasonUnableToParseKubeconfigData, "Secret access: "},
		"another server's":  {put(strings.ReplaceAll(string(kubeconfigText()), apiURL, "https://elsewhere.example.com")), v1alpha1.ReasonUnableToLocateContext, "Secret access: "},
		"one runs programs": {put(strings.ReplaceAll(string(kubeconfigText()), "token: "+canary, "exec: {command: "+canary+"}")), v1alpha1.ReasonUnableToRetrieveRestConfig, "Secret access: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			access, problem := accessOf(environment(), c.secret)
			if c.reason == "" {
				if problem != nil || access.Server != apiURL || access.Token != canary {
					t.Errorf("got %v, %v", access, problem)
				}
				return
			}
			if problem == nil || problem.Reason != c.reason || !strings.HasPrefix(problem.Message, c.says) {
				t.Fatalf("got %+v; want %s: %s…", problem, c.reason, c.says)
			}
			if strings.Contains(problem.Message, canary) {
				t.Errorf("%q holds what is in the Secret", problem.Message)
			}
			expect(t, "access", kubeconfig.Access{}, access)
		})
	}
}

// sealer is a Sealer that only marks what it seals, and with which key.
type sealer struct {
	calls
	keys []string // of the next calls; "key" once they are used up
}

func (s *sealer) Seal(_ context.Context, p seal.Place, text []byte) (seal.Sealed, error) {
	if err := s.called("Seal", p.Column); err != nil {
		return seal.Sealed{}, err
	}
	key := "key"
	if len(s.keys) > 0 {
		key, s.keys = s.keys[0], s.keys[1:]
	}
	return seal.Sealed{KeyID: key, Text: []byte(string(p.Tenant) + "/" + p.Table + "/" + p.Row + "/" + p.Column + "=" + string(text))}, nil
}

func (s *sealer) Open(_ context.Context, p seal.Place, v seal.Sealed) ([]byte, error) {
	if err := s.called("Open", p.Column); err != nil {
		return nil, err
	}
	text, ours := strings.CutPrefix(string(v.Text), string(p.Tenant)+"/"+p.Table+"/"+p.Row+"/"+p.Column+"=")
	if !ours {
		return nil, seal.ErrNotAuthentic
	}
	return []byte(text), nil
}

func TestSealColumns(t *testing.T) {
	t.Parallel()
	row := sealedRow{tenant: tenantA, table: "things", id: "7"}
	columns := map[string][]byte{"a": []byte("x"), "b": {}, "c": nil}
	sealed, key, err := sealColumns(t.Context(), &sealer{}, row, columns)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "key", "key", key)
	expect(t, "sealed", map[string][]byte{
		"a": []byte(string(tenantA) + "/things/7/a=x"), "b": []byte(string(tenantA) + "/things/7/b="),
	}, sealed)

	sealed, key, err = sealColumns(t.Context(), &sealer{}, row, map[string][]byte{"a": nil})
	if err != nil || len(sealed) != 0 || key != "" {
		t.Errorf("nothing to seal gives %v, %q, %v", sealed, key, err)
	}
	// The tenant's key was replaced in between: the row has room for one.
	_, _, err = sealColumns(t.Context(), &sealer{keys: []string{"old", "new"}}, row, columns)
	if !errors.Is(err, domain.ErrConflict) {
		t.Errorf("two keys in one row: %v", err)
	}
	away := errors.New("key service is away")
	failing := &sealer{}
	failing.failNext("Seal", away)
	if _, _, err := sealColumns(t.Context(), failing, row, columns); !errors.Is(err, away) || strings.Contains(err.Error(), "x=") {
		t.Errorf("got %v", err)
	}
}

func TestDigestTellsPartsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for name, parts := range map[string][][]byte{
		"none": nil, "one empty": {{}}, "ab": {[]byte("ab")}, "a, b": {[]byte("a"), []byte("b")}, "b, a": {[]byte("b"), []byte("a")},
		"ab, empty": {[]byte("ab"), {}}, "what a joined one would be": {[]byte("a1:b")},
	} {
		d := digest(parts...)
		if other, taken := seen[d]; taken {
			t.Errorf("%q and %q have one digest", name, other)
		}
		seen[d] = name
	}
}
