// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

const (
	appID   = "0b8d8b0e-6f4e-4d0f-9a53-2d6f7f0a9d11"
	appName = "gitopsdepl-" + appID
)

var instance = store.Instance{ID: "engine-1", Namespace: "argocd", Kind: store.EngineArgoCD}

// calls is a log of the calls that change something, and the errors that the
// next calls of a method have.
type calls struct {
	log     []string
	NextErr map[string][]error
}

func (c *calls) called(method string) error {
	queue := c.NextErr[method]
	if len(queue) > 0 {
		c.NextErr[method] = queue[1:]
		return queue[0]
	}
	return nil
}

func (c *calls) failNext(method string, errs ...error) {
	if c.NextErr == nil {
		c.NextErr = map[string][]error{}
	}
	c.NextErr[method] = append(c.NextErr[method], errs...)
}

// fakeEngine is an engine's namespace without an engine: what has a finalizer
// stays until finalize.
type fakeEngine struct {
	calls
	operations   []operationv1alpha1.Operation
	applications map[string]*argov1alpha1.Application
	projects     map[string]*argov1alpha1.AppProject
	secrets      map[string]*corev1.Secret
}

func (e *fakeEngine) ApplicationsOf(_ context.Context, t domain.TenantID) ([]argov1alpha1.Application, error) {
	var out []argov1alpha1.Application
	for _, app := range e.applications {
		if app.Labels[argov1alpha1.TenantLabel] == string(t) {
			out = append(out, *app.DeepCopy())
		}
	}
	return out, e.called("ApplicationsOf")
}

func (e *fakeEngine) Project(_ context.Context, name string) (*argov1alpha1.AppProject, error) {
	return e.projects[name].DeepCopy(), e.called("Project")
}

func (e *fakeEngine) PutProject(_ context.Context, _, want *argov1alpha1.AppProject) error {
	if err := e.called("PutProject"); err != nil {
		return err
	}
	e.projects[want.Name] = want.DeepCopy()
	return nil
}

func (e *fakeEngine) DeleteProject(_ context.Context, have *argov1alpha1.AppProject) error {
	delete(e.projects, have.Name)
	return e.called("DeleteProject")
}

func (e *fakeEngine) Secret(_ context.Context, name string) (*corev1.Secret, error) {
	return e.secrets[name].DeepCopy(), e.called("Secret")
}

func (e *fakeEngine) PutSecret(_ context.Context, have, want *corev1.Secret) error {
	e.log = append(e.log, map[bool]string{true: "create ", false: "replace "}[have == nil]+want.Name)
	if err := e.called("PutSecret"); err != nil {
		return err
	}
	e.secrets[want.Name] = want.DeepCopy()
	return nil
}

func (e *fakeEngine) DeleteSecret(_ context.Context, have *corev1.Secret) error {
	e.log = append(e.log, "delete "+have.Name)
	delete(e.secrets, have.Name)
	return e.called("DeleteSecret")
}

func (e *fakeEngine) RequestSync(_ context.Context, app *argov1alpha1.Application, op argov1alpha1.Operation) error {
	e.log = append(e.log, "request sync to "+op.Sync.Revision)
	if err := e.called("RequestSync"); err != nil {
		return err
	}
	e.applications[app.Name].Operation = &op
	return nil
}

func (e *fakeEngine) CancelSync(_ context.Context, app *argov1alpha1.Application) error {
	e.log = append(e.log, "cancel sync")
	e.applications[app.Name].Operation = nil
	return e.called("CancelSync")
}

func (e *fakeEngine) TerminateSync(_ context.Context, app *argov1alpha1.Application) error {
	e.log = append(e.log, "terminate sync")
	e.applications[app.Name].Status.OperationState.Phase = argov1alpha1.OperationTerminating
	return e.called("TerminateSync")
}

// plain opens what was never sealed.
type plain struct{}

func (plain) Open(_ context.Context, _ seal.Place, v seal.Sealed) ([]byte, error) { return v.Text, nil }

func (e *fakeEngine) Operations(_ context.Context, t domain.ResourceType, resource string) ([]operationv1alpha1.Operation, error) {
	if err := e.called("Operations"); err != nil {
		return nil, err
	}
	var out []operationv1alpha1.Operation
	for _, op := range e.operations {
		if op.Labels[operationv1alpha1.ResourceTypeLabel] == string(t) && op.Labels[operationv1alpha1.ResourceLabel] == resource {
			out = append(out, op)
		}
	}
	return out, nil
}

func (e *fakeEngine) DeleteOperation(_ context.Context, op *operationv1alpha1.Operation) error {
	e.log = append(e.log, "remove Operation "+op.Spec.OperationID)
	e.operations = slices.DeleteFunc(e.operations, func(have operationv1alpha1.Operation) bool { return have.Name == op.Name })
	return e.called("DeleteOperation")
}

func (e *fakeEngine) Application(_ context.Context, name string) (*argov1alpha1.Application, error) {
	return e.applications[name].DeepCopy(), e.called("Application")
}

func (e *fakeEngine) CreateApplication(_ context.Context, app *argov1alpha1.Application) error {
	e.log = append(e.log, "create "+app.Spec.Source.Path)
	if err := e.called("CreateApplication"); err != nil {
		return err
	}
	e.applications[app.Name] = app.DeepCopy()
	return nil
}

func (e *fakeEngine) UpdateApplication(_ context.Context, have, want *argov1alpha1.Application) error {
	e.log = append(e.log, "replace "+have.Spec.Source.Path+" by "+want.Spec.Source.Path)
	if err := e.called("UpdateApplication"); err != nil {
		return err
	}
	e.applications[have.Name].Spec, e.applications[have.Name].Labels = want.Spec, want.Labels
	return nil
}

func (e *fakeEngine) DeleteApplication(_ context.Context, name string) (bool, error) {
	e.log = append(e.log, "delete")
	if err := e.called("DeleteApplication"); err != nil {
		return false, err
	}
	app := e.applications[name]
	if app != nil && len(app.Finalizers) > 0 {
		now := metav1.NewTime(time.Unix(1, 0))
		app.DeletionTimestamp = &now
		return false, nil
	}
	delete(e.applications, name)
	return true, nil
}

// fakeStore holds operation and application rows.
type fakeStore struct {
	store.Operations
	calls
	operations   map[domain.OperationID]store.Operation
	applications map[string]store.Application
	syncs        map[domain.SyncOperationID]store.SyncOperation
	environments map[string]store.Environment
	credentials  map[string]store.RepositoryCredential
	// earlier says that every sync has another before it.
	earlier bool
	// meanwhile runs before each Finish: what a backend does in between.
	meanwhile func()
}

func (s *fakeStore) ProjectUses(_ context.Context, t domain.TenantID) ([]store.ProjectUse, error) {
	var uses []store.ProjectUse
	for _, a := range s.applications {
		if a.Tenant == t {
			uses = append(uses, store.ProjectUse{Repository: a.Spec.RepoURL, Environment: a.Environment, Namespace: a.Spec.Namespace})
		}
	}
	return uses, s.called("ProjectUses")
}

func (s *fakeStore) SyncChains(context.Context, string, string) ([]store.SyncChain, error) {
	panic("an agent does not read chains")
}

func (s *fakeStore) SaveSyncResult(_ context.Context, id domain.SyncOperationID, r domain.SyncResult) error {
	s.log = append(s.log, fmt.Sprintf("%s %s: %s", id, r.Phase, r.Message))
	row := s.syncs[id]
	row.Result = r
	s.syncs[id] = row
	return s.called("SaveSyncResult")
}

func (s *fakeStore) Task(_ context.Context, _ domain.ResourceType, id domain.OperationID) (store.Task, error) {
	if err := s.called("Task"); err != nil {
		return store.Task{}, err
	}
	op, ok := s.operations[id]
	if !ok {
		return store.Task{}, domain.ErrNotFound
	}
	task := store.Task{Operation: op}
	if row, ok := s.applications[op.ResourceID]; ok {
		task.Application = &row
	}
	if row, ok := s.syncs[domain.SyncOperationID(op.ResourceID)]; ok {
		task.Sync, task.EarlierSync = &row, s.earlier
	}
	if row, ok := s.environments[op.ResourceID]; ok {
		task.Environment = &row
	}
	if row, ok := s.credentials[op.ResourceID]; ok {
		task.Credential = &row
	}
	return task, nil
}

func (s *fakeStore) Finish(_ context.Context, id domain.OperationID, version int64, state domain.OperationState, message string) error {
	if s.meanwhile != nil {
		s.meanwhile()
	}
	s.log = append(s.log, string(state)+": "+message)
	if err := s.called("Finish"); err != nil {
		return err
	}
	op, ok := s.operations[id]
	switch {
	case !ok:
		return domain.ErrNotFound
	case op.Version != version:
		return domain.ErrConflict
	}
	op.State, op.Message = state, message
	s.operations[id] = op
	return nil
}

// reuse is what the backend does when the row changes while an operation waits.
func (s *fakeStore) reuse(id domain.OperationID, path string) {
	op := s.operations[id]
	op.Version++
	s.operations[id] = op
	row := s.applications[op.ResourceID]
	row.Spec.Path = path
	s.applications[op.ResourceID] = row
}

// world is an agent's steps with everything around them.
type world struct {
	*Steps
	engine *fakeEngine
	store  *fakeStore
	log    *bytes.Buffer
}

type worldOption func(*world)

func newWorld(t *testing.T, options ...worldOption) *world {
	t.Helper()
	w := &world{
		engine: &fakeEngine{
			applications: map[string]*argov1alpha1.Application{}, projects: map[string]*argov1alpha1.AppProject{},
			secrets: map[string]*corev1.Secret{},
		},
		store: &fakeStore{
			operations: map[domain.OperationID]store.Operation{}, applications: map[string]store.Application{},
			syncs: map[domain.SyncOperationID]store.SyncOperation{}, environments: map[string]store.Environment{},
			credentials: map[string]store.RepositoryCredential{},
		},
		log: &bytes.Buffer{},
	}
	log, err := telemetry.NewLogger(w.log, telemetry.LogOptions{Format: "text", Level: "debug"})
	if err != nil {
		t.Fatal(err)
	}
	w.Steps = &Steps{
		Engine: w.engine, Store: w.store, Syncs: w.store, Instance: instance, Log: log, Sealer: plain{},
		Now:      func() time.Time { return time.Unix(100, 0) },
		Projects: &Projects{Engine: w.engine, Store: w.store, Instance: instance},
	}
	for _, o := range options {
		o(w)
	}
	return w
}

// announced is an operation row on the application, with its CR.
func announced(id string, options ...func(*store.Operation)) worldOption {
	return func(w *world) {
		op := store.Operation{
			ID: domain.OperationID(id), Tenant: "tenant-a", Instance: instance.ID,
			ResourceType: domain.ResourceApplication, ResourceID: appID, State: domain.OperationWaiting, Version: 1,
		}
		for _, o := range options {
			o(&op)
		}
		w.store.operations[op.ID] = op
		crOnly(id)(w)
	}
}

func inState(s domain.OperationState) func(*store.Operation) {
	return func(op *store.Operation) { op.State = s }
}

// crOnly is an Operation CR on the application without a row.
func crOnly(id string) worldOption {
	return func(w *world) {
		w.engine.operations = append(w.engine.operations, operationv1alpha1.Operation{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: instance.Namespace, Name: "operation-" + id,
				Labels: map[string]string{operationv1alpha1.ResourceTypeLabel: string(domain.ResourceApplication), operationv1alpha1.ResourceLabel: appID},
			},
			Spec: operationv1alpha1.OperationSpec{OperationID: id},
		})
	}
}

// wanting is an application row at a path.
func wanting(path string) worldOption {
	return func(w *world) { w.store.applications[appID] = application(atPath(path)) }
}

// running is an engine's Application at a path.
func running(path string, options ...func(*argov1alpha1.Application)) worldOption {
	return func(w *world) {
		app := RenderApplication(application(atPath(path)), instance)
		for _, o := range options {
			o(app)
		}
		w.engine.applications[appName] = app
	}
}

func withoutFinalizers(app *argov1alpha1.Application) { app.Finalizers = nil }

func terminating(app *argov1alpha1.Application) {
	now := metav1.NewTime(time.Unix(1, 0))
	app.DeletionTimestamp = &now
}

func (w *world) step(t *testing.T) error {
	t.Helper()
	return w.Step(t.Context(), domain.ResourceApplication, appID)
}

func (w *world) mustStep(t *testing.T) {
	t.Helper()
	if err := w.step(t); err != nil {
		t.Fatal(err)
	}
}

// path is where the engine's Application deploys from; empty for none.
func (w *world) path() string {
	if app := w.engine.applications[appName]; app != nil {
		return app.Spec.Source.Path
	}
	return ""
}

func expect[T any](t *testing.T, what string, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}
