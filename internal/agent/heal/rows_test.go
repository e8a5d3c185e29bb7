// SPDX-License-Identifier: Apache-2.0

package heal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/agent/operate"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

var instance = store.Instance{ID: "engine-1", Namespace: "argocd", Kind: store.EngineArgoCD}

// fakeStore holds application rows in the order of their ids.
type fakeStore struct {
	store.Inventory
	rows    []store.Application
	pages   []int
	applied []store.Change
	// NextErr fails the next call of the method it is under.
	NextErr map[string]error
}

func (s *fakeStore) fails(method string) error {
	err := s.NextErr[method]
	delete(s.NextErr, method)
	return err
}

func (s *fakeStore) Applications(_ context.Context, i domain.InstanceID, after domain.ApplicationID, limit int) ([]store.Application, error) {
	if err := s.fails("Applications"); err != nil {
		return nil, err
	}
	var out []store.Application
	for _, row := range s.rows {
		if row.Instance == i && row.ID > after && len(out) < limit {
			out = append(out, row)
		}
	}
	s.pages = append(s.pages, len(out))
	return out, nil
}

func (s *fakeStore) Apply(_ context.Context, c store.Change) ([]store.Operation, error) {
	if err := s.fails("Apply"); err != nil {
		return nil, err
	}
	s.applied = append(s.applied, c)
	return nil, nil
}

type fakeEngine struct {
	apps    map[string]*argov1alpha1.Application
	NextErr error
}

func (e *fakeEngine) Application(_ context.Context, name string) (*argov1alpha1.Application, error) {
	err := e.NextErr
	e.NextErr = nil
	return e.apps[name], err
}

type world struct {
	*Rows
	store  *fakeStore
	engine *fakeEngine
	log    *strings.Builder
}

func newWorld(rows ...store.Application) *world {
	w := &world{
		store:  &fakeStore{rows: rows, NextErr: map[string]error{}},
		engine: &fakeEngine{apps: map[string]*argov1alpha1.Application{}}, log: &strings.Builder{},
	}
	made := 0
	w.Rows = &Rows{
		Store: w.store, Engine: w.engine, Instance: instance, Log: slog.New(slog.NewTextHandler(w.log, nil)),
		NewID: func() domain.OperationID { made++; return domain.OperationID(fmt.Sprintf("op-%d", made)) },
	}
	return w
}

// runs puts the Application of a row into the engine, changed as given.
func (w *world) runs(row store.Application, changes ...func(*argov1alpha1.Application)) {
	app := operate.RenderApplication(row, instance)
	for _, c := range changes {
		c(app)
	}
	w.engine.apps[app.Name] = app
}

func row(id string, i domain.InstanceID) store.Application {
	return store.Application{
		ID: domain.ApplicationID(id), Tenant: "tenant-a", Instance: i,
		Spec: domain.ApplicationSpec{RepoURL: "https://git.example.com/shop", Path: "deploy", Namespace: "team-a", Automated: true},
	}
}

func announces(operation, resource string) store.Change {
	return store.Change{Announce: []store.NewOperation{{
		ID: domain.OperationID(operation), Tenant: "tenant-a", Instance: "engine-1",
		ResourceType: domain.ResourceApplication, ResourceID: resource,
	}}}
}

func TestSweepAnnouncesWhatTheEngineDoesNotFollow(t *testing.T) {
	t.Parallel()
	equal, missing, edited, elsewhere := row("uid-1", "engine-1"), row("uid-2", "engine-1"), row("uid-3", "engine-1"), row("uid-4", "engine-2")
	unlabelled := row("uid-5", "engine-1")
	w := newWorld(equal, missing, edited, elsewhere, unlabelled)
	w.runs(equal, func(a *argov1alpha1.Application) {
		// What others write is not ours to compare.
		a.Labels["team"] = "blue"
		a.Status.Health.Status = argov1alpha1.HealthStatusDegraded
		a.Annotations = map[string]string{argov1alpha1.RefreshAnnotation: argov1alpha1.RefreshNormal}
		a.Operation = &argov1alpha1.Operation{}
	})
	w.runs(edited, func(a *argov1alpha1.Application) { a.Spec.Source.Path = "by-hand" })
	w.runs(unlabelled, func(a *argov1alpha1.Application) { delete(a.Labels, argov1alpha1.TenantLabel) })
	found, err := w.Sweep(t.Context())
	if err != nil || found != 3 {
		t.Errorf("found %d: %v", found, err)
	}
	if diff := cmp.Diff([]store.Change{announces("op-1", "uid-2"), announces("op-2", "uid-3"), announces("op-3", "uid-5")}, w.store.applied); diff != "" {
		t.Errorf("announced (-want +got):\n%s", diff)
	}
	for _, said := range []string{"uid=uid-2 missing=true", "uid=uid-3 missing=false", "heal=F", "tenant=tenant-a"} {
		if !strings.Contains(w.log.String(), said) {
			t.Errorf("the log does not say %q:\n%s", said, w.log)
		}
	}
}

func TestSweepOfWhatIsWellWritesNothing(t *testing.T) {
	t.Parallel()
	r := row("uid-1", "engine-1")
	r.Spec.SyncOptions = []string{}
	w := newWorld(r)
	w.runs(r, func(a *argov1alpha1.Application) { a.Spec.SyncPolicy.SyncOptions = nil })
	if found, err := w.Sweep(t.Context()); found != 0 || err != nil || len(w.store.applied) != 0 || w.log.Len() != 0 {
		t.Errorf("found %d, %v, announced %v, logged %s", found, err, w.store.applied, w.log)
	}
}

func TestSweepTurnsPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows  int
		pages []int
	}{
		"none":          {0, []int{0}},
		"exactly full":  {rowsPage, []int{rowsPage, 0}},
		"two and a bit": {2*rowsPage + 1, []int{rowsPage, rowsPage, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for i := range c.rows {
				w.store.rows = append(w.store.rows, row(fmt.Sprintf("uid-%06d", i), "engine-1"))
			}
			if found, err := w.Sweep(t.Context()); err != nil || found != c.rows || len(w.store.applied) != c.rows {
				t.Errorf("found %d, announced %d of %d: %v", found, len(w.store.applied), c.rows, err)
			}
			if diff := cmp.Diff(c.pages, w.store.pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be read is not taken for missing.
func TestSweepStopsAtWhatFails(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, fault := range map[string]func(*world){
		"reading rows":         func(w *world) { w.store.NextErr["Applications"] = away },
		"reading Applications": func(w *world) { w.engine.NextErr = away },
		"announcing":           func(w *world) { w.store.NextErr["Apply"] = away },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(row("uid-1", "engine-1"))
			fault(w)
			if _, err := w.Sweep(t.Context()); !errors.Is(err, away) {
				t.Errorf("got %v; want %v", err, away)
			}
			if len(w.store.applied) != 0 {
				t.Errorf("announced %v", w.store.applied)
			}
			if found, err := w.Sweep(t.Context()); err != nil || found != 1 {
				t.Errorf("the next sweep found %d: %v", found, err)
			}
		})
	}
}
