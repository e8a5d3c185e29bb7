// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// idle measures what deployments at rest cost.
func (b *bench) idle(ctx context.Context) error {
	filled, err := b.fill(ctx)
	if err != nil {
		return err
	}
	if err := b.awaitCollection(ctx); err != nil {
		return err
	}
	now, err := b.goroutines(ctx)
	if err != nil {
		return err
	}
	b.say("nothing happens for %s", b.sizes.idle)
	cost, err := b.startCosts(ctx)
	if err != nil {
		return err
	}
	if err := rig.Pause(ctx, b.sizes.idle); err != nil {
		return err
	}
	spent, err := cost.end(ctx)
	if err != nil {
		return err
	}
	b.reportIdle(spent, filled.goroutines, now)
	return nil
}

// awaitCollection waits until finished operations have been collected: that is
// the end of what was done before, not part of being at rest.
func (b *bench) awaitCollection(ctx context.Context) error {
	const look, longest = 2 * time.Second, 3 * time.Minute
	b.say("waiting until finished operations have been collected")
	for start := time.Now(); ; {
		left, err := b.rig.OperationRows(ctx)
		switch {
		case err != nil:
			return err
		case left == 0:
			return nil
		case time.Since(start) > longest:
			return fmt.Errorf("%d finished operations have not been collected within %s", left, longest)
		}
		if err := rig.Pause(ctx, look); err != nil {
			return err
		}
	}
}

func (b *bench) reportIdle(spent spending, before, now goroutines) {
	perMinute := float64(time.Minute) / float64(b.sizes.idle)
	beats, others := splitHeartbeats(spent.statements)
	statements := share("SQL statements a minute", spent.statements, 1)
	statements.Value *= perMinute
	statements.Earlier = "11,600"
	cpu := report.Figure{
		Name: "CPU a minute, backend and agent", Value: (spent.backend.CPU + spent.agent.CPU).Seconds() * perMinute, Unit: report.UnitCPUSeconds,
		Target: report.AtMost(0.5),
		Detail: []report.Part{
			{Name: "backend", Value: spent.backend.CPU.Seconds(), Unit: report.UnitCPUSeconds},
			{Name: "agent", Value: spent.agent.CPU.Seconds(), Unit: report.UnitCPUSeconds},
			{Name: "the whole machine", Value: spent.machine.Seconds(), Unit: report.UnitCPUSeconds},
		},
	}
	n := float64(b.sizes.deployments)
	each := report.Figure{
		// A few connections more or less are not a goroutine for each.
		Name: "goroutines for each deployment", Value: max(0, now.total()-before.total()) / n, Unit: report.UnitCount,
		Target: report.AtMost(0), Earlier: "4.3",
		Detail: []report.Part{
			{Name: "backend, without deployments", Value: before.backend},
			{Name: "backend, with them", Value: now.backend},
			{Name: "agent, without deployments", Value: before.agent},
			{Name: "agent, with them", Value: now.agent},
		},
	}
	b.add("idle", cpu,
		statements,
		report.Figure{Name: "of these heartbeats", Value: float64(beats.Total()) * perMinute},
		report.Figure{Name: "of these others", Value: float64(others.Total()) * perMinute, Target: report.AtMost(0)},
		share("API requests in that time", spent.requests, 1),
		each,
	)
}

// splitHeartbeats tells statements that only look whether the connection lives
// and whether the change log has news from all others.
func splitHeartbeats(all rig.Counts) (beats, others rig.Counts) {
	beats, others = make(rig.Counts), make(rig.Counts)
	for text, n := range all {
		if heartbeat(text) {
			beats[text] = n
		} else {
			others[text] = n
		}
	}
	return beats, others
}

func heartbeat(text string) bool {
	lower := strings.ToLower(strings.TrimSpace(text))
	switch {
	case lower == "", lower == ";", lower == "-- ping", strings.HasPrefix(lower, "listen "):
		return true
	case strings.HasPrefix(lower, "select"):
		return !strings.Contains(lower, " from ") || strings.Contains(lower, "from change_log_horizon")
	}
	return false
}
