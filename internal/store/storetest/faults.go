// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// EveryCall calls every method once with something harmless and gives what each
// returned, for tests of what happens when nothing can work.
func EveryCall(ctx context.Context, s store.Store) map[string]error {
	errs := make(map[string]error)
	_, errs["Chains"] = s.Chains(ctx, "ns", "name")
	_, errs["Placement"] = s.Placement(ctx, alice)
	_, errs["LatestOperation"] = s.LatestOperation(ctx, domain.ResourceApplication, "uid-1")
	_, errs["Apply"] = s.Apply(ctx, creating(row(alice, "uid-1")))
	_, errs["Task"] = s.Task(ctx, domain.ResourceApplication, "operation")
	errs["Finish"] = s.Finish(ctx, "operation", 1, domain.OperationCompleted, "")
	_, errs["Unfinished"] = s.Unfinished(ctx, "", "", 1)
	_, errs["Collect"] = s.Collect(ctx, time.Now(), 1)
	_, errs["SaveState"] = s.SaveState(ctx, report("one", 1, "Healthy"))
	_, errs["ObservedStates"] = s.ObservedStates(ctx, engine, "", 1)
	errs["RegisterEngine"] = s.RegisterEngine(ctx, store.Instance{ID: engine, Cluster: cluster, Namespace: "ns", Kind: store.EngineNone})
	_, errs["Instances"] = s.Instances(ctx)
	_, errs["Links"] = s.Links(ctx, "", 1)
	_, errs["Applications"] = s.Applications(ctx, "", "", 1)
	_, errs["TenantDataKey"] = s.TenantDataKey(ctx, alice)
	_, errs["DataKey"] = s.DataKey(ctx, alice, "key")
	_, errs["AddDataKey"] = s.AddDataKey(ctx, dataKey(alice, "key", "ring-1"))
	_, errs["DataKeysToRewrap"] = s.DataKeysToRewrap(ctx, "ring-1", "", 1)
	errs["RewrapDataKey"] = s.RewrapDataKey(ctx, dataKey(alice, "key", "ring-1"), "ring-2", []byte("w"))
	_, errs["CountDataKeys"] = s.CountDataKeys(ctx)
	errs["RetireRingKey"] = s.RetireRingKey(ctx, "ring-1")
	_, errs["SweepDataKeys"] = s.SweepDataKeys(ctx, time.Now(), 1)
	_, _, errs["ChangesSince"] = s.ChangesSince(ctx, 0)
	_, errs["Now"] = s.Now(ctx)
	_, errs["TrimChanges"] = s.TrimChanges(ctx, time.Now())
	errs["Ping"] = s.Ping(ctx)
	return errs
}

func testContext(t *testing.T, w world) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range EveryCall(ended, w.Store) {
		if !errors.Is(err, context.Canceled) || errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s with a cancelled context: %v, want %v and nothing else", name, err, context.Canceled)
		}
	}
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	for name, err := range EveryCall(late, w.Store) {
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, domain.ErrUnavailable) {
			t.Errorf("%s after the deadline: %v, want %v and nothing else", name, err, context.DeadlineExceeded)
		}
	}
	if n := w.count(t, "application"); n != 0 {
		t.Error("something was written all the same")
	}
	if err := w.Store.Ping(t.Context()); err != nil {
		t.Errorf("the store is not usable any more: %v", err)
	}
}

func testClosed(t *testing.T, w world) {
	if err := w.Store.Close(); err != nil {
		t.Fatal(err)
	}
	for name, err := range EveryCall(t.Context(), w.Store) {
		if err == nil {
			t.Errorf("%s on a closed store succeeded", name)
		}
	}
}
