// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// SyncRunCluster is what the step needs of the cluster with the tenants'
// namespaces. CRs that are not there are nil.
type SyncRunCluster interface {
	SyncRun(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentSyncRun, error)
	SyncRunNow(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeploymentSyncRun, error)
	Deployment(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error)
	Namespace(ctx context.Context, name string) (kube.Namespace, error)
	// DeleteSyncRun deletes this very CR.
	DeleteSyncRun(ctx context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun) error
}

// SyncRunStore is where runs are taken in.
type SyncRunStore interface {
	store.SyncRuns
	Chains(ctx context.Context, namespace, name string) ([]store.Chain, error)
	Apply(ctx context.Context, c store.Change) ([]store.Operation, error)
}

// SyncRunProjector shows a tenant how its run is.
type SyncRunProjector interface {
	ShowSyncRun(ctx context.Context, cr *v1alpha1.GitOpsDeploymentSyncRun, chain *store.SyncChain, verdict error) error
}

// SyncRuns takes GitOpsDeploymentSyncRuns in.
type SyncRuns struct {
	Cluster SyncRunCluster
	Store   SyncRunStore
	Outbox  Outbox
	Status  SyncRunProjector
	Quotas  Quotas
	// TTL is how long a run stays once it has ended, where it does not say itself.
	TTL   time.Duration
	NewID func() domain.OperationID
	Now   func() time.Time
	Log   *slog.Logger
}

// Step makes the rows under one name follow the CR under that name, and the CR's
// status follow the rows.
func (s *SyncRuns) Step(ctx context.Context, namespace, name string) error {
	return again(func() error { return s.try(ctx, namespace, name) })
}

// again runs a step's try a few times where somebody else was faster.
func again(try func() error) error {
	for n := 1; ; n++ {
		err := try()
		contended := errors.Is(err, domain.ErrConflict) || errors.Is(err, domain.ErrMissingParent)
		if !contended || n == decideTries {
			return err
		}
	}
}

func (s *SyncRuns) try(ctx context.Context, namespace, name string) error {
	f, err := s.gather(ctx, namespace, name)
	if err != nil {
		return err
	}
	if f.cr != nil {
		ctx = telemetry.WithWork(ctx, telemetry.Work{Tenant: string(f.tenant), UID: string(f.cr.UID)})
	}
	d := decideSyncRun(f)
	if err := s.act(ctx, &d); err != nil {
		return err
	}
	if f.cr == nil || !f.cr.DeletionTimestamp.IsZero() {
		return nil
	}
	if d.expired {
		return s.Cluster.DeleteSyncRun(ctx, f.cr)
	}
	if err := s.Status.ShowSyncRun(ctx, f.cr, d.chain, d.verdict); err != nil {
		return err
	}
	var waiting *domain.Waiting
	switch {
	case errors.As(d.verdict, &waiting):
		return d.verdict
	case f.cr.Status.FinishedAt != nil || d.stays > 0:
		return &domain.Later{After: d.stays}
	}
	return nil
}

func (s *SyncRuns) gather(ctx context.Context, namespace, name string) (syncRunFacts, error) {
	f := syncRunFacts{now: s.Now(), ttl: s.TTL, newID: s.NewID}
	var err error
	if f.cr, err = s.Cluster.SyncRun(ctx, namespace, name); err != nil {
		return f, fmt.Errorf("read GitOpsDeploymentSyncRun: %w", err)
	}
	if f.chains, err = s.Store.SyncChains(ctx, namespace, name); err != nil {
		return f, err
	}
	foreign := func(c store.SyncChain) bool { return f.cr == nil || c.Link.UID != string(f.cr.UID) }
	if slices.ContainsFunc(f.chains, foreign) {
		// Before anything is removed, the API server is asked.
		if f.cr, err = s.Cluster.SyncRunNow(ctx, namespace, name); err != nil {
			return f, fmt.Errorf("read the GitOpsDeploymentSyncRun as it is now: %w", err)
		}
	}
	if f.cr == nil {
		return f, nil
	}
	ns, err := s.Cluster.Namespace(ctx, namespace)
	if err != nil {
		return f, fmt.Errorf("read namespace %s: %w", namespace, err)
	}
	f.tenant, f.terminating, f.quotas = ns.UID, ns.Terminating, s.Quotas.In(ns.Annotations)
	if !slices.ContainsFunc(f.chains, func(c store.SyncChain) bool { return !foreign(c) }) && f.cr.Status.FinishedAt == nil {
		f.deployment, err = s.deployment(ctx, f)
	}
	return f, err
}

// deployment reads the chain of the deployment that a run names.
func (s *SyncRuns) deployment(ctx context.Context, f syncRunFacts) (*store.Chain, error) {
	target, err := s.Cluster.Deployment(ctx, f.cr.Namespace, f.cr.Spec.GitopsDeploymentName)
	if err != nil || target == nil || !target.DeletionTimestamp.IsZero() {
		return nil, err
	}
	chains, err := s.Store.Chains(ctx, target.Namespace, target.Name)
	if err != nil {
		return nil, err
	}
	for i, c := range chains {
		if c.Link.Application == domain.ApplicationID(target.UID) && c.Link.Tenant == f.tenant {
			return &chains[i], nil
		}
	}
	return nil, nil
}

func (s *SyncRuns) act(ctx context.Context, d *syncRunDecision) error {
	var announce []store.Operation
	if d.change != nil {
		ops, err := s.Store.Apply(ctx, *d.change)
		if err != nil {
			return err
		}
		announce = ops
	} else if d.chain != nil && d.chain.Operation != nil && d.chain.Operation.State == domain.OperationWaiting {
		announce = []store.Operation{*d.chain.Operation}
	}
	for _, op := range announce {
		if err := s.Outbox.Announce(ctx, op); err != nil {
			return fmt.Errorf("announce operation %s: %w", op.ID, err)
		}
	}
	return nil
}
