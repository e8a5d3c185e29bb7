// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// Engine is the namespace of an engine instance as the steps see it.
type Engine interface {
	// Operations lists the Operation CRs on a resource, oldest first.
	Operations(ctx context.Context, t domain.ResourceType, resource string) ([]operationv1alpha1.Operation, error)
	DeleteOperation(ctx context.Context, op *operationv1alpha1.Operation) error

	// Application gives an Application that is at least as new as our own last
	// write to it, nil where there is none.
	Application(ctx context.Context, name string) (*argov1alpha1.Application, error)
	// CreateApplication gives domain.ErrConflict where the name is taken.
	CreateApplication(ctx context.Context, app *argov1alpha1.Application) error
	// UpdateApplication replaces the spec, puts our labels on, and leaves all else
	// as it is. It gives domain.ErrConflict where the Application is another by now.
	UpdateApplication(ctx context.Context, have, want *argov1alpha1.Application) error
	// DeleteApplication says whether the Application is gone, or still waits for
	// its finalizers.
	DeleteApplication(ctx context.Context, name string) (gone bool, err error)

	SyncEngine
	SecretEngine
}

// Steps carries out the operations of one engine instance.
type Steps struct {
	Engine   Engine
	Store    store.Operations
	Syncs    store.SyncRuns
	Projects *Projects
	// Sealer is nil where the agent has no key ring; credentials then fail.
	Sealer   Opener
	Instance store.Instance
	Now      func() time.Time
	Log      *slog.Logger

	notices notices
	waits   waits
}

// finishTries bounds how often a step looks again because its operation was
// reused while it worked.
const finishTries = 5

// announcement is an operation that is to be carried out. Its CR is nil where only
// a notice has come so far.
type announcement struct {
	id       domain.OperationID
	cr       *operationv1alpha1.Operation
	noticed  bool
	kind     domain.ResourceType
	resource string
}

// Step carries out what has been announced for one resource.
func (s *Steps) Step(ctx context.Context, t domain.ResourceType, resource string) error {
	announced, err := s.announced(ctx, t, resource)
	if err != nil {
		return err
	}
	for _, a := range announced {
		if err := s.carryOut(telemetry.WithWork(ctx, telemetry.Work{Operation: string(a.id)}), a); err != nil {
			return err
		}
	}
	return nil
}

// announced lists the operations on a resource, by CR and by notice.
func (s *Steps) announced(ctx context.Context, t domain.ResourceType, resource string) ([]announcement, error) {
	crs, err := s.Engine.Operations(ctx, t, resource)
	if err != nil {
		return nil, err
	}
	var all []announcement
	for i := range crs {
		id := domain.OperationID(crs[i].Spec.OperationID)
		noticed := s.notices.over(t, resource, id)
		all = append(all, announcement{id, &crs[i], noticed, t, resource})
	}
	for _, id := range s.notices.noticed(t, resource) {
		all = append(all, announcement{id, nil, true, t, resource})
	}
	return all, nil
}

func (s *Steps) carryOut(ctx context.Context, a announcement) error {
	if a.cr != nil && s.notices.byNotice.Has(a.id) {
		s.notices.byNotice.Forget(a.id)
		return s.Engine.DeleteOperation(ctx, a.cr)
	}
	for range finishTries {
		task, err := s.Store.Task(ctx, a.kind, a.id)
		if errors.Is(err, domain.ErrNotFound) {
			s.Log.InfoContext(ctx, "removing an Operation that has no row")
			return s.end(ctx, a)
		}
		if err != nil {
			return err
		}
		op := task.Operation
		switch {
		case op.State.Final():
			return s.end(ctx, a)
		case op.Instance != s.Instance.ID || op.ResourceType != a.kind || op.ResourceID != a.resource:
			s.Log.WarnContext(ctx, "ignoring an Operation that does not match its row; it was not made by Weir",
				"row_instance", op.Instance, "row_resource", op.ResourceID)
			s.notices.over(a.kind, a.resource, a.id)
			return nil
		}
		err = s.attempt(ctx, a, task)
		if !errors.Is(err, domain.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("operation %s is being changed all the time: %w", a.id, domain.ErrConflict)
}

// attempt makes the engine equal to the row once and records how that ended.
func (s *Steps) attempt(ctx context.Context, a announcement, task store.Task) error {
	how, err := s.makeEqual(ctx, task)
	switch {
	case errors.Is(err, domain.ErrConflict):
		return err
	case refused(err):
		if err := s.record(ctx, task.Operation, domain.OperationFailed, err.Error()); err != nil {
			return err
		}
		return s.end(ctx, a)
	case err != nil:
		if recorded := s.record(ctx, task.Operation, domain.OperationInProgress, err.Error()+"; this will be tried again"); recorded != nil {
			s.Log.WarnContext(ctx, "cannot record why the operation has not succeeded", "error", recorded)
		}
		return err
	case how == awaiting:
		return s.record(ctx, task.Operation, domain.OperationInProgress, "")
	}
	message := ""
	if how == removed {
		message = domain.OperationRemoved
	}
	if err := s.record(ctx, task.Operation, domain.OperationCompleted, message); err != nil {
		return err
	}
	return s.end(ctx, a)
}

// end puts away an operation whose row is final or gone: its CR goes, or will go
// without a question when it arrives.
func (s *Steps) end(ctx context.Context, a announcement) error {
	if a.kind == domain.ResourceSyncOperation {
		s.waits.remove(domain.SyncOperationID(a.resource))
	}
	noticed := s.notices.over(a.kind, a.resource, a.id)
	if a.cr == nil {
		s.notices.byNotice.Add(a.id)
		return nil
	}
	if !noticed && !a.noticed {
		s.notices.byCR.Add(a.id)
	}
	return s.Engine.DeleteOperation(ctx, a.cr)
}

func (s *Steps) makeEqual(ctx context.Context, task store.Task) (progress, error) {
	switch task.Operation.ResourceType {
	case domain.ResourceApplication:
		return s.application(ctx, domain.ApplicationID(task.Operation.ResourceID), task)
	case domain.ResourceSyncOperation:
		return s.syncOperation(ctx, domain.SyncOperationID(task.Operation.ResourceID), task)
	case domain.ResourceManagedEnvironment:
		return s.environment(ctx, domain.EnvironmentID(task.Operation.ResourceID), task)
	case domain.ResourceRepositoryCredential:
		return s.credential(ctx, domain.CredentialID(task.Operation.ResourceID), task)
	default:
		return equal, &unsupported{task.Operation.ResourceType}
	}
}

// record writes how the operation stands, unless the row says so already.
func (s *Steps) record(ctx context.Context, op store.Operation, state domain.OperationState, message string) error {
	if op.State == state && op.Message == message {
		return nil
	}
	return s.Store.Finish(ctx, op.ID, op.Version, state, message)
}

// unsupported is a resource type that this agent does not know.
type unsupported struct{ kind domain.ResourceType }

func (u *unsupported) Error() string {
	return fmt.Sprintf("this agent cannot carry out operations on %s", u.kind)
}

// refused tells errors that trying again cannot help from those it can.
func refused(err error) bool {
	var (
		u *unsupported
		d *damaged
	)
	return errors.As(err, &u) || errors.As(err, &d) || errors.Is(err, errNoKey) || errors.Is(err, seal.ErrNotAuthentic) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func (s *Steps) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
