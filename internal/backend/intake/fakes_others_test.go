// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/store"
)

// tenants is a cluster with at most one CR of each kind, as the cache and as the
// API server have it.
type tenants struct {
	calls
	run, runNow                 *v1alpha1.GitOpsDeploymentSyncRun
	environment, environmentNow *v1alpha1.GitOpsDeploymentManagedEnvironment
	credential, credentialNow   *v1alpha1.GitOpsDeploymentRepositoryCredential
	deployment                  *v1alpha1.GitOpsDeployment
	secret                      *corev1.Secret
	namespace                   kube.Namespace
	older                       int
}

func (c *tenants) SyncRun(context.Context, string, string) (*v1alpha1.GitOpsDeploymentSyncRun, error) {
	return c.run.DeepCopy(), c.called("SyncRun", "")
}

func (c *tenants) SyncRunNow(context.Context, string, string) (*v1alpha1.GitOpsDeploymentSyncRun, error) {
	return c.runNow.DeepCopy(), c.called("SyncRunNow", "")
}

func (c *tenants) DeleteSyncRun(_ context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun) error {
	return c.called("DeleteSyncRun", cr.UID)
}

func (c *tenants) Deployment(context.Context, string, string) (*v1alpha1.GitOpsDeployment, error) {
	return c.deployment.DeepCopy(), c.called("Deployment", "")
}

func (c *tenants) Environment(context.Context, string, string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error) {
	return c.environment.DeepCopy(), c.called("Environment", "")
}

func (c *tenants) EnvironmentNow(context.Context, string, string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error) {
	return c.environmentNow.DeepCopy(), c.called("EnvironmentNow", "")
}

func (c *tenants) OlderEnvironments(context.Context, *v1alpha1.GitOpsDeploymentManagedEnvironment) (int, error) {
	return c.older, c.called("OlderEnvironments", "")
}

func (c *tenants) Credential(context.Context, string, string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error) {
	return c.credential.DeepCopy(), c.called("Credential", "")
}

func (c *tenants) CredentialNow(context.Context, string, string) (*v1alpha1.GitOpsDeploymentRepositoryCredential, error) {
	return c.credentialNow.DeepCopy(), c.called("CredentialNow", "")
}

func (c *tenants) OlderCredentials(context.Context, *v1alpha1.GitOpsDeploymentRepositoryCredential) (int, error) {
	return c.older, c.called("OlderCredentials", "")
}

func (c *tenants) Secret(_ context.Context, _, name string) (*corev1.Secret, error) {
	return c.secret.DeepCopy(), c.called("Secret", name)
}

func (c *tenants) Namespace(context.Context, string) (kube.Namespace, error) {
	return c.namespace, c.called("Namespace", "")
}

// rows is a database of the kinds besides deployments, under one name each, with
// the versions that steps rely on.
type rows struct {
	calls
	syncs        []store.SyncChain
	environments []store.EnvironmentChain
	credentials  []store.CredentialChain
	deployments  []store.Chain
	placement    store.Placement

	changes []store.Change
}

func (r *rows) SyncChains(context.Context, string, string) ([]store.SyncChain, error) {
	return slices.Clone(r.syncs), r.called("SyncChains", "")
}

func (r *rows) SaveSyncResult(context.Context, domain.SyncOperationID, domain.SyncResult) error {
	panic("a backend does not carry syncs out")
}

func (r *rows) EnvironmentChains(context.Context, string, string) ([]store.EnvironmentChain, error) {
	return slices.Clone(r.environments), r.called("EnvironmentChains", "")
}

func (r *rows) Environment(context.Context, domain.TenantID, domain.EnvironmentID) (store.Environment, error) {
	panic("not for this step")
}

func (r *rows) CredentialChains(context.Context, string, string) ([]store.CredentialChain, error) {
	return slices.Clone(r.credentials), r.called("CredentialChains", "")
}

func (r *rows) Chains(context.Context, string, string) ([]store.Chain, error) {
	return slices.Clone(r.deployments), r.called("Chains", "")
}

func (r *rows) Placement(_ context.Context, t domain.TenantID) (store.Placement, error) {
	return r.placement, r.called("Placement", t)
}

func (r *rows) Apply(_ context.Context, c store.Change) ([]store.Operation, error) {
	if err := r.called("Apply", len(r.changes)); err != nil {
		return nil, err
	}
	r.changes = append(r.changes, c)
	r.syncs = slices.DeleteFunc(r.syncs, func(have store.SyncChain) bool {
		return slices.Contains(c.RemoveSyncs, store.SyncRef{ID: domain.SyncOperationID(have.Link.UID), Tenant: have.Link.Tenant})
	})
	r.environments = slices.DeleteFunc(r.environments, func(have store.EnvironmentChain) bool {
		return slices.Contains(c.RemoveEnvironments, store.EnvironmentRef{ID: domain.EnvironmentID(have.Link.UID), Tenant: have.Link.Tenant}) ||
			c.PutEnvironment != nil && have.Link == c.PutEnvironment.Link
	})
	r.credentials = slices.DeleteFunc(r.credentials, func(have store.CredentialChain) bool {
		return slices.Contains(c.RemoveCredentials, store.CredentialRef{ID: domain.CredentialID(have.Link.UID), Tenant: have.Link.Tenant}) ||
			c.PutCredential != nil && have.Link == c.PutCredential.Link
	})
	if n := c.InsertSync; n != nil {
		r.syncs = append(r.syncs, store.SyncChain{Link: n.Link, Sync: &n.Sync})
	}
	if n := c.PutEnvironment; n != nil {
		e := n.Environment
		e.Credentials.Version++
		r.environments = append(r.environments, store.EnvironmentChain{Link: n.Link, Environment: &e})
	}
	if n := c.PutCredential; n != nil {
		row := n.Credential
		row.Version++
		r.credentials = append(r.credentials, store.CredentialChain{Link: n.Link, Credential: &row})
	}
	var ops []store.Operation
	for _, n := range c.Announce {
		op := store.Operation{ID: n.ID, Tenant: n.Tenant, Instance: n.Instance, ResourceType: n.ResourceType, ResourceID: n.ResourceID, State: domain.OperationWaiting, Version: 1}
		ops = append(ops, op)
		for i := range r.syncs {
			if r.syncs[i].Link.UID == n.ResourceID {
				r.syncs[i].Operation = &op
			}
		}
	}
	return ops, nil
}

// uids are what is left under the name, of all kinds.
func (r *rows) uids() []string {
	var out []string
	for _, c := range r.syncs {
		out = append(out, c.Link.UID)
	}
	for _, c := range r.environments {
		out = append(out, c.Link.UID)
	}
	for _, c := range r.credentials {
		out = append(out, c.Link.UID)
	}
	return out
}

// prober keeps questions until the test answers them.
type prober[A any] struct {
	open    map[fairq.Key]string
	ask     map[fairq.Key]func(context.Context) A
	answers map[fairq.Key]A
	asked   int
	forgot  int
}

func newProber[A any]() *prober[A] {
	return &prober[A]{open: map[fairq.Key]string{}, ask: map[fairq.Key]func(context.Context) A{}, answers: map[fairq.Key]A{}}
}

func (p *prober[A]) Ask(key fairq.Key, digest string, ask func(context.Context) A) (A, bool) {
	var none A
	if open, asked := p.open[key]; asked && open == digest {
		answer, answered := p.answers[key]
		if answered {
			p.drop(key)
		}
		return answer, answered
	}
	p.drop(key)
	p.open[key], p.ask[key] = digest, ask
	p.asked++
	return none, false
}

func (p *prober[A]) drop(key fairq.Key) {
	delete(p.open, key)
	delete(p.ask, key)
	delete(p.answers, key)
}

func (p *prober[A]) Forget(key fairq.Key) {
	p.forgot++
	p.drop(key)
}

// answer lets what was asked be answered.
func (p *prober[A]) answer(t *testing.T) {
	t.Helper()
	if len(p.ask) != 1 {
		t.Fatalf("%d questions are open", len(p.ask))
	}
	for key, ask := range p.ask {
		p.answers[key] = ask(t.Context())
	}
}

// reached is a tenant's cluster or repository.
type reached struct {
	calls
	connected reach.Connected
	given     []reach.Cluster
	login     []gitremote.Credential
}

func (r *reached) Connect(_ context.Context, to reach.Cluster) (reach.Connected, error) {
	r.given = append(r.given, to)
	return r.connected, r.called("Connect", to.Account)
}

func (r *reached) Remove(_ context.Context, access kubeconfig.Access, account string) error {
	return r.called("Remove", access.Server+" "+account)
}

func (r *reached) check(_ context.Context, repository string, c gitremote.Credential) error {
	r.login = append(r.login, c)
	return r.called("Check", repository)
}

// references keeps who refers to which Secret.
type references map[string]string

func (r references) Refer(referrer, namespace, name string) { r[referrer] = namespace + "/" + name }
func (r references) Release(referrer string)                { delete(r, referrer) }

// said is what tenants were shown, a line each.
type said struct {
	calls
	lines []string
}

func (s *said) ShowSyncRun(_ context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun, _ *store.SyncChain, verdict error) error {
	if err := s.called("Show", cr.UID); err != nil {
		return err
	}
	s.lines = append(s.lines, fmt.Sprint(verdict))
	return nil
}

func (s *said) ShowEnvironment(_ context.Context, cr *v1alpha1.GitOpsDeploymentManagedEnvironment, c EnvironmentCondition) error {
	if err := s.called("Show", cr.UID); err != nil {
		return err
	}
	s.lines = append(s.lines, strings.TrimSpace(string(c.Reason)+" "+c.Message))
	return nil
}

func (s *said) ShowCredential(_ context.Context, cr *v1alpha1.GitOpsDeploymentRepositoryCredential, v CredentialVerdict, keep bool) error {
	if err := s.called("Show", cr.UID); err != nil {
		return err
	}
	line := "asking"
	switch {
	case v.URL != nil:
		line = v.URL.Message
	case v.Secret != nil:
		line = v.Secret.Message
	case v.Checked != nil && v.Checked.Problem != nil:
		line = v.Checked.Problem.Message
	case v.Checked != nil:
		line = "accepted"
	case keep:
		line = "as before"
	}
	s.lines = append(s.lines, line)
	return nil
}

// place is everything around the steps of the kinds besides deployments.
type place struct {
	cluster *tenants
	rows    *rows
	outbox  *fakeOutbox
	status  *said
	reached *reached
	sealer  *sealer
	refs    references
	connect *prober[ConnectAnswer]
	checks  *prober[CheckAnswer]
	now     time.Time
	log     strings.Builder
}

func newPlace() *place {
	return &place{
		cluster: &tenants{namespace: kube.Namespace{Name: team, UID: tenantA}},
		rows:    &rows{placement: settledAt()},
		outbox:  &fakeOutbox{}, status: &said{}, reached: &reached{}, sealer: &sealer{}, refs: references{},
		connect: newProber[ConnectAnswer](), checks: newProber[CheckAnswer](), now: noon,
	}
}

func (p *place) key(namespace, name string) fairq.Key {
	return fairq.Key{Workspace: namespace, Application: name, Runner: "test"}
}

func (p *place) syncRuns() *SyncRuns {
	return &SyncRuns{
		Cluster: p.cluster, Store: p.rows, Outbox: p.outbox, Status: p.status, Quotas: DefaultQuotas(), TTL: time.Hour,
		NewID: counter(), Now: func() time.Time { return p.now }, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

func (p *place) environments() *Environments {
	return &Environments{
		Cluster: p.cluster, Store: p.rows, Outbox: p.outbox, Status: p.status, Sealer: p.sealer, Probes: p.connect, Reach: p.reached,
		References: p.refs, Quotas: DefaultQuotas(), Key: p.key, NewID: counter(), Now: func() time.Time { return p.now },
		Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

func (p *place) credentials() *Credentials {
	return &Credentials{
		Cluster: p.cluster, Store: p.rows, Outbox: p.outbox, Status: p.status, Sealer: p.sealer, Probes: p.checks, Check: p.reached.check,
		References: p.refs, Quotas: DefaultQuotas(), Key: p.key, NewID: counter(), Now: func() time.Time { return p.now },
		Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}
