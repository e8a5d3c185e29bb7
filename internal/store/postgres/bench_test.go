// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"testing"

	"github.com/weir-gitops/weir/internal/store/postgres"
	"github.com/weir-gitops/weir/internal/store/storetest"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

// BenchmarkCreate is on a server that makes commits durable.
func BenchmarkCreate(b *testing.B) {
	s, err := postgres.Open(b.Context(), pg.New(b, pg.Options{Durable: true}).NewDatabase(b))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.Benchmark(b, s)
}
