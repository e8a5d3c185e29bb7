// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/bench/report"
	"github.com/weir-gitops/weir/bench/rig"
)

// fairness floods the service as one tenant and looks at it as another.
func (b *bench) fairness(ctx context.Context) error {
	bare, err := b.rig.NewFloor(ctx)
	if err != nil {
		return err
	}
	var m floodings
	for i := range b.sizes.floods {
		lone, many := fmt.Sprintf("bench-lone-%d", i), fmt.Sprintf("bench-flood-%d", i)
		if err := b.tenants(ctx, lone, many); err != nil {
			return err
		}
		alone, err := b.quietLatency(ctx, lone, max(1, b.sizes.quiet/b.sizes.floods))
		if err != nil {
			return err
		}
		m.quiet = append(m.quiet, alone...)
		o, err := b.flood(ctx, bare, lone, many)
		if err != nil {
			return err
		}
		m.add(o)
		b.say("alone %.1f ms, under a flood %.1f ms (its request %.1f ms, the floor just then %.1f ms; %d of the flood missing; it took %.1f s)",
			report.Milliseconds(alone.Median()), report.Milliseconds(o.lone), report.Milliseconds(o.request),
			report.Milliseconds(o.floor), o.missing, o.flood.Seconds())
	}
	b.reportFairness(m)
	return bare.Close(ctx)
}

// floodings are the measurements of all floods.
type floodings struct {
	quiet, lone, request, floor, flood report.Durations
	missing                            []report.Part
}

func (m *floodings) add(o outcome) {
	m.lone, m.request, m.floor, m.flood = append(m.lone, o.lone), append(m.request, o.request), append(m.floor, o.floor), append(m.flood, o.flood)
	m.missing = append(m.missing, report.Part{Name: "Applications of a flood missing when the lone tenant began", Value: float64(o.missing)})
}

func (b *bench) reportFairness(m floodings) {
	quiet := report.Milliseconds(m.quiet.Median())
	median := func(name string, d report.Durations) report.Figure {
		return report.Figure{Name: name, Value: report.Milliseconds(d.Median()), Unit: report.UnitMilliseconds}
	}
	under := median(fmt.Sprintf("create beside %d of another tenant, median", b.sizes.flood), m.lone)
	under.Floor, under.Target, under.Detail = quiet, report.AtMostFloors(3), m.missing
	worst := report.Figure{Name: "the worst of them", Value: report.Milliseconds(m.lone.Max()), Unit: report.UnitMilliseconds, Floor: quiet}
	b.add("fairness",
		median("create, quiet, median", m.quiet), under, worst,
		median("of these the create request itself, median", m.request),
		median("floor, truth down, beside the flood, median", m.floor),
		report.Figure{Name: "the flood itself, median", Value: m.flood.Median().Seconds(), Unit: report.UnitSeconds},
	)
}

// quietLatency is what creates of a tenant take while nothing else happens, each
// begun at rest. The tenant's first is not counted: it also settles the tenant.
func (b *bench) quietLatency(ctx context.Context, namespace string, n int) (report.Durations, error) {
	var latency report.Durations
	for i := range n + 1 {
		if err := b.rest(ctx); err != nil {
			return nil, err
		}
		c, err := b.create(ctx, deployment(namespace, fmt.Sprintf("quiet-%d", i)))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			latency = append(latency, c.latency())
		}
	}
	return latency, b.rest(ctx)
}

// outcome is how one flood went.
type outcome struct {
	// lone is the lone tenant's latency, request the part of it until its create
	// request was answered, which no queue of ours can do anything about.
	lone, request time.Duration
	// floor is what the bare client needed just after that.
	floor   time.Duration
	flood   time.Duration
	missing int
}

// flood creates many deployments of one tenant and, a second later, one of
// another.
func (b *bench) flood(ctx context.Context, bare *rig.Floor, lone, many string) (outcome, error) {
	const later = time.Second
	var crs []*v1alpha1.GitOpsDeployment
	for i := range b.sizes.flood {
		crs = append(crs, deployment(many, fmt.Sprintf("d-%d", i)))
	}
	type flooding struct {
		all []created
		err error
	}
	start := time.Now()
	done := make(chan flooding, 1)
	go func() {
		all, err := b.createAtOnce(ctx, crs)
		done <- flooding{all, err}
	}()
	if err := rig.Pause(ctx, later); err != nil {
		return outcome{}, err
	}
	one, loneErr := b.create(ctx, deployment(lone, "beside-the-flood"))
	parts, floorErr := bare.Down(ctx)
	// The flood has to end before anything else is measured, whatever happened.
	flooded := <-done
	if err := errors.Join(loneErr, floorErr, flooded.err); err != nil {
		return outcome{}, err
	}
	o := outcome{lone: one.latency(), request: one.answered.Sub(one.sent), floor: rig.Total(parts)}
	for _, c := range flooded.all {
		o.flood = max(o.flood, c.seen.Sub(start))
		if c.seen.After(one.sent) {
			o.missing++
		}
	}
	return o, b.rest(ctx)
}
