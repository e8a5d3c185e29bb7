// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/reach"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// EnvironmentCluster is what the step needs of the cluster with the tenants'
// namespaces. What is not there is nil.
type EnvironmentCluster interface {
	Environment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error)
	EnvironmentNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentManagedEnvironment, error)
	OlderEnvironments(ctx context.Context, cr *v1alpha1.GitOpsDeploymentManagedEnvironment) (int, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	Namespace(ctx context.Context, name string) (kube.Namespace, error)
}

// EnvironmentStore is where environments are taken in.
type EnvironmentStore interface {
	store.Environments
	Placement(ctx context.Context, tenant domain.TenantID) (store.Placement, error)
	Apply(ctx context.Context, c store.Change) ([]store.Operation, error)
}

// EnvironmentProjector shows a tenant how its environment is.
type EnvironmentProjector interface {
	ShowEnvironment(ctx context.Context, cr *v1alpha1.GitOpsDeploymentManagedEnvironment, c EnvironmentCondition) error
}

// Prober asks a question in the background; see package probe.
type Prober[A any] interface {
	Ask(key fairq.Key, digest string, ask func(context.Context) A) (A, bool)
	Forget(key fairq.Key)
}

// ClusterReach goes out to tenants' clusters.
type ClusterReach interface {
	Connect(ctx context.Context, to reach.Cluster) (reach.Connected, error)
	Remove(ctx context.Context, access kubeconfig.Access, account string) error
}

// SecretReferences watches the Secrets that CRs refer to.
type SecretReferences interface {
	Refer(referrer, namespace, name string)
	Release(referrer string)
}

// Environments takes GitOpsDeploymentManagedEnvironments in.
type Environments struct {
	Cluster    EnvironmentCluster
	Store      EnvironmentStore
	Outbox     Outbox
	Status     EnvironmentProjector
	Sealer     Sealer
	Probes     Prober[ConnectAnswer]
	Reach      ClusterReach
	References SecretReferences
	Quotas     Quotas
	// Key is the queue's key for a CR, by which a probe's end is told.
	Key   func(namespace, name string) fairq.Key
	NewID func() domain.OperationID
	Now   func() time.Time
	Log   *slog.Logger

	// renewals are when tokens that this process has got are to be renewed.
	renewals sync.Map // UID → time.Time
}

// Step makes the rows under one name follow the CR under that name and its
// Secret, and the CR's status follow the rows.
func (e *Environments) Step(ctx context.Context, namespace, name string) error {
	return again(func() error { return e.try(ctx, namespace, name) })
}

func (e *Environments) try(ctx context.Context, namespace, name string) error {
	f, given, err := e.gather(ctx, namespace, name)
	if err != nil {
		return err
	}
	if f.cr != nil {
		ctx = telemetry.WithWork(ctx, telemetry.Work{Tenant: string(f.tenant), UID: string(f.cr.UID)})
	}
	e.ask(ctx, &f, given, e.Key(namespace, name))
	d := decideEnvironment(f)
	if err := e.act(ctx, f, d); err != nil {
		return err
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() {
		return nil
	}
	if d.condition != nil {
		if err := e.Status.ShowEnvironment(ctx, f.cr, *d.condition); err != nil {
			return err
		}
	}
	if d.later > 0 {
		return &domain.Later{After: d.later}
	}
	return nil
}

// gather reads the facts, and what the CR and its Secret give access to.
func (e *Environments) gather(ctx context.Context, namespace, name string) (environmentCRFacts, reach.Cluster, error) {
	f := environmentCRFacts{now: e.Now(), newID: e.NewID, removed: map[domain.EnvironmentID]bool{}, engines: map[domain.TenantID]domain.InstanceID{}}
	var err error
	if f.cr, err = e.Cluster.Environment(ctx, namespace, name); err != nil {
		return f, reach.Cluster{}, fmt.Errorf("read GitOpsDeploymentManagedEnvironment: %w", err)
	}
	if f.chains, err = e.Store.EnvironmentChains(ctx, namespace, name); err != nil {
		return f, reach.Cluster{}, err
	}
	foreign := func(c store.EnvironmentChain) bool { return f.cr == nil || c.Link.UID != string(f.cr.UID) }
	if slices.ContainsFunc(f.chains, foreign) {
		// Before anything is removed, the API server is asked.
		if f.cr, err = e.Cluster.EnvironmentNow(ctx, namespace, name); err != nil {
			return f, reach.Cluster{}, fmt.Errorf("read the GitOpsDeploymentManagedEnvironment as it is now: %w", err)
		}
	}
	if goes := f.cr == nil || !f.cr.DeletionTimestamp.IsZero(); goes || slices.ContainsFunc(f.chains, foreign) {
		if err := e.engines(ctx, &f); err != nil {
			return f, reach.Cluster{}, err
		}
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() {
		e.References.Release(referrer(v1alpha1.ManagedEnvironmentSecretType, namespace, name))
		return f, reach.Cluster{}, nil
	}
	ns, err := e.Cluster.Namespace(ctx, namespace)
	if err != nil {
		return f, reach.Cluster{}, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	f.tenant, f.terminating, f.quotas = ns.UID, ns.Terminating, e.Quotas.In(ns.Annotations)
	if f.older, err = e.Cluster.OlderEnvironments(ctx, f.cr); err != nil {
		return f, reach.Cluster{}, fmt.Errorf("count the namespace's environments: %w", err)
	}
	if f.placement, err = e.Store.Placement(ctx, f.tenant); err != nil && !errors.Is(err, domain.ErrNotFound) {
		return f, reach.Cluster{}, err
	}
	given, err := e.given(ctx, &f)
	return f, given, err
}

// engines finds where the chains' tenants are: the engine there has the Secret of
// an environment that goes. The operation that put it there may be long collected.
func (e *Environments) engines(ctx context.Context, f *environmentCRFacts) error {
	for _, c := range f.chains {
		at, err := e.Store.Placement(ctx, c.Link.Tenant)
		if err != nil && !errors.Is(err, domain.ErrNotFound) {
			return err
		}
		f.engines[c.Link.Tenant] = at.Instance
	}
	return nil
}

// referrer names a CR among those that refer to Secrets.
func referrer(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

// given reads the Secret and takes from it what may be taken.
func (e *Environments) given(ctx context.Context, f *environmentCRFacts) (reach.Cluster, error) {
	cr := f.cr
	e.References.Refer(referrer(v1alpha1.ManagedEnvironmentSecretType, cr.Namespace, cr.Name), cr.Namespace, cr.Spec.CredentialsSecret)
	secret, err := e.Cluster.Secret(ctx, cr.Namespace, cr.Spec.CredentialsSecret)
	if err != nil {
		return reach.Cluster{}, fmt.Errorf("read Secret: %w", err)
	}
	access, problem := accessOf(cr, secret)
	if problem != nil {
		f.problem = problem
		return reach.Cluster{}, nil //nolint:nilerr // a fact for the decision, not a failure of this step
	}
	to := reach.Cluster{Access: access, Namespaces: slices.Sorted(slices.Values(cr.Spec.Namespaces)), ClusterResources: cr.Spec.ClusterResources}
	if cr.Spec.CreateNewServiceAccount {
		to.Account = "weir-" + string(cr.UID)
	}
	text, err := access.Encode()
	if err != nil {
		return to, err
	}
	if at, known := e.renewals.Load(string(cr.UID)); known {
		f.renewAt = at.(time.Time)
	}
	f.origin = digest(text, []byte(to.Account), []byte(strings.Join(to.Namespaces, ",")), strconv.AppendBool(nil, to.ClusterResources))
	f.stored, err = e.stored(ctx, *f)
	return to, err
}

// accessOf is pure: what a CR and its Secret give access to, or why they do not.
func accessOf(cr *v1alpha1.GitOpsDeploymentManagedEnvironment, secret *corev1.Secret) (kubeconfig.Access, *reach.Problem) {
	name := cr.Spec.CredentialsSecret
	refuse := func(reason v1alpha1.ConditionReason, format string, args ...any) (kubeconfig.Access, *reach.Problem) {
		return kubeconfig.Access{}, &reach.Problem{Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case secret == nil:
		return refuse(v1alpha1.ReasonKubernetesError, "spec.credentialsSecret names Secret %s, which is not in this namespace: create it, of type %s, with the key %s", name, v1alpha1.ManagedEnvironmentSecretType, v1alpha1.ManagedEnvironmentSecretKubeconfigKey)
	case secret.Type != v1alpha1.ManagedEnvironmentSecretType:
		return refuse(v1alpha1.ReasonInvalidSecretType, "Secret %s is not of type %s: create it anew with that type", name, v1alpha1.ManagedEnvironmentSecretType)
	case len(secret.Data[v1alpha1.ManagedEnvironmentSecretKubeconfigKey]) == 0:
		return refuse(v1alpha1.ReasonMissingKubeConfigField, "Secret %s has no key %s: put a kubeconfig there", name, v1alpha1.ManagedEnvironmentSecretKubeconfigKey)
	}
	access, err := kubeconfig.Sanitise(secret.Data[v1alpha1.ManagedEnvironmentSecretKubeconfigKey], cr.Spec.APIURL, kubeconfig.Options{Insecure: cr.Spec.AllowInsecureSkipTLSVerify})
	var refused *kubeconfig.Error
	if errors.As(err, &refused) {
		return refuse(refused.Reason, "Secret %s: %s", name, refused.Error())
	}
	if err != nil {
		return refuse(v1alpha1.ReasonUnableToParseKubeconfigData, "Secret %s holds no kubeconfig that can be read", name)
	}
	return access, nil
}

// stored opens the digest of what the row was made from.
func (e *Environments) stored(ctx context.Context, f environmentCRFacts) (string, error) {
	for _, c := range f.chains {
		if c.Link.UID != string(f.cr.UID) || c.Link.Tenant != f.tenant || c.Environment == nil || c.Environment.Credentials == nil || c.Environment.Credentials.SealedOrigin == nil {
			continue
		}
		text, err := e.Sealer.Open(ctx, credentialsRow(f.tenant, c.Link.UID).at("sealed_origin"),
			seal.Sealed{KeyID: c.Environment.Credentials.KeyID, Text: c.Environment.Credentials.SealedOrigin})
		if errors.Is(err, seal.ErrNotAuthentic) {
			// Damaged by hand: it is then made anew.
			return "damaged", nil
		}
		return string(text), err
	}
	return "", nil
}

func credentialsRow(t domain.TenantID, id string) sealedRow {
	return sealedRow{tenant: t, table: "cluster_credentials", id: id}
}

// ask has the cluster asked where that is needed: for what is new, and for a token
// that is about to end. What was before under the same name ends first.
func (e *Environments) ask(ctx context.Context, f *environmentCRFacts, given reach.Cluster, key fairq.Key) {
	if e.askRemoval(ctx, f, key) {
		return
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() || f.problem != nil || f.placement.Instance == "" || f.terminating {
		// Also what is being asked for a CR that has gone: an account that is made
		// after that would stay for ever.
		e.Probes.Forget(key)
		return
	}
	own := ownEnvironment(*f)
	question := f.origin
	switch {
	case own == nil && beyond(QuotaEnvironments, "", f.older, f.quotas.Environments) != nil:
		return
	case own != nil && due(own.Credentials, f.renewAt, f.now):
		question += " until " + own.Credentials.TokenExpires.String()
	case own != nil && f.stored == f.origin:
		return
	}
	if own != nil && given.Account == "" {
		_, given.Former, _ = strings.Cut(own.Credentials.ServiceAccount, "/")
	}
	answer, answered := e.Probes.Ask(key, question, func(ctx context.Context) ConnectAnswer {
		connected, err := e.Reach.Connect(ctx, given)
		var problem *reach.Problem
		if err != nil && !errors.As(err, &problem) {
			problem = &reach.Problem{Reason: v1alpha1.ReasonUnknownError, Message: "the cluster could not be asked; this will be tried again"}
		}
		return ConnectAnswer{Connected: connected, Problem: problem}
	})
	if answered {
		f.answer = &answer
	}
}

func ownEnvironment(f environmentCRFacts) *store.Environment {
	for _, c := range f.chains {
		if c.Link.UID == string(f.cr.UID) && c.Link.Tenant == f.tenant && c.Environment != nil && c.Environment.Credentials != nil {
			return c.Environment
		}
	}
	return nil
}

// askRemoval has the accounts taken away that were made on clusters whose CR is
// gone, and says whether one is still being asked. One attempt is made: a cluster
// that is away must not keep the rows.
func (e *Environments) askRemoval(ctx context.Context, f *environmentCRFacts, key fairq.Key) (pending bool) {
	live := f.cr != nil && f.cr.DeletionTimestamp.IsZero()
	for _, c := range f.chains {
		if !hasAccount(c) || live && c.Link.UID == string(f.cr.UID) && c.Link.Tenant == f.tenant {
			continue
		}
		credentials := c.Environment.Credentials
		text, err := e.Sealer.Open(ctx, credentialsRow(c.Link.Tenant, c.Link.UID).at("sealed_kubeconfig"),
			seal.Sealed{KeyID: credentials.KeyID, Text: credentials.SealedAccess})
		if err != nil {
			e.Log.WarnContext(ctx, "cannot open the credentials of an environment that goes; its service account stays on the cluster", "uid", c.Link.UID, "error", err)
			f.removed[c.Environment.ID] = true
			continue
		}
		access, err := kubeconfig.Decode(text)
		if err != nil {
			f.removed[c.Environment.ID] = true
			continue
		}
		_, account, _ := strings.Cut(credentials.ServiceAccount, "/")
		answer, answered := e.Probes.Ask(key, "remove "+c.Link.UID, func(ctx context.Context) ConnectAnswer {
			if err := e.Reach.Remove(ctx, access, account); err != nil {
				return ConnectAnswer{Problem: &reach.Problem{Message: err.Error()}}
			}
			return ConnectAnswer{}
		})
		if !answered {
			return true
		}
		if answer.Problem != nil {
			e.Log.WarnContext(ctx, "the service account of an environment that goes stays on its cluster", "uid", c.Link.UID, "account", credentials.ServiceAccount)
		}
		f.removed[c.Environment.ID] = true
	}
	return false
}

func (e *Environments) act(ctx context.Context, f environmentCRFacts, d environmentDecision) error {
	if d.change == nil {
		return nil
	}
	if d.put != nil {
		c := d.change.PutEnvironment.Environment.Credentials
		access, err := d.put.Access.Encode()
		if err != nil {
			return err
		}
		sealed, keyID, err := sealColumns(ctx, e.Sealer, credentialsRow(f.tenant, string(f.cr.UID)),
			map[string][]byte{"sealed_kubeconfig": access, "sealed_origin": []byte(f.origin)})
		if err != nil {
			return err
		}
		c.SealedAccess, c.SealedOrigin, c.KeyID = sealed["sealed_kubeconfig"], sealed["sealed_origin"], keyID
	}
	if err := applyAndAnnounce(ctx, e.Store, e.Outbox, *d.change); err != nil {
		return err
	}
	// Only now: a token that did not get into its row is not the one that ends.
	if d.put != nil {
		e.renewals.Store(string(f.cr.UID), d.renewAt)
	}
	for _, gone := range d.change.RemoveEnvironments {
		e.renewals.Delete(string(gone.ID))
	}
	return nil
}

// applyAndAnnounce writes a decision, then announces its operations. A crash in
// between leaves waiting operations, which the outbox finds.
func applyAndAnnounce(ctx context.Context, s interface {
	Apply(ctx context.Context, c store.Change) ([]store.Operation, error)
}, outbox Outbox, change store.Change,
) error {
	ops, err := s.Apply(ctx, change)
	if err != nil {
		return err
	}
	for _, op := range ops {
		if err := outbox.Announce(ctx, op); err != nil {
			return fmt.Errorf("announce operation %s: %w", op.ID, err)
		}
	}
	return nil
}
