// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// The steps know nothing of measurements; these put them around the steps'
// dependencies.

type timedStore struct {
	store.Store
	hops *telemetry.Hops
}

func (t timedStore) Apply(ctx context.Context, c store.Change) (ops []store.Operation, err error) {
	err = t.hops.Time(telemetry.HopCommit, func() error {
		ops, err = t.Store.Apply(ctx, c)
		return err
	})
	return ops, err
}

type timedOutbox struct {
	intake.Outbox
	hops *telemetry.Hops
}

func (t timedOutbox) Announce(ctx context.Context, op store.Operation) error {
	return t.hops.Time(telemetry.HopAnnounce, func() error { return t.Outbox.Announce(ctx, op) })
}

type timedStatus struct {
	intake.Projector
	hops *telemetry.Hops
}

func (t timedStatus) Show(ctx context.Context, cr *v1alpha1.GitOpsDeployment, chain *store.Chain, verdict error) error {
	return t.hops.Time(telemetry.HopProject, func() error { return t.Projector.Show(ctx, cr, chain, verdict) })
}
