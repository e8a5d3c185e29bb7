// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// costs are what had been spent when a piece of work began.
type costs struct {
	bench          *bench
	tally          *rig.Tally
	backend, agent rig.Usage
	machine        time.Duration
	hops           map[string]rig.Mean
}

// spending is what a piece of work has cost.
type spending struct {
	backend, agent rig.Usage // processor time of the work alone, memory at its end
	machine        time.Duration
	statements     rig.Counts
	requests       rig.Counts
	hops           []report.Part
}

func (b *bench) startCosts(ctx context.Context) (*costs, error) {
	c := &costs{bench: b}
	var err error
	if c.hops, err = hops(ctx, b.rig.Backend, b.rig.Agent); err != nil {
		return nil, err
	}
	if c.tally, err = b.rig.Count(ctx); err != nil {
		return nil, err
	}
	if c.backend, err = b.rig.Backend.Usage(); err != nil {
		return nil, err
	}
	if c.agent, err = b.rig.Agent.Usage(); err != nil {
		return nil, err
	}
	c.machine, err = rig.MachineCPU()
	return c, err
}

// end reads everything again, first what reading itself would add to.
func (c *costs) end(ctx context.Context) (spending, error) {
	var s spending
	machine, err := rig.MachineCPU()
	if err != nil {
		return s, err
	}
	s.machine = machine - c.machine
	if s.backend, err = c.bench.rig.Backend.Usage(); err != nil {
		return s, err
	}
	if s.agent, err = c.bench.rig.Agent.Usage(); err != nil {
		return s, err
	}
	s.backend.CPU -= c.backend.CPU
	s.agent.CPU -= c.agent.CPU
	if s.statements, err = c.tally.Statements(ctx); err != nil {
		return s, err
	}
	if s.requests, err = c.tally.Requests(ctx); err != nil {
		return s, err
	}
	after, err := hops(ctx, c.bench.rig.Backend, c.bench.rig.Agent)
	if err != nil {
		return s, err
	}
	s.hops = means(rig.Since(c.hops, after))
	return s, nil
}

// hops reads how long the roles' hops and the waits in their queues took.
func hops(ctx context.Context, roles ...*rig.Role) (map[string]rig.Mean, error) {
	all := make(map[string]rig.Mean)
	for _, role := range roles {
		m, err := role.Metrics(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", role.Name, err)
		}
		for hop, mean := range m.Histograms("weir_hop_duration_seconds", "hop") {
			all["hop "+hop] = mean
		}
		for queue, mean := range m.Histograms("weir_queue_wait_seconds", "queue") {
			all["wait in queue "+queue] = mean
		}
	}
	return all, nil
}

func means(of map[string]rig.Mean) []report.Part {
	var parts []report.Part
	for _, name := range slices.Sorted(maps.Keys(of)) {
		m := of[name]
		parts = append(parts, report.Part{
			Name:  fmt.Sprintf("%s, mean of %d", name, m.Count),
			Value: 1000 * m.Seconds / float64(m.Count), Unit: report.UnitMilliseconds,
		})
	}
	return parts
}

// statementsFor and requestsFor divide by the number of deployments, and list
// what the number is made of.
func (s spending) statementsFor(name string, deployments int) report.Figure {
	return share(name, s.statements, deployments)
}

func (s spending) requestsFor(name string, deployments int) report.Figure {
	return share(name, s.requests, deployments)
}

func share(name string, counts rig.Counts, among int) report.Figure {
	f := report.Figure{Name: name, Value: float64(counts.Total()) / float64(among), Unit: report.UnitCount}
	for _, key := range counts.Keys() {
		const widest = 150
		if len(key) > widest {
			f.Detail = append(f.Detail, report.Part{Name: key[:widest] + " …", Value: float64(counts[key]) / float64(among)})
			continue
		}
		f.Detail = append(f.Detail, report.Part{Name: key, Value: float64(counts[key]) / float64(among)})
	}
	return f
}
