// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
)

// full fills the service and looks at what a create takes then, and at the memory
// of the roles.
func (b *bench) full(ctx context.Context) error {
	const lone = "bench-full-lone"
	if err := b.tenants(ctx, lone); err != nil {
		return err
	}
	before, err := b.fullLatency(ctx, lone, "before")
	if err != nil {
		return err
	}
	var names []string
	for i := range b.sizes.fullTenants {
		names = append(names, fmt.Sprintf("bench-full-%d", i))
	}
	if err := b.tenants(ctx, names...); err != nil {
		return err
	}
	const page = 1000
	for done := 0; done < b.sizes.full; done += page {
		var crs []*v1alpha1.GitOpsDeployment
		for i := done; i < min(done+page, b.sizes.full); i++ {
			crs = append(crs, deployment(names[i%len(names)], fmt.Sprintf("d-%d", i)))
		}
		if _, err := b.createAtOnce(ctx, crs); err != nil {
			return err
		}
		b.say("%d of %d deployments are there", done+len(crs), b.sizes.full)
	}
	if err := b.rest(ctx); err != nil {
		return err
	}
	after, err := b.fullLatency(ctx, lone, "after")
	if err != nil {
		return err
	}
	spent, err := b.startCosts(ctx)
	if err != nil {
		return err
	}
	now, err := spent.end(ctx)
	if err != nil {
		return err
	}
	resident := memory(fmt.Sprintf("memory with %d deployments of %d tenants, backend and agent", b.sizes.full, b.sizes.fullTenants), now.backend)
	agent := memory("", now.agent)
	resident.Value += agent.Value
	resident.Detail = []report.Part{
		{Name: "backend", Value: resident.Value - agent.Value, Unit: report.UnitMegabytes}, {Name: "agent", Value: agent.Value, Unit: report.UnitMegabytes},
	}
	resident.Target = report.AtMost(400)
	latency := report.Figure{
		Name: "create at that fill, median", Value: report.Milliseconds(after.Median()), Floor: report.Milliseconds(before.Median()),
		Unit: report.UnitMilliseconds, Target: report.AtMostFloors(1.5),
	}
	b.add("full", report.Figure{Name: "create before, median", Value: report.Milliseconds(before.Median()), Unit: report.UnitMilliseconds}, latency, resident)
	return nil
}

func (b *bench) fullLatency(ctx context.Context, namespace, prefix string) (report.Durations, error) {
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	all, err := b.createOneByOne(ctx, namespace, prefix, 3*b.sizes.block)
	if err != nil {
		return nil, err
	}
	var latency report.Durations
	for _, c := range all[b.sizes.block/2:] {
		latency = append(latency, c.latency())
	}
	return latency, nil
}
