// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"fmt"
	"strings"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/backend/probe"
	"github.com/weir-gitops/weir/internal/backend/project"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/kube"
)

// How long a tenant's server may take to answer, and how many are asked at once.
// A probe costs a goroutine and a connection, so there may be many; the limit for
// one tenant is what keeps its dead servers from being everybody's.
const (
	probeTimeout     = 20 * time.Second
	requestTimeout   = 10 * time.Second
	probesPerTenant  = 4
	probesAltogether = 512
)

// background is what runs beside the queue: probes and watches on single Secrets.
type background struct {
	cancel      context.CancelFunc
	references  *kube.References
	connections *probe.Probes[intake.ConnectAnswer]
	checks      *probe.Probes[intake.CheckAnswer]
}

// stop ends it all, and waits for that.
func (b *background) stop() {
	b.cancel()
	b.references.Wait()
	b.connections.Wait()
	b.checks.Wait()
}

// addOutreach puts together what goes out to servers that tenants name.
func (b *Backend) addOutreach(ctx context.Context) error {
	o := b.options
	ctx, cancel := context.WithCancel(ctx)
	references, err := kube.NewReferences(o.Config, o.Log, b.secretChanged)
	if err != nil {
		cancel()
		return fmt.Errorf("connect to Kubernetes: %w", err)
	}
	limits := probe.Options{Timeout: probeTimeout, PerTenant: probesPerTenant, Total: probesAltogether, Done: b.enqueue}
	b.background = &background{
		cancel: cancel, references: references,
		connections: probe.New[intake.ConnectAnswer](ctx, limits), checks: probe.New[intake.CheckAnswer](ctx, limits),
	}
	watched := secretReferences{ctx, references}
	status, events := b.mgr.GetClient().Status(), b.events
	b.environments = &intake.Environments{
		Cluster: b.cluster, Store: timedStore{o.Store, o.Hops}, Outbox: timedOutbox{b.outbox, o.Hops},
		Status: &project.Environments{Client: status, Events: events, Now: time.Now}, Sealer: o.Sealer,
		Probes: b.background.connections, Reach: &reach.Clusters{Dialer: o.Dialer, Timeout: requestTimeout}, References: watched,
		Quotas: o.Quotas, Key: environmentKey, NewID: domain.NewOperationID, Now: time.Now, Log: o.Log,
	}
	b.credentials = &intake.Credentials{
		Cluster: b.cluster, Store: timedStore{o.Store, o.Hops}, Outbox: timedOutbox{b.outbox, o.Hops},
		Status: &project.Credentials{Client: status, Events: events, Now: time.Now}, Sealer: o.Sealer,
		Probes: b.background.checks, Check: b.checkRepository, References: watched,
		Quotas: o.Quotas, Policy: o.Policy, Key: credentialKey, NewID: domain.NewOperationID, Now: time.Now, Log: o.Log,
	}
	return nil
}

func (b *Backend) checkRepository(ctx context.Context, repository string, c gitremote.Credential) error {
	o := b.options
	return gitremote.Check(ctx, repository, c, gitremote.Options{
		Dialer: o.Dialer, Timeout: requestTimeout, AllowHTTP: o.Policy.AllowPlainHTTP, RootCAs: o.GitAuthorities,
		KnownHosts: o.SSH.Known, AcceptAnyHostKey: o.SSH.AcceptAny,
	})
}

func environmentKey(namespace, name string) fairq.Key {
	return fairq.Key{Workspace: namespace, Application: name, Runner: runnerEnvironment}
}

func credentialKey(namespace, name string) fairq.Key {
	return fairq.Key{Workspace: namespace, Application: name, Runner: runnerCredential}
}

// secretReferences gives watches the lifetime of the role.
type secretReferences struct {
	lifetime context.Context //nolint:containedctx // a watch outlives the step that begins it
	*kube.References
}

func (r secretReferences) Refer(referrer, namespace, name string) {
	r.References.Refer(r.lifetime, referrer, namespace, name)
}

// secretChanged has the CRs looked at that refer to a Secret.
func (b *Backend) secretChanged(namespace, name string) {
	for _, referrer := range b.background.references.Referrers(namespace, name) {
		kind, cr, _ := strings.Cut(referrer, " ")
		ns, name, _ := strings.Cut(cr, "/")
		if kind == v1alpha1.ManagedEnvironmentSecretType {
			b.enqueue(environmentKey(ns, name))
		} else {
			b.enqueue(credentialKey(ns, name))
		}
	}
}
