// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
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
	// ReplaceSpec replaces the spec and leaves all else as it is.
	ReplaceSpec(ctx context.Context, have *argov1alpha1.Application, spec argov1alpha1.ApplicationSpec) error
	// DeleteApplication says whether the Application is gone, or still waits for
	// its finalizers.
	DeleteApplication(ctx context.Context, name string) (gone bool, err error)
}

// Steps carries out the operations of one engine instance.
type Steps struct {
	Engine   Engine
	Store    store.Operations
	Instance store.Instance
	Log      *slog.Logger
}

// finishTries bounds how often a step looks again because its operation was
// reused while it worked.
const finishTries = 5

// Step carries out what has been announced for one resource.
func (s *Steps) Step(ctx context.Context, t domain.ResourceType, resource string) error {
	ops, err := s.Engine.Operations(ctx, t, resource)
	if err != nil {
		return err
	}
	for i := range ops {
		if err := s.carryOut(ctx, t, resource, &ops[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Steps) carryOut(ctx context.Context, t domain.ResourceType, resource string, cr *operationv1alpha1.Operation) error {
	ctx = telemetry.WithWork(ctx, telemetry.Work{Operation: cr.Spec.OperationID})
	for range finishTries {
		task, err := s.Store.Task(ctx, domain.OperationID(cr.Spec.OperationID))
		if errors.Is(err, domain.ErrNotFound) {
			s.Log.InfoContext(ctx, "removing an Operation that has no row")
			return s.Engine.DeleteOperation(ctx, cr)
		}
		if err != nil {
			return err
		}
		op := task.Operation
		switch {
		case op.State.Final():
			return s.Engine.DeleteOperation(ctx, cr)
		case op.Instance != s.Instance.ID || op.ResourceType != t || op.ResourceID != resource:
			s.Log.WarnContext(ctx, "ignoring an Operation that does not match its row; it was not made by Weir",
				"object", cr.Name, "row_instance", op.Instance, "row_resource", op.ResourceID)
			return nil
		}
		err = s.attempt(ctx, cr, task)
		if !errors.Is(err, domain.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("operation %s is being changed all the time: %w", cr.Spec.OperationID, domain.ErrConflict)
}

// attempt makes the engine equal to the row once and records how that ended.
func (s *Steps) attempt(ctx context.Context, cr *operationv1alpha1.Operation, task store.Task) error {
	how, err := s.makeEqual(ctx, task)
	switch {
	case errors.Is(err, domain.ErrConflict):
		return err
	case refused(err):
		if err := s.record(ctx, task.Operation, domain.OperationFailed, err.Error()); err != nil {
			return err
		}
		return s.Engine.DeleteOperation(ctx, cr)
	case err != nil:
		if recorded := s.record(ctx, task.Operation, domain.OperationInProgress, err.Error()+"; this will be tried again"); recorded != nil {
			s.Log.WarnContext(ctx, "cannot record why the operation has not succeeded", "error", recorded)
		}
		return err
	case how == awaiting:
		return s.record(ctx, task.Operation, domain.OperationInProgress, "")
	}
	if err := s.record(ctx, task.Operation, domain.OperationCompleted, ""); err != nil {
		return err
	}
	return s.Engine.DeleteOperation(ctx, cr)
}

func (s *Steps) makeEqual(ctx context.Context, task store.Task) (progress, error) {
	switch task.Operation.ResourceType {
	case domain.ResourceApplication:
		return s.application(ctx, domain.ApplicationID(task.Operation.ResourceID), task.Application)
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
	var u *unsupported
	return errors.As(err, &u) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err)
}
