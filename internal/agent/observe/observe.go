// SPDX-License-Identifier: Apache-2.0

// Package observe takes an engine's reports in: hop 5 of status flowing up.
//
// Each Application's status is reduced to what its tenant may see, by a pure
// function, and stored only when the reduction differs from the last one. An engine
// touches its Applications far more often than it has something to say, and
// what it has not said costs no statement.
package observe

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"log/slog"
	"sync"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/recent"
	"github.com/weir-gitops/weir/internal/store"
)

// Applications reads Applications from the cache, nil where there is none.
type Applications interface {
	Application(ctx context.Context, name string) (*argov1alpha1.Application, error)
}

// Steps stores what an engine reports.
type Steps struct {
	Engine Applications
	Store  Store
	Log    *slog.Logger

	seed     maphash.Seed
	known    sync.Map // domain.ApplicationID → reported
	recorded recent.Set[string]
}

// Store is where reports go.
type Store interface {
	store.States
	RecordDeployment(ctx context.Context, r domain.DeploymentRecord) error
}

// reported is the last report of an application that is known to be stored.
type reported struct {
	engineUID string
	digest    uint64
	// sequence is set, and the digest is not, for a report stored before this
	// process started.
	sequence int64
}

// NewSteps makes the steps of one engine instance.
func NewSteps(e Applications, s Store, l *slog.Logger) *Steps {
	return &Steps{Engine: e, Store: s, Log: l, seed: maphash.MakeSeed()}
}

const recallPage = 1000

// Recall reads how far the reports of an instance have come, so that starting
// beside ten thousand Applications at rest does not store ten thousand reports.
func (s *Steps) Recall(ctx context.Context, instance domain.InstanceID) error {
	var after domain.ApplicationID
	for {
		page, err := s.Store.ObservedStates(ctx, instance, after, recallPage)
		if err != nil {
			return err
		}
		for _, o := range page {
			after = o.Application
			s.known.LoadOrStore(o.Application, reported{engineUID: o.EngineUID, sequence: o.Sequence})
		}
		if len(page) < recallPage {
			return nil
		}
	}
}

// Forget makes the next step store the status whether it is new or not.
func (s *Steps) Forget(id domain.ApplicationID) { s.known.Delete(id) }

// Step stores the present status of one Application.
func (s *Steps) Step(ctx context.Context, id domain.ApplicationID) error {
	app, err := s.Engine.Application(ctx, domain.EngineApplicationName(id))
	if err != nil {
		return err
	}
	if app == nil {
		s.known.Delete(id)
		return nil
	}
	state, said, err := Reduce(app)
	if err != nil || !said {
		return err
	}
	digest, err := s.digest(state)
	if err != nil {
		return err
	}
	if v, ok := s.known.Load(id); ok {
		last := v.(reported)
		if last.engineUID == state.EngineUID && (last.digest == digest || last.sequence >= state.Sequence) {
			return nil
		}
	}
	if err := s.record(ctx, app); err != nil {
		return err
	}
	stored, err := s.Store.SaveState(ctx, state)
	if err != nil {
		return err
	}
	s.known.Store(id, reported{engineUID: state.EngineUID, digest: digest})
	s.Log.DebugContext(ctx, "engine status", "health", state.Health, "sync", state.Sync, "stored", stored)
	return nil
}

// record puts a deployment that has ended into the history, before its status is
// stored: a status that is stored is not looked at again.
func (s *Steps) record(ctx context.Context, app *argov1alpha1.Application) error {
	r, ended := Record(app)
	if !ended || s.recorded.Has(r.ID) {
		return nil
	}
	if err := s.Store.RecordDeployment(ctx, r); err != nil {
		return err
	}
	s.recorded.Add(r.ID)
	return nil
}

// digest is of what the tenant sees, so not of the sequence.
func (s *Steps) digest(state domain.ApplicationState) (uint64, error) {
	state.Sequence = 0
	text, err := json.Marshal(state)
	return maphash.Bytes(s.seed, text), err
}
