// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func report(engineUID string, sequence int64, health string) domain.ApplicationState {
	return domain.ApplicationState{
		Application: "uid-1", Tenant: alice, EngineUID: engineUID, Sequence: sequence,
		Health: health, HealthMessage: "because", Sync: "Synced", Revision: "abc",
		Detail: domain.StateDetail{
			Resources:   json.RawMessage(`[{"kind":"Service"}]`),
			Conditions:  []domain.EngineCondition{{Type: "SyncError", Message: "no"}},
			Source:      domain.ReconciledSource{RepoURL: "https://example.org", Path: "a", Branch: "main"},
			Destination: domain.ReconciledDestination{Namespace: "ns"},
		},
	}
}

func testSaveState(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	foreign := report("one", 9, "Foreign")
	foreign.Tenant = bob
	unknown := report("one", 9, "Unknown")
	unknown.Application = "uid-never"
	var shown *domain.ApplicationState
	for _, c := range []struct {
		name   string
		report domain.ApplicationState
		stored bool
	}{
		{"of another tenant before the first", foreign, false},
		{"the first", report("one", 5, "Progressing"), true},
		{"an older one", report("one", 4, "Missing"), false},
		{"the same again", report("one", 5, "Degraded"), false},
		{"a later one", report("one", 6, "Healthy"), true},
		{"of another tenant", foreign, false},
		{"of an unknown application", unknown, false},
		{"of another engine object with a smaller number", report("two", 1, "Progressing"), true},
		{"a later one of that", report("two", 2, "Healthy"), true},
	} {
		stored, err := w.Store.SaveState(t.Context(), c.report)
		if err != nil || stored != c.stored {
			t.Errorf("%s: stored %v, %v; want %v", c.name, stored, err, c.stored)
		}
		if c.stored {
			shown = &c.report
		}
		same(t, c.name, shown, w.chain(t, row(alice, "uid-1")).State)
	}
	w.apply(t, store.Change{Remove: []store.ApplicationRef{{ID: "uid-1", Tenant: alice}}})
	if stored, err := w.Store.SaveState(t.Context(), report("two", 3, "Healthy")); stored || err != nil {
		t.Errorf("a state of a removed application: stored %v, %v", stored, err)
	}
}

func testSaveStateOddText(t *testing.T, w world) {
	w.register(t, engine)
	w.create(t, alice, "uid-1")
	odd := report("one", 1, "Degraded")
	odd.HealthMessage = "a\x00b\xffc"
	odd.Detail.Conditions[0].Message = "x\x00y\xffz"
	if stored, err := w.Store.SaveState(t.Context(), odd); !stored || err != nil {
		t.Fatalf("stored %v, %v", stored, err)
	}
	got := w.chain(t, row(alice, "uid-1")).State
	if got.HealthMessage != "a\uFFFDb\uFFFDc" {
		t.Errorf("message %q", got.HealthMessage)
	}
	if got.Detail.Conditions[0].Message != "x\x00y\uFFFDz" {
		t.Errorf("condition %q", got.Detail.Conditions[0].Message)
	}
	w.exec(t, `UPDATE application_state SET detail = 'damaged'`)
	if got := w.chain(t, row(alice, "uid-1")).State; got.Health != "Degraded" || got.Detail.Conditions != nil {
		t.Errorf("a damaged detail: %+v, want the rest of the state", got)
	}
}

// testSaveStateRace: a report that arrives while its application is removed is
// stored or dropped, and never an error or a row without an application.
func testSaveStateRace(t *testing.T, w world) {
	w.register(t, engine)
	for n := range 15 {
		w.create(t, alice, id(n))
		var (
			wg       sync.WaitGroup
			saved    error
			removing error
		)
		wg.Go(func() {
			for sequence := range int64(5) {
				s := report("one", sequence, "Healthy")
				s.Application = id(n)
				if _, err := w.Another.SaveState(t.Context(), s); err != nil {
					saved = err
				}
			}
		})
		wg.Go(func() {
			_, removing = w.Store.Apply(t.Context(), store.Change{Remove: []store.ApplicationRef{{ID: id(n), Tenant: alice}}})
		})
		wg.Wait()
		if saved != nil || removing != nil {
			t.Fatalf("saving: %v, removing: %v", saved, removing)
		}
	}
	if n := w.count(t, "application_state"); n != 0 {
		t.Errorf("%d states of removed applications", n)
	}
}

func testObserved(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	var want []store.Observed
	for n := range 5 {
		w.create(t, alice, id(n))
		if n == 2 {
			continue // nothing reported yet
		}
		s := report(fmt.Sprintf("engine-object-%d", n), int64(n+10), "Healthy")
		s.Application = id(n)
		if _, err := w.Store.SaveState(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		want = append(want, store.Observed{Application: s.Application, EngineUID: s.EngineUID, Sequence: s.Sequence})
	}
	got := paged(t, func(after store.Observed) ([]store.Observed, error) {
		return w.Store.ObservedStates(t.Context(), engine, after.Application, 2)
	})
	same(t, "observed", want, got)
	none, err := w.Store.ObservedStates(t.Context(), "engine-2", "", 10)
	if err != nil || len(none) != 0 {
		t.Errorf("observed on another instance: %+v, %v", none, err)
	}
}

// paged reads pages of two until there is none, each after the last of the one
// before.
func paged[T any](t *testing.T, page func(after T) ([]T, error)) []T {
	t.Helper()
	var (
		all   []T
		after T
	)
	for {
		got, err := page(after)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) > 2 {
			t.Fatalf("a page of %d, want at most 2", len(got))
		}
		if len(got) == 0 {
			return all
		}
		all = append(all, got...)
		after = got[len(got)-1]
	}
}
