// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"slices"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

// events lists the reasons of what happened to a CR, each as often as it did.
func (w *world) events(cr client.Object) []string {
	w.Helper()
	var list eventsv1.EventList
	w.must(w.api.List(w.ctx, &list, client.InNamespace(cr.GetNamespace())))
	var reasons []string
	for _, e := range list.Items {
		if e.Regarding.UID != cr.GetUID() {
			continue
		}
		times := 1
		if e.Series != nil {
			times = int(e.Series.Count)
		}
		for range times {
			reasons = append(reasons, e.Reason)
		}
	}
	slices.Sort(reasons)
	return reasons
}

func (w *world) awaitEvents(cr client.Object, want ...string) {
	w.Helper()
	slices.Sort(want)
	testkit.Eventually(w.T, "events of "+cr.GetName(), func() string {
		if got := w.events(cr); !slices.Equal(got, want) {
			return fmt.Sprintf("%v, want %v", got, want)
		}
		return ""
	})
}

func TestEventsTellWhatHappenedOnce(t *testing.T) {
	each(t, func(w *world) {
		ns := w.tenant()
		d := w.deployed(ns, "shop")
		w.awaitEvents(d, "TakenIn")
		w.report(d, map[string]any{"sync": map[string]any{"status": "Synced", "revision": "abc"}, "health": map[string]any{"status": "Healthy"}})
		w.awaitEvents(d, "TakenIn", "Synced")
		w.report(d, map[string]any{"health": map[string]any{"status": "Degraded", "message": "too few replicas"}})
		w.awaitEvents(d, "TakenIn", "Synced", "Degraded")

		w.edit(d, testkit.WithPath("../up"))
		w.awaitEvents(d, "TakenIn", "Synced", "Degraded", "Denied")
		// Said once, however often it is looked at.
		w.touch(d)
		w.StopBackend()
		w.StartBackend()
		w.awaitStatus(d, "it is still refused", shows(v1alpha1.ConditionErrorOccurred, "spec.source.path"))
		w.awaitEvents(d, "TakenIn", "Synced", "Degraded", "Denied")

		e := w.connected(ns, "staging")
		w.awaitEvents(e, "Connected")
		w.environmentSecret(ns, "staging", []byte("broken"))
		w.awaitEvents(e, "Connected", "Unusable")
		w.environmentSecret(ns, "staging", kubeconfigWith(t, w.token(ns, "staging")))
		w.awaitEvents(e, "Connected", "Connected", "Unusable")
		w.environmentSecret(ns, "staging", kubeconfigWith(t, w.token(ns, "staging")))
		w.awaitEvents(e, "Connected", "Connected", "Unusable", "Rotated")
	})
}
