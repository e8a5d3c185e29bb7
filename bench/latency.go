// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// latency measures create, update and delete one after the other, and the floor
// of the creates in turns with them.
func (b *bench) latency(ctx context.Context) error {
	const namespace = "bench-latency"
	if err := b.tenants(ctx, namespace); err != nil {
		return err
	}
	// Settles the tenant, so that what follows is of a known one.
	first, err := b.createOneByOne(ctx, namespace, "first", 5)
	if err != nil {
		return err
	}
	all, floor, err := b.measureCreates(ctx, namespace)
	if err != nil {
		return err
	}
	if err := b.measureUpdates(ctx, all, floor); err != nil {
		return err
	}
	if err := b.measureDeletes(ctx, all, floor); err != nil {
		return err
	}
	return b.remove(ctx, first)
}

// floors are the measurements of the bare client.
type floors struct {
	total report.Durations
	names []string
	parts map[string]report.Durations
}

func (f *floors) add(parts []rig.Part) {
	f.total = append(f.total, rig.Total(parts))
	if f.parts == nil {
		f.parts = make(map[string]report.Durations)
	}
	for _, p := range parts {
		if _, known := f.parts[p.Name]; !known {
			f.names = append(f.names, p.Name)
		}
		f.parts[p.Name] = append(f.parts[p.Name], p.Took)
	}
}

// detail gives the median of each step.
func (f *floors) detail() []report.Part {
	var d []report.Part
	for _, name := range f.names {
		d = append(d, report.Part{Name: name + ", p50", Value: report.Milliseconds(f.parts[name].Median()), Unit: report.UnitMilliseconds})
	}
	return d
}

func (b *bench) measureCreates(ctx context.Context, namespace string) ([]created, *floors, error) {
	bare, err := b.rig.NewFloor(ctx)
	if err != nil {
		return nil, nil, err
	}
	for range 5 { // warm up
		if _, err := bare.Down(ctx); err != nil {
			return nil, nil, err
		}
	}
	if err := b.rest(ctx); err != nil {
		return nil, nil, err
	}
	cost, err := b.startCosts(ctx)
	if err != nil {
		return nil, nil, err
	}
	var floor floors
	var all []created
	for len(all) < b.sizes.latencies {
		for range b.sizes.block {
			parts, err := bare.Down(ctx)
			if err != nil {
				return nil, nil, err
			}
			floor.add(parts)
		}
		block, err := b.createOneByOne(ctx, namespace, fmt.Sprintf("d-%d", len(all)), b.sizes.block)
		if err != nil {
			return nil, nil, err
		}
		all = append(all, block...)
		b.say("%d of %d created", len(all), b.sizes.latencies)
		if err := b.rest(ctx); err != nil {
			return nil, nil, err
		}
	}
	spent, err := cost.end(ctx)
	if err != nil {
		return nil, nil, err
	}
	b.reportCreates(all, &floor, spent)
	return all, &floor, bare.Close(ctx)
}

func (b *bench) reportCreates(all []created, floor *floors, spent spending) {
	var latency, answered report.Durations
	for _, c := range all {
		latency = append(latency, c.latency())
		answered = append(answered, c.seen.Sub(c.answered))
	}
	base := milliseconds("floor, truth down", floor.total, 50)
	base.Detail = floor.detail()
	p50 := floor.beside("create → Application", latency, 50)
	p50.Target, p50.Earlier = report.AtMostFloors(2).AimingAt(1.5), "32–36 ms, 4.7×"
	p50.Detail = spent.hops
	p99 := floor.beside("create → Application", latency, 99)
	p99.Target, p99.Earlier = report.AtMost(60), "60–75 ms"
	figures := []report.Figure{
		base, milliseconds("floor, truth down", floor.total, 95), milliseconds("floor, truth down", floor.total, 99),
		p50, floor.beside("create → Application", latency, 95), p99,
		floor.beside("create, from the answer", answered, 50), floor.beside("create, from the answer", answered, 99),
	}
	statements := spent.statementsFor("SQL statements for one create", len(all))
	statements.Target, statements.Earlier = report.AtMost(8), "41"
	requests := spent.requestsFor("API requests for one create", len(all))
	requests.Target = report.AtMost(6)
	b.add("latency", append(figures, statements, requests)...)
}

// beside makes a figure of a percentile of a latency, with the same percentile of
// the floor beside it.
func (f *floors) beside(name string, latency report.Durations, percentile float64) report.Figure {
	figure := milliseconds(name, latency, percentile)
	figure.Floor = report.Milliseconds(f.total.Percentile(percentile))
	return figure
}

func (b *bench) measureUpdates(ctx context.Context, all []created, floor *floors) error {
	var latency report.Durations
	for _, c := range all {
		path := c.cr.Spec.Source.Path + "/updated"
		seen := b.rig.Board.Expect(rig.ApplicationWith(path))
		start := time.Now()
		if err := b.repath(ctx, c.cr, path); err != nil {
			return err
		}
		at, err := seen.Wait(ctx)
		if err != nil {
			return err
		}
		latency = append(latency, at.Sub(start))
	}
	b.say("%d updated", len(latency))
	b.addLatency("update → Application", latency, floor, "")
	return b.rest(ctx)
}

func (b *bench) measureDeletes(ctx context.Context, all []created, floor *floors) error {
	var latency report.Durations
	for _, c := range all {
		gone := b.rig.Board.Expect(rig.ApplicationGone(c.application()))
		start := time.Now()
		if err := b.clients[c.cr.Namespace].Delete(ctx, c.cr); err != nil {
			return fmt.Errorf("delete a GitOpsDeployment: %w", err)
		}
		at, err := gone.Wait(ctx)
		if err != nil {
			return err
		}
		latency = append(latency, at.Sub(start))
	}
	b.say("%d deleted", len(latency))
	b.addLatency("delete → Application gone", latency, floor, "63 ms")
	return b.rest(ctx)
}

// addLatency reports three percentiles beside those of the floor.
func (b *bench) addLatency(name string, latency report.Durations, floor *floors, earlier string) {
	for _, percentile := range []float64{50, 95, 99} {
		f := floor.beside(name, latency, percentile)
		if percentile == 50 {
			f.Earlier = earlier
		}
		b.add("latency", f)
	}
}
