// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha1" //nolint:gosec // For something that looks like a commit.
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// status measures the way up, each time on another deployment, and its floor in
// turns with it.
func (b *bench) status(ctx context.Context) error {
	const namespace = "bench-status"
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
	stop, err := b.rig.WatchStatus(ctx)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.measureStatus(ctx, all); err != nil {
		return err
	}
	if err := b.remove(ctx, all); err != nil {
		return err
	}
	return b.rest(ctx)
}

func (b *bench) measureStatus(ctx context.Context, all []created) error {
	bare, err := b.rig.NewFloor(ctx)
	if err != nil {
		return err
	}
	for i := range 5 { // warm up
		revision := revisionOf("warm up", i)
		if _, err := bare.Up(ctx, revision, statusPatch(revision)); err != nil {
			return err
		}
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	cost, err := b.startCosts(ctx)
	if err != nil {
		return err
	}
	var floor floors
	var latency report.Durations
	for len(latency) < len(all) {
		for range b.sizes.block {
			revision := revisionOf("floor", len(floor.total))
			parts, err := bare.Up(ctx, revision, statusPatch(revision))
			if err != nil {
				return err
			}
			floor.add(parts)
		}
		for range b.sizes.block {
			took, err := b.statusUp(ctx, all[len(latency)], revisionOf("status", len(latency)))
			if err != nil {
				return err
			}
			latency = append(latency, took)
		}
		b.say("%d of %d statuses shown", len(latency), len(all))
		if err := b.rest(ctx); err != nil {
			return err
		}
	}
	spent, err := cost.end(ctx)
	if err != nil {
		return err
	}
	b.reportStatus(latency, &floor, spent)
	return bare.Close(ctx)
}

// statusUp writes an Application's status and waits until its deployment shows
// it.
func (b *bench) statusUp(ctx context.Context, c created, revision string) (time.Duration, error) {
	app := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: rig.EngineNamespace, Name: c.application()}}
	seen := b.rig.Board.Expect(rig.StatusWith(revision))
	start := time.Now()
	if err := b.rig.Client.Patch(ctx, app, statusPatch(revision)); err != nil {
		return 0, fmt.Errorf("patch an Application's status: %w", err)
	}
	at, err := seen.Wait(ctx)
	return at.Sub(start), err
}

func (b *bench) reportStatus(latency report.Durations, floor *floors, spent spending) {
	base := milliseconds("floor, status up", floor.total, 50)
	base.Detail = floor.detail()
	p50 := floor.beside("Application status → CR status", latency, 50)
	p50.Target, p50.Earlier, p50.Detail = report.AtMostFloors(2), "8.2 s", spent.hops
	b.add("status",
		base, milliseconds("floor, status up", floor.total, 99),
		p50,
		floor.beside("Application status → CR status", latency, 95),
		floor.beside("Application status → CR status", latency, 99),
		spent.statementsFor("SQL statements for one status", len(latency)),
		spent.requestsFor("API requests for one status", len(latency)),
	)
}

// revisionOf makes up a commit.
func revisionOf(what string, i int) string {
	sum := sha1.Sum(fmt.Appendf(nil, "%s %d", what, i)) //nolint:gosec // See above.
	return hex.EncodeToString(sum[:])
}

// statusPatch is what an engine writes after it has compared.
func statusPatch(revision string) client.Patch {
	healthy := argov1alpha1.HealthStatus{Status: argov1alpha1.HealthStatusHealthy}
	status := argov1alpha1.ApplicationStatus{
		Sync:   argov1alpha1.SyncStatus{Status: argov1alpha1.SyncStatusSynced, Revision: revision},
		Health: healthy,
	}
	for _, kind := range []string{"Deployment", "Service", "ConfigMap", "Secret", "Ingress"} {
		status.Resources = append(status.Resources, argov1alpha1.ResourceStatus{
			Version: "v1", Kind: kind, Namespace: "shop", Name: "the-" + kind, Status: argov1alpha1.SyncStatusSynced, Health: &healthy,
		})
	}
	text, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		// Strings always encode.
		panic(fmt.Sprintf("encode a status: %v", err))
	}
	return client.RawPatch(types.MergePatchType, text)
}
