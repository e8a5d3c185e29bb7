// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// inTurns measures something and the floor of truth flowing down, a block of each
// at a time.
func (b *bench) inTurns(ctx context.Context, n int, what string, one func(i int) (time.Duration, error)) (report.Durations, *floors, error) {
	bare, err := b.rig.NewFloor(ctx)
	if err != nil {
		return nil, nil, err
	}
	var floor floors
	var latency report.Durations
	for len(latency) < n {
		for range b.sizes.block {
			parts, err := bare.Down(ctx)
			if err != nil {
				return nil, nil, err
			}
			floor.add(parts)
		}
		for range b.sizes.block {
			took, err := one(len(latency))
			if err != nil {
				return nil, nil, err
			}
			latency = append(latency, took)
		}
		b.say("%d of %d %s", len(latency), n, what)
	}
	return latency, &floor, bare.Close(ctx)
}

// syncRuns measures from a GitOpsDeploymentSyncRun to the request that the engine
// sees, each time on another deployment.
func (b *bench) syncRuns(ctx context.Context) error {
	const namespace = "bench-sync"
	if err := b.tenants(ctx, namespace); err != nil {
		return err
	}
	var crs []*v1alpha1.GitOpsDeployment
	for i := range b.sizes.latencies {
		crs = append(crs, deployment(namespace, fmt.Sprintf("d-%d", i)))
	}
	all, err := b.createAtOnce(ctx, crs)
	if err != nil {
		return err
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	latency, floor, err := b.inTurns(ctx, len(all), "syncs asked for", func(i int) (time.Duration, error) {
		return b.requestSync(ctx, all[i])
	})
	if err != nil {
		return err
	}
	p50 := floor.beside("SyncRun → sync asked of the engine", latency, 50)
	p50.Target = report.AtMostFloors(2.5)
	b.add("sync", milliseconds("floor, truth down", floor.total, 50), p50,
		floor.beside("SyncRun → sync asked of the engine", latency, 95),
		floor.beside("SyncRun → sync asked of the engine", latency, 99))
	// Nobody carries the syncs out here, so they go with their deployments.
	if err := b.remove(ctx, all); err != nil {
		return err
	}
	return b.rest(ctx)
}

// requestSync makes a run. Its UID is known only from the answer, by when the
// request may have been seen, so what is waited for is one on the Application.
func (b *bench) requestSync(ctx context.Context, c created) (time.Duration, error) {
	run := &v1alpha1.GitOpsDeploymentSyncRun{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.cr.Namespace, Name: "run-" + c.cr.Name},
		Spec:       v1alpha1.GitOpsDeploymentSyncRunSpec{GitopsDeploymentName: c.cr.Name, RevisionID: revisionOf("sync", 1)},
	}
	seen := b.rig.Board.Expect(rig.SyncAsked(c.application()))
	start := time.Now()
	if err := b.clients[c.cr.Namespace].Create(ctx, run); err != nil {
		return 0, fmt.Errorf("create a GitOpsDeploymentSyncRun: %w", err)
	}
	at, err := seen.Wait(ctx)
	return at.Sub(start), err
}
