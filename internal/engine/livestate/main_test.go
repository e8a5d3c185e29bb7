// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// cluster is the test binary's control plane, for the tests that need it.
var cluster struct {
	once    sync.Once
	started *controlplane.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if cluster.started != nil {
		if err := cluster.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

func startCluster(t testing.TB) *controlplane.Cluster {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	cluster.once.Do(func() {
		// The test that happens to be first must not end it.
		cluster.started, cluster.err = controlplane.Start(context.WithoutCancel(t.Context()))
	})
	if cluster.err != nil {
		t.Fatal(cluster.err)
	}
	return cluster.started
}
