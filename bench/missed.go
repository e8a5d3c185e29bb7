// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// missedDeletes deletes deployments while there is no backend to see it.
func (b *bench) missedDeletes(ctx context.Context) error {
	const namespace = "bench-missed"
	if err := b.tenants(ctx, namespace); err != nil {
		return err
	}
	var crs []*v1alpha1.GitOpsDeployment
	for i := range b.sizes.missed {
		crs = append(crs, deployment(namespace, fmt.Sprintf("d-%d", i)))
	}
	all, err := b.createAtOnce(ctx, crs)
	if err != nil {
		return err
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	if err := b.rig.Backend.Kill(); err != nil {
		return err
	}
	b.say("backend killed")
	var gone []*rig.Sighting
	for _, c := range all {
		gone = append(gone, b.rig.Board.Expect(rig.ApplicationGone(c.application())))
		if err := b.clients[c.cr.Namespace].Delete(ctx, c.cr); err != nil {
			return fmt.Errorf("delete a GitOpsDeployment: %w", err)
		}
	}
	start := time.Now()
	if err := b.rig.Backend.Start(); err != nil {
		return err
	}
	if err := b.rig.Backend.AwaitReady(ctx); err != nil {
		return err
	}
	ready := time.Now()
	last, err := rig.WaitAll(ctx, gone)
	if err != nil {
		return err
	}
	b.say("all gone %.2f s after the start", last.Sub(start).Seconds())
	// The process is new, so this is all of what it did.
	spent, err := hops(ctx, b.rig.Backend)
	if err != nil {
		return err
	}
	b.add("missed",
		report.Figure{
			Name: fmt.Sprintf("%d deletions, gone after the backend's start", b.sizes.missed), Value: last.Sub(start).Seconds(), Unit: report.UnitSeconds,
			Target: report.AtMost(5), Earlier: "never in 30 min", Detail: means(spent),
		},
		report.Figure{Name: "gone after it was ready", Value: max(0, last.Sub(ready).Seconds()), Unit: report.UnitSeconds},
		report.Figure{Name: "ready after its start", Value: ready.Sub(start).Seconds(), Unit: report.UnitSeconds},
	)
	return b.rest(ctx)
}
