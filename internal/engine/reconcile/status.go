// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// writeComparison writes what a comparison has found, where that is news, and
// takes a refresh annotation away.
func (e *Engine) writeComparison(ctx context.Context, app *argo.Application, c *comparison, wrong *problem) error {
	_, refresh := app.Annotations[argo.RefreshAnnotation]
	after := compose(app, c, wrong)
	if !refresh && equality.Semantic.DeepEqual(app.Status, after) {
		return nil
	}
	now := metav1.Now()
	change := map[string]any{"status": map[string]any{
		"sync": replaced(after.Sync), "health": replaced(after.Health), "resources": after.Resources,
		"conditions": after.Conditions, "sourceType": after.SourceType, "reconciledAt": now,
	}}
	if refresh {
		change["metadata"] = map[string]any{"annotations": map[string]any{argo.RefreshAnnotation: nil}}
	}
	return e.patch(ctx, app, change)
}

// compose is the part of a status that a comparison decides. It is pure.
func compose(app *argo.Application, c *comparison, wrong *problem) argo.ApplicationStatus {
	status := *app.Status.DeepCopy()
	status.Conditions = nil
	to := argo.ComparedTo{Source: app.Spec.Source, Destination: app.Spec.Destination, IgnoreDifferences: app.Spec.IgnoreDifferences}
	if wrong != nil {
		at := metav1.Now()
		for _, have := range app.Status.Conditions {
			if have.Type == wrong.kind && have.Message == wrong.message && have.LastTransitionTime != nil {
				at = *have.LastTransitionTime
			}
		}
		status.Conditions = []argo.ApplicationCondition{{Type: wrong.kind, Message: wrong.message, LastTransitionTime: &at}}
		status.Sync = argo.SyncStatus{Status: argo.SyncStatusUnknown, ComparedTo: to}
		status.Health = argo.HealthStatus{Status: argo.HealthStatusUnknown}
		return status
	}
	status.Sync = argo.SyncStatus{Status: syncCode(c), Revision: c.revision, ComparedTo: to}
	status.Health = argo.HealthStatus{Status: c.health.Status, Message: c.health.Message, LastTransitionTime: app.Status.Health.LastTransitionTime}
	if app.Status.Health.Status != c.health.Status {
		now := metav1.Now()
		status.Health.LastTransitionTime = &now
	}
	status.SourceType = c.sourceType
	status.Resources = slices.SortedFunc(slices.Values(c.resources), func(a, b argo.ResourceStatus) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return status
}

// replaced makes a merge patch replace an object instead of merging it: what the
// new one lacks is said to be null.
func replaced(v any) map[string]any {
	text, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	out := map[string]any{}
	_ = json.Unmarshal(text, &out)
	for _, field := range []string{"message", "finishedAt", "syncResult", "retryCount", "revision", "comparedTo", "lastTransitionTime"} {
		if _, set := out[field]; !set {
			out[field] = nil
		}
	}
	if op, is := out["operation"].(map[string]any); is {
		for _, field := range []string{"sync", "info", "initiatedBy", "retry"} {
			if _, set := op[field]; !set {
				op[field] = nil
			}
		}
		if sync, is := op["sync"].(map[string]any); is {
			for _, field := range []string{"revision", "prune", "dryRun", "syncOptions", "resources", "source"} {
				if _, set := sync[field]; !set {
					sync[field] = nil
				}
			}
		}
	}
	return out
}

func (e *Engine) patch(ctx context.Context, app *argo.Application, change map[string]any) error {
	text, err := json.Marshal(change)
	if err != nil {
		return err
	}
	target := &argo.Application{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: app.Name}}
	if err := e.client.Patch(ctx, target, client.RawPatch(types.MergePatchType, text)); err != nil {
		return err
	}
	// What is decided on this copy from now on is decided on the newest.
	app.ResourceVersion = target.ResourceVersion
	return nil
}
