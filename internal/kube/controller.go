// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/telemetry"
)

// Step does one piece of work for one key. What it returns decides what
// happens next, see NewController.
type Step func(ctx context.Context, key fairq.Key) error

// ControllerOptions say how much runs at once.
type ControllerOptions struct {
	Name string
	// Workers is how many steps run at once, PerWorkspace how many of them may be
	// one tenant's.
	Workers      int
	PerWorkspace int
	Metrics      *fairq.Metrics
	Log          *slog.Logger
	// Work says what a key's log lines are about.
	Work func(fairq.Key) telemetry.Work
}

// Controller is a controller over the fair queue.
type Controller = controller.TypedController[fairq.Key]

// Queue is what event sources put keys into.
type Queue = workqueue.TypedRateLimitingInterface[fairq.Key]

// The longest wait between two tries bounds how long recovery takes once what
// was away is back.
const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// stepDeadline ends a step that hangs on something that neither answers nor
// breaks, so that it gives its tenant's turn back.
const stepDeadline = 30 * time.Second

// NewController runs a step for each key under the fair queue. This is the one
// place where outcomes become retries and log lines:
//
//	nil                    done
//	*domain.Later          again after the time that it names
//	domain.ErrConflict     again at once, then with backoff: somebody else was faster, that is no error
//	*domain.Waiting        again later, with backoff; said at debug, the tenant's condition has it
//	domain.ErrUnavailable  again later, with backoff; a warning
//	anything else          again later, with backoff; an error
func NewController(mgr manager.Manager, o ControllerOptions, step Step) (Controller, error) {
	// A limiter of our own: the controller forgets its own one's count whenever a
	// result says when to come again.
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[fairq.Key](firstRetry, lastRetry)
	skipNameValidation := true
	return controller.NewTyped(o.Name, mgr, controller.TypedOptions[fairq.Key]{
		MaxConcurrentReconciles: o.Workers,
		SkipNameValidation:      &skipNameValidation,
		NewQueue:                fairq.NewQueueFunc(fairq.Options[fairq.Key]{Name: o.Name, PerWorkspace: o.PerWorkspace, Metrics: o.Metrics}),
		Reconciler: reconcile.TypedFunc[fairq.Key](func(ctx context.Context, key fairq.Key) (reconcile.Result, error) {
			ctx = telemetry.WithWork(ctx, o.Work(key))
			bounded, cancel := context.WithTimeout(ctx, stepDeadline)
			defer cancel()
			err := step(bounded, key)
			var waiting *domain.Waiting
			var later *domain.Later
			switch {
			case err == nil:
				limiter.Forget(key)
				return reconcile.Result{}, nil
			case errors.As(err, &later):
				limiter.Forget(key)
				return reconcile.Result{RequeueAfter: max(later.After, firstRetry)}, nil
			case errors.Is(err, domain.ErrConflict):
				o.Log.DebugContext(ctx, "again, because of a conflict", "queue", o.Name, "error", err)
			case ctx.Err() != nil:
				return reconcile.Result{}, nil
			case errors.As(err, &waiting):
				o.Log.DebugContext(ctx, waiting.Error(), "queue", o.Name)
			case errors.Is(err, domain.ErrUnavailable):
				o.Log.WarnContext(ctx, "will be tried again", "queue", o.Name, "error", err)
			default:
				o.Log.ErrorContext(ctx, "step failed, will be tried again", "queue", o.Name, "error", err)
			}
			return reconcile.Result{RequeueAfter: limiter.When(key)}, nil
		}),
	})
}
