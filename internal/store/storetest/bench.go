// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Benchmark measures the four calls that a new deployment costs, one after the
// other as in life, and reports the median and the 99th percentile of each.
func Benchmark(b *testing.B, s store.Store) {
	ctx := b.Context()
	i := store.Instance{ID: engine, Cluster: cluster, Namespace: engineNS, Kind: store.EngineNone}
	if err := s.RegisterEngine(ctx, i); err != nil {
		b.Fatal(err)
	}
	if _, err := s.Apply(ctx, store.Change{Tenant: tenantRows(alice)}); err != nil {
		b.Fatal(err)
	}
	took := make(map[string][]time.Duration)
	timed := func(name string, call func() error) {
		start := time.Now()
		if err := call(); err != nil {
			b.Fatalf("%s: %v", name, err)
		}
		took[name] = append(took[name], time.Since(start))
	}
	n := 0
	for b.Loop() {
		n++
		c := creating(row(alice, domain.ApplicationID(fmt.Sprintf("uid-%d", n))))
		c.Tenant = nil
		timed("chains", func() error { _, err := s.Chains(ctx, c.Insert.Link.Namespace, c.Insert.Link.Name); return err })
		var o []store.Operation
		timed("apply", func() (err error) { o, err = s.Apply(ctx, c); return err })
		timed("task", func() error { _, err := s.Task(ctx, domain.ResourceApplication, o[0].ID); return err })
		timed("finish", func() error { return s.Finish(ctx, o[0].ID, o[0].Version, domain.OperationCompleted, "") })
	}
	for name, all := range took {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), name+"-p50-µs")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), name+"-p99-µs")
	}
}
