// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/plan"
)

// await watches one object until it satisfies a condition; nil stands for an
// object that is not there.
//
// It is read, and then watched from just that version, so nothing is missed
// between the two; a watch that ends begins with a reading again.
func await(ctx context.Context, api dynamic.ResourceInterface, name string, satisfied func(*unstructured.Unstructured) bool) error {
	for ctx.Err() == nil {
		done, err := awaitOnce(ctx, api, name, satisfied)
		if done || err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

func awaitOnce(ctx context.Context, api dynamic.ResourceInterface, name string, satisfied func(*unstructured.Unstructured) bool) (bool, error) {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	list, err := api.List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil {
		return false, err
	}
	var now *unstructured.Unstructured
	if len(list.Items) > 0 {
		now = &list.Items[0]
	}
	if satisfied(now) {
		return true, nil
	}
	w, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			return false, nil
		}
		return false, err
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case e, open := <-w.ResultChan():
			if !open || e.Type == watch.Error {
				return false, nil
			}
			o, isObject := e.Object.(*unstructured.Unstructured)
			if e.Type == watch.Deleted {
				o = nil
			} else if !isObject {
				continue
			}
			if satisfied(o) {
				return true, nil
			}
		}
	}
}

// awaitWritten waits until everything written so far is healthy, and everything
// deleted is gone. What turns out degraded fails the run.
func (r *run) awaitWritten(ctx context.Context) error {
	for _, w := range r.written {
		var broken *health.HealthStatus
		err := await(ctx, w.api, w.name, func(o *unstructured.Unstructured) bool {
			if w.gone {
				return o == nil || o.GetUID() != w.uid
			}
			if o == nil {
				// Somebody deleted it; the next comparison sees that.
				return true
			}
			status, err := r.cluster.Health.GetResourceHealth(o)
			if err != nil || status == nil {
				// No opinion, or none that can be had: nothing to wait for.
				return true
			}
			if status.Status == health.Degraded {
				broken = status
			}
			return status.Status != health.Progressing && status.Status != health.Missing
		})
		if err != nil {
			return err
		}
		if broken != nil {
			r.report(Result{Key: w.step.Key, Phase: plan.Sync, Status: argov1alpha1.ResultSyncFailed, Message: orElse(broken.Message, "it is degraded")})
		}
	}
	r.written = nil
	return nil
}

// awaitHook waits for a hook's end, and removes it where its policy says so.
func (r *run) awaitHook(ctx context.Context, phase plan.PhaseName, w *written) error {
	result := Result{Key: w.step.Key, Phase: phase, Status: argov1alpha1.ResultSynced, Hook: argov1alpha1.OperationSucceeded, Message: "the hook has succeeded"}
	err := await(ctx, w.api, w.name, func(o *unstructured.Unstructured) bool {
		if o == nil {
			result.Hook, result.Message = argov1alpha1.OperationFailed, "the hook was deleted before its end"
			return true
		}
		status, err := r.cluster.Health.GetResourceHealth(o)
		switch {
		case err != nil:
			result.Hook, result.Message = argov1alpha1.OperationFailed, err.Error()
			return true
		case status == nil || status.Status == health.Healthy:
			return true
		case status.Status == health.Degraded:
			result.Hook, result.Message = argov1alpha1.OperationFailed, orElse(status.Message, "the hook has failed")
			return true
		default:
			return false
		}
	})
	if err != nil {
		return err
	}
	r.report(result)
	for _, policy := range w.step.DeletePolicies {
		if policy == plan.HookSucceeded && result.Hook == argov1alpha1.OperationSucceeded || policy == plan.HookFailed && result.Hook == argov1alpha1.OperationFailed {
			if err := remove(ctx, w.api, w.name, w.uid); err != nil {
				return fmt.Errorf("remove hook %s: %w", w.step.Key, err)
			}
			break
		}
	}
	return nil
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
