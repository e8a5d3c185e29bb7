// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// sizes are how much each scenario does.
type sizes struct {
	latencies int // creates, updates, deletes and status changes, each
	block     int // how many of them between two blocks of floors

	deployments int // at rest
	namespaces  int
	writers     int

	flood  int // deployments created at once
	floods int // how often that is repeated
	quiet  int // creates that make a quiet latency

	stuck  int
	missed int
	idle   time.Duration

	environments int // that answer
	dead         int // that never do
	full         int // deployments at a full service
	fullTenants  int
}

func fullSizes() sizes {
	return sizes{
		latencies: 200, block: 25, deployments: 1000, namespaces: 50, writers: 32,
		flood: 500, floods: 5, quiet: 20, stuck: 25, missed: 20, idle: time.Minute,
		environments: 150, dead: 50, full: 10_000, fullTenants: 200,
	}
}

func quickSizes() sizes {
	return sizes{
		latencies: 20, block: 10, deployments: 100, namespaces: 5, writers: 16,
		flood: 60, floods: 2, quiet: 6, stuck: 5, missed: 5, idle: 10 * time.Second,
		environments: 15, dead: 5, full: 300, fullTenants: 10,
	}
}

// bench is a run.
type bench struct {
	rig     *rig.Rig
	sizes   sizes
	results *report.Results
	say     func(format string, args ...any)

	// clients are the tenants, by namespace.
	clients map[string]client.Client
	// filled is the outcome of fill, once it has run.
	filled *filling
}

type scenario struct {
	name string
	run  func(*bench, context.Context) error
}

// scenarios gives them in their order: those that need a still cluster first,
// and idle while the deployments of throughput are all there are.
func scenarios() []scenario {
	return []scenario{
		{"latency", (*bench).latency},
		{"status", (*bench).status},
		{"sync", (*bench).syncRuns},
		{"rotation", (*bench).rotation},
		{"throughput", (*bench).throughput},
		{"idle", (*bench).idle},
		{"fairness", (*bench).fairness},
		{"stuck", (*bench).stuckDeletes},
		{"missed", (*bench).missedDeletes},
		{"environments", (*bench).environments},
		{"full", (*bench).full},
	}
}

func scenarioNames() []string {
	var names []string
	for _, s := range scenarios() {
		names = append(names, s.name)
	}
	return names
}

// runScenarios runs those that were asked for, all where none was. One that
// fails does not keep the others from being measured.
func (b *bench) runScenarios(ctx context.Context, only []string) error {
	var failed error
	for _, s := range scenarios() {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		b.say("— %s", s.name)
		if err := s.run(b, ctx); err != nil {
			b.say("%s failed: %v", s.name, err)
			b.results.Fail(s.name, err)
			failed = errors.Join(failed, fmt.Errorf("%s: %w", s.name, err))
		}
		if ctx.Err() != nil {
			return errors.Join(failed, context.Cause(ctx))
		}
	}
	return failed
}

// add reports figures of a scenario.
func (b *bench) add(scenario string, figures ...report.Figure) {
	for _, f := range figures {
		f.Scenario = scenario
		b.results.Add(f)
	}
}

// milliseconds makes a figure of a percentile.
func milliseconds(name string, d report.Durations, percentile float64) report.Figure {
	return report.Figure{Name: fmt.Sprintf("%s, p%v", name, percentile), Value: report.Milliseconds(d.Percentile(percentile)), Unit: report.UnitMilliseconds}
}
