// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/weir-gitops/weir/internal/store/storetest"
)

// BenchmarkCreate makes commits durable, as the store always does.
func BenchmarkCreate(b *testing.B) {
	s, err := OpenAndMigrate(b.Context(), filepath.Join(b.TempDir(), "weir.db"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	storetest.Benchmark(b, s)
}
