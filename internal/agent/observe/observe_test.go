// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// fakeEngine shows one Application.
type fakeEngine struct {
	app     *argov1alpha1.Application
	NextErr error
}

func (e *fakeEngine) Application(_ context.Context, name string) (*argov1alpha1.Application, error) {
	if err := e.NextErr; err != nil {
		e.NextErr = nil
		return nil, err
	}
	if e.app == nil || e.app.Name != name {
		return nil, nil
	}
	return e.app.DeepCopy(), nil
}

// fakeStates keeps reports by the store's rule: of one engine object only a
// later one, of another one always.
type fakeStates struct {
	states map[domain.ApplicationID]domain.ApplicationState
	// listed is what ObservedStates gives, in the order of the id.
	listed  []store.Observed
	pages   []int
	saved   []string
	records []domain.DeploymentRecord
	NextErr error
}

func (s *fakeStates) SaveState(_ context.Context, state domain.ApplicationState) (bool, error) {
	if err := s.fails(); err != nil {
		return false, err
	}
	s.saved = append(s.saved, fmt.Sprintf("%s@%d %s", state.EngineUID, state.Sequence, state.Health))
	if have, ok := s.states[state.Application]; ok && have.EngineUID == state.EngineUID && have.Sequence >= state.Sequence {
		return false, nil
	}
	s.states[state.Application] = state
	return true, nil
}

func (s *fakeStates) RecordDeployment(_ context.Context, r domain.DeploymentRecord) error {
	if err := s.fails(); err != nil {
		return err
	}
	s.records = append(s.records, r)
	return nil
}

func (s *fakeStates) ObservedStates(_ context.Context, _ domain.InstanceID, after domain.ApplicationID, limit int) ([]store.Observed, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	var out []store.Observed
	for _, o := range s.listed {
		if o.Application > after && len(out) < limit {
			out = append(out, o)
		}
	}
	s.pages = append(s.pages, len(out))
	return out, nil
}

func (s *fakeStates) fails() error {
	err := s.NextErr
	s.NextErr = nil
	return err
}

type world struct {
	*Steps
	engine *fakeEngine
	states *fakeStates
}

func newWorld() *world {
	w := &world{engine: &fakeEngine{}, states: &fakeStates{states: map[domain.ApplicationID]domain.ApplicationState{}}}
	w.Steps = NewSteps(w.engine, w.states, slog.New(slog.DiscardHandler))
	return w
}

// see has the steps look at an Application; nil for none.
func (w *world) see(t *testing.T, app *argov1alpha1.Application) {
	t.Helper()
	w.engine.app = app
	if err := w.Step(t.Context(), appID); err != nil {
		t.Fatal(err)
	}
}

func (w *world) expectSaved(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, w.states.saved); diff != "" {
		t.Errorf("reports stored (-want +got):\n%s", diff)
	}
}

func TestStepStoresWhatIsNew(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("1")))
	w.see(t, application(atVersion("2"), healthy("Progressing", "")))
	w.see(t, application(atVersion("3"), healthy("Healthy", "")))
	w.expectSaved(t, "engine-uid@2 Progressing", "engine-uid@3 Healthy")
}

// An engine touches its Applications all the time. What it says anew costs a
// statement, the touching does not.
func TestStepDoesNotStoreTheSameAgain(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.see(t, application(atVersion("2"), healthy("Healthy", ""), func(a *argov1alpha1.Application) {
		a.Annotations = map[string]string{argov1alpha1.RefreshAnnotation: "normal"}
		a.Status.SourceType = "Kustomize"
	}))
	w.expectSaved(t, "engine-uid@1 Healthy")

	w.see(t, application(atVersion("3"), healthy("Degraded", "")))
	w.see(t, application(atVersion("4"), healthy("Healthy", "")))
	w.expectSaved(t, "engine-uid@1 Healthy", "engine-uid@3 Degraded", "engine-uid@4 Healthy")
}

func TestStepStoresTheSameOfAnotherEngineObject(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("7"), healthy("Healthy", "")))
	w.see(t, application(atVersion("8"), healthy("Healthy", ""), withUID("another-uid")))
	w.expectSaved(t, "engine-uid@7 Healthy", "another-uid@8 Healthy")
}

func TestStepAfterTheApplicationIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.see(t, nil)
	w.expectSaved(t, "engine-uid@1 Healthy")
	if _, known := w.known.Load(appID); known {
		t.Error("what is gone is still remembered")
	}
}

// The database may have lost what was stored; whoever finds out has it told again.
func TestStepStoresTheSameAgainAfterForget(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.Forget(appID)
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.see(t, application(atVersion("1"), healthy("Healthy", "")))
	w.expectSaved(t, "engine-uid@1 Healthy", "engine-uid@1 Healthy")
}

func TestStepTriesAgainWhatCouldNotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.engine.app = application(healthy("Healthy", ""))
	w.states.NextErr = domain.ErrUnavailable
	if err := w.Step(t.Context(), appID); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
	w.see(t, w.engine.app)
	w.expectSaved(t, "engine-uid@41 Healthy")
}

func TestStepReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	w := newWorld()
	w.engine.NextErr = away
	if err := w.Step(t.Context(), appID); !errors.Is(err, away) {
		t.Errorf("got %v; want %v", err, away)
	}
	w.engine.app = application(synced(""), atVersion("x"))
	if err := w.Step(t.Context(), appID); err == nil {
		t.Error("an Application whose version is no number is passed over in silence")
	}
	w.expectSaved(t)
}

func TestRecallSkipsWhatIsStored(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		app  *argov1alpha1.Application
		want []string
	}{
		"the same version":         {application(atVersion("41"), healthy("Healthy", "")), nil},
		"an older version":         {application(atVersion("40"), healthy("Healthy", "")), nil},
		"a newer version":          {application(atVersion("42"), healthy("Healthy", "")), []string{"engine-uid@42 Healthy"}},
		"of another engine object": {application(atVersion("5"), healthy("Healthy", ""), withUID("another-uid")), []string{"another-uid@5 Healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			w.states.listed = []store.Observed{{Application: appID, EngineUID: "engine-uid", Sequence: 41}}
			if err := w.Recall(t.Context(), "engine-1"); err != nil {
				t.Fatal(err)
			}
			w.see(t, c.app)
			w.see(t, c.app)
			w.expectSaved(t, c.want...)
		})
	}
}

// What was seen while Recall read is newer than what it reads.
func TestRecallKeepsWhatHasBeenSeenSince(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.see(t, application(atVersion("42"), healthy("Healthy", "")))
	w.states.listed = []store.Observed{{Application: appID, EngineUID: "engine-uid", Sequence: 41}}
	if err := w.Recall(t.Context(), "engine-1"); err != nil {
		t.Fatal(err)
	}
	w.see(t, application(atVersion("42"), healthy("Healthy", "")))
	w.expectSaved(t, "engine-uid@42 Healthy")
}

func TestRecallTurnsPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		listed int
		pages  []int
	}{
		"none":          {0, []int{0}},
		"exactly full":  {recallPage, []int{recallPage, 0}},
		"two and a bit": {2*recallPage + 1, []int{recallPage, recallPage, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for i := range c.listed {
				w.states.listed = append(w.states.listed, store.Observed{Application: domain.ApplicationID(fmt.Sprintf("uid-%06d", i))})
			}
			if err := w.Recall(t.Context(), "engine-1"); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.pages, w.states.pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
			n := 0
			w.known.Range(func(any, any) bool { n++; return true })
			if n != c.listed {
				t.Errorf("remembers %d of %d", n, c.listed)
			}
		})
	}
}

func TestRecallReportsADatabaseThatIsAway(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.states.NextErr = domain.ErrUnavailable
	if err := w.Recall(t.Context(), "engine-1"); !errors.Is(err, domain.ErrUnavailable) {
		t.Errorf("got %v; want the database's error", err)
	}
}
