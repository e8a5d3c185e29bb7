// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// stuckDeletes has one tenant's deletions hang and looks at the service as
// another tenant.
func (b *bench) stuckDeletes(ctx context.Context) error {
	const lone, stuck = "bench-beside-stuck", "bench-stuck"
	if err := b.tenants(ctx, lone, stuck); err != nil {
		return err
	}
	quiet, err := b.quietLatency(ctx, lone, b.sizes.quiet)
	if err != nil {
		return err
	}
	defer b.rig.Engine.Revive(ctx)
	gone, err := b.getStuck(ctx, stuck)
	if err != nil {
		return err
	}
	b.say("%d deletions are stuck", len(gone))
	var beside report.Durations
	for i := range b.sizes.quiet {
		c, err := b.create(ctx, deployment(lone, fmt.Sprintf("beside-%d", i)))
		if err != nil {
			return err
		}
		beside = append(beside, c.latency())
		// Not b.rest: the Operations of the stuck ones stay. Begun at the same pace
		// as the quiet ones, though.
		if err := rig.Pause(ctx, settling); err != nil {
			return err
		}
	}
	b.add("stuck",
		report.Figure{Name: "create, quiet, median", Value: report.Milliseconds(quiet.Median()), Unit: report.UnitMilliseconds},
		report.Figure{
			Name: fmt.Sprintf("create beside %d stuck deletions, median", b.sizes.stuck), Value: report.Milliseconds(beside.Median()), Unit: report.UnitMilliseconds,
			Floor: report.Milliseconds(quiet.Median()), Target: report.AtMostFloors(1.5), Earlier: "304 s",
		},
		report.Figure{Name: "the worst of them", Value: report.Milliseconds(beside.Max()), Unit: report.UnitMilliseconds, Floor: report.Milliseconds(quiet.Median())},
	)
	b.rig.Engine.Revive(ctx)
	if _, err := rig.WaitAll(ctx, gone); err != nil {
		return fmt.Errorf("after the engine came back: %w", err)
	}
	return b.rest(ctx)
}

// getStuck creates deployments and deletes them while the engine is dead. It
// returns when all their Applications have been marked as deleted.
func (b *bench) getStuck(ctx context.Context, namespace string) (gone []*rig.Sighting, err error) {
	var crs []*v1alpha1.GitOpsDeployment
	for i := range b.sizes.stuck {
		cr := deployment(namespace, fmt.Sprintf("d-%d", i))
		if i%2 == 1 {
			cr.Finalizers = []string{v1alpha1.DeletionFinalizer}
		}
		crs = append(crs, cr)
	}
	all, err := b.createAtOnce(ctx, crs)
	if err != nil {
		return nil, err
	}
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	b.rig.Engine.Die()
	var going []*rig.Sighting
	for _, c := range all {
		going = append(going, b.rig.Board.Expect(rig.ApplicationGoing(c.application())))
		gone = append(gone, b.rig.Board.Expect(rig.ApplicationGone(c.application())))
		if err := b.clients[c.cr.Namespace].Delete(ctx, c.cr); err != nil {
			return nil, fmt.Errorf("delete a GitOpsDeployment: %w", err)
		}
	}
	if _, err := rig.WaitAll(ctx, going); err != nil {
		return nil, err
	}
	return gone, rig.Pause(ctx, settling)
}
