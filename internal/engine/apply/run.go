// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/dynamic"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/plan"
)

// Cluster is where a plan is run, as whoever the client is.
type Cluster struct {
	Client dynamic.Interface
	Mapper meta.RESTMapper
	Health health.Assessor
	// Manager is the name under which fields are owned.
	Manager string
}

// Result is what became of one step.
type Result struct {
	Key   plan.Key
	Phase plan.PhaseName
	// Status is one of Argo CD's results of a sync: Synced, SyncFailed, Pruned,
	// PruneSkipped. Message says more.
	Status  string
	Message string
	// Hook is set for a hook: how far it has come.
	Hook argov1alpha1.OperationPhase
}

// Outcome is how a run has ended.
type Outcome struct {
	// Phase is Succeeded, Failed or Error.
	Phase   argov1alpha1.OperationPhase
	Message string
	Results []Result
}

// Run runs a plan. progress, which may be nil, is told each result as it comes; a
// later result of the same object and phase replaces the earlier.
//
// An error means that the run was cut short, by the context's end; the outcome then
// says how far it came.
func (c *Cluster) Run(ctx context.Context, p *plan.Plan, progress func(Result)) (Outcome, error) {
	r := &run{cluster: c, progress: progress}
	for _, phase := range p.Phases {
		if phase.When != plan.Always {
			continue
		}
		if err := r.phase(ctx, phase); err != nil {
			return r.cut(err)
		}
		if r.failed() {
			break
		}
	}
	if r.failed() {
		for _, phase := range p.Phases {
			if phase.When == plan.OnFailure {
				if err := r.phase(ctx, phase); err != nil {
					return r.cut(err)
				}
			}
		}
	}
	return r.outcome(), nil
}

// run is one run of a plan.
type run struct {
	cluster  *Cluster
	progress func(Result)
	results  []Result
	// written is what later waves wait for.
	written []*written
	errs    []string
}

func (r *run) failed() bool { return len(r.errs) > 0 }

func (r *run) report(result Result) {
	i := slices.IndexFunc(r.results, func(have Result) bool { return have.Key == result.Key && have.Phase == result.Phase })
	if i < 0 {
		r.results = append(r.results, result)
	} else {
		r.results[i] = result
	}
	if result.Status == argov1alpha1.ResultSyncFailed || result.Hook == argov1alpha1.OperationFailed {
		r.errs = append(r.errs, fmt.Sprintf("%s: %s", result.Key, result.Message))
	}
	if r.progress != nil {
		r.progress(result)
	}
}

func (r *run) outcome() Outcome {
	if !r.failed() {
		return Outcome{Phase: argov1alpha1.OperationSucceeded, Message: "successfully synced", Results: r.results}
	}
	message := r.errs[0]
	if more := len(r.errs) - 1; more > 0 {
		message = fmt.Sprintf("%s (and %d more)", message, more)
	}
	return Outcome{Phase: argov1alpha1.OperationFailed, Message: message, Results: r.results}
}

func (r *run) cut(err error) (Outcome, error) {
	o := r.outcome()
	o.Phase, o.Message = argov1alpha1.OperationError, "cut short: "+err.Error()
	if errors.Is(err, context.Canceled) {
		o.Message = "terminated"
	}
	return o, err
}

func (r *run) phase(ctx context.Context, phase plan.Phase) error {
	// A phase that runs because of a failure is stopped only by one of its own.
	before := len(r.errs)
	for _, wave := range phase.Waves {
		if wave.AfterHealthy {
			if err := r.awaitWritten(ctx); err != nil {
				return err
			}
			if len(r.errs) > before {
				return nil
			}
		}
		hooks, err := r.wave(ctx, phase.Name, wave)
		if err != nil {
			return err
		}
		for _, hook := range hooks {
			if err := r.awaitHook(ctx, phase.Name, hook); err != nil {
				return err
			}
		}
		if len(r.errs) > before {
			return nil
		}
	}
	return nil
}

// wave does the steps of a wave, and gives the hooks among them that have begun.
func (r *run) wave(ctx context.Context, phase plan.PhaseName, wave plan.Wave) ([]*written, error) {
	var hooks []*written
	for i := range wave.Steps {
		step := &wave.Steps[i]
		w, result := r.cluster.do(ctx, phase, step)
		if ctx.Err() != nil {
			return hooks, context.Cause(ctx)
		}
		r.report(result)
		switch {
		case w == nil || result.Status == argov1alpha1.ResultSyncFailed:
		case step.Action == plan.RunHook:
			hooks = append(hooks, w)
		default:
			r.written = append(r.written, w)
		}
	}
	return hooks, nil
}
