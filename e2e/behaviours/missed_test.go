// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"testing"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

// The other kinds, too, are not forgotten for having been deleted, or replaced
// under their name, while the backend was down.
func Test52_RunsAndEnvironmentsDeletedWhileTheBackendIsDown(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		run := w.syncRun(ns, "now", "shop", "")
		w.requested(d, run)
		gone := w.connected(ns, "gone")
		replaced := w.connected(ns, "replaced")

		w.StopBackend()
		w.must(w.api.Delete(w.ctx, run))
		w.must(w.api.Delete(w.ctx, gone))
		w.must(w.api.Delete(w.ctx, replaced))
		again := w.environment(ns, "replaced", "replaced")
		w.StartBackend()

		testkit.Eventually(t, "the run is taken back", func() string {
			if op := w.application(d).Operation; op != nil {
				return fmt.Sprintf("%+v", op)
			}
			return zero(w.count("SELECT count(*) FROM sync_operation"))
		})
		testkit.Eventually(t, "the engine's Secrets go", func() string {
			if w.clusterSecret(gone) != nil || w.clusterSecret(replaced) != nil {
				return "they are there"
			}
			return ""
		})
		w.awaitConnection(again, v1alpha1.ReasonSucceeded)
		w.awaitQuiet()
		if n := w.count("SELECT count(*) FROM managed_environment WHERE kind = 'remote'"); n != 1 {
			t.Errorf("%d environments", n)
		}
	})
}
