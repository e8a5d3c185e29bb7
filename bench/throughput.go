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

// filling is how it went to create the deployments that then stay.
type filling struct {
	took       time.Duration
	spent      spending
	goroutines goroutines // before, at rest
}

type goroutines struct{ backend, agent float64 }

func (g goroutines) total() float64 { return g.backend + g.agent }

// fill creates the deployments of throughput and idle, the first time it is
// called.
func (b *bench) fill(ctx context.Context) (*filling, error) {
	if b.filled != nil {
		return b.filled, nil
	}
	var names []string
	for i := range b.sizes.namespaces {
		names = append(names, fmt.Sprintf("bench-many-%d", i))
	}
	if err := b.tenants(ctx, names...); err != nil {
		return nil, err
	}
	var crs []*v1alpha1.GitOpsDeployment
	for i := range b.sizes.deployments {
		crs = append(crs, deployment(names[i%len(names)], fmt.Sprintf("d-%d", i)))
	}
	f := &filling{}
	var err error
	if f.goroutines, err = b.goroutines(ctx); err != nil {
		return nil, err
	}
	cost, err := b.startCosts(ctx)
	if err != nil {
		return nil, err
	}
	b.say("%d writers create %d deployments in %d namespaces", b.sizes.writers, len(crs), len(names))
	start := time.Now()
	all, err := b.createAtOnce(ctx, crs)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		f.took = max(f.took, c.seen.Sub(start))
	}
	b.say("all Applications exist after %.1f s", f.took.Seconds())
	if err := b.rest(ctx); err != nil {
		return nil, err
	}
	if f.spent, err = cost.end(ctx); err != nil {
		return nil, err
	}
	b.filled = f
	return f, nil
}

func (b *bench) throughput(ctx context.Context) error {
	f, err := b.fill(ctx)
	if err != nil {
		return err
	}
	n := b.sizes.deployments
	took := report.Figure{
		Name: fmt.Sprintf("%d deployments, until all Applications exist", n), Value: f.took.Seconds(), Unit: report.UnitSeconds,
		Earlier: "20.7 s", Detail: f.spent.hops,
	}
	cpu := report.Figure{
		Name: "CPU, backend and agent", Value: (f.spent.backend.CPU + f.spent.agent.CPU).Seconds(), Unit: report.UnitCPUSeconds,
		Earlier: "11.7 CPU s",
		Detail: []report.Part{
			{Name: "backend", Value: f.spent.backend.CPU.Seconds(), Unit: report.UnitCPUSeconds},
			{Name: "agent", Value: f.spent.agent.CPU.Seconds(), Unit: report.UnitCPUSeconds},
			{Name: "the whole machine, with API server, etcd, PostgreSQL and the writers", Value: f.spent.machine.Seconds(), Unit: report.UnitCPUSeconds},
		},
	}
	b.add("throughput", took, cpu,
		report.Figure{Name: "CPU, backend", Value: f.spent.backend.CPU.Seconds(), Unit: report.UnitCPUSeconds},
		report.Figure{Name: "CPU, agent", Value: f.spent.agent.CPU.Seconds(), Unit: report.UnitCPUSeconds},
		memory("memory, backend", f.spent.backend),
		memory("memory, agent", f.spent.agent),
		f.spent.statementsFor("SQL statements for each", n),
		f.spent.requestsFor("API requests for each", n),
	)
	return nil
}

func memory(name string, u rig.Usage) report.Figure {
	const megabyte = 1 << 20
	return report.Figure{
		Name: name, Value: float64(u.Resident) / megabyte, Unit: report.UnitMegabytes,
		Detail: []report.Part{{Name: "the most it had", Value: float64(u.Peak) / megabyte, Unit: report.UnitMegabytes}},
	}
}

// goroutines counts those of both roles. Connections that were used a moment ago
// have some for a while, so the smallest number of several looks counts.
func (b *bench) goroutines(ctx context.Context) (goroutines, error) {
	const looks, between = 5, 500 * time.Millisecond
	var least goroutines
	for i := range looks {
		if err := rig.Pause(ctx, between); err != nil {
			return least, err
		}
		backend, err := b.rig.Backend.Metrics(ctx)
		if err != nil {
			return least, err
		}
		agent, err := b.rig.Agent.Metrics(ctx)
		if err != nil {
			return least, err
		}
		now := goroutines{backend.Gauge("go_goroutines"), agent.Gauge("go_goroutines")}
		if i == 0 || now.total() < least.total() {
			least = now
		}
	}
	return least, nil
}
