// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/backend/intake"
)

// Environments writes the status of GitOpsDeploymentManagedEnvironments.
type Environments struct {
	Client client.SubResourceWriter
	// Events may be nil.
	Events Recorder
	Now    func() time.Time
}

// ShowEnvironment writes the condition, if it differs from the one the CR has.
func (e *Environments) ShowEnvironment(ctx context.Context, cr *v1alpha1.GitOpsDeploymentManagedEnvironment, c intake.EnvironmentCondition) error {
	shown := cr.DeepCopy()
	if before := meta.FindStatusCondition(cr.Status.Conditions, string(v1alpha1.ConditionConnectionInitializationSucceeded)); c.Reason == intake.ReasonConnecting &&
		before != nil && before.ObservedGeneration == cr.Generation {
		// Asked again: the last answer is more to the tenant than that there will be one.
		return nil
	}
	status := metav1.ConditionFalse
	switch c.Reason {
	case v1alpha1.ReasonSucceeded:
		status = metav1.ConditionTrue
	case intake.ReasonConnecting:
		status = metav1.ConditionUnknown
	}
	setStandard(&shown.Status.Conditions, v1alpha1.ConditionConnectionInitializationSucceeded, status, c.Reason, c.Message, cr.Generation, e.Now())
	shown.Status.ObservedGeneration = max(cr.Status.ObservedGeneration, cr.Generation)
	happened := conditionHappenings(cr.Status.Conditions, shown.Status.Conditions, v1alpha1.ConditionConnectionInitializationSucceeded, eventConnected, c.Rotated)
	err := write(ctx, e.Client, cr, shown, &cr.Status, &shown.Status, func() { *cr = *shown })
	if err == nil {
		tell(e.Events, cr, happened)
	}
	return err
}

// setStandard sets a condition of Kubernetes' own kind.
func setStandard(all *[]metav1.Condition, kind v1alpha1.ConditionType, s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string, generation int64, at time.Time) {
	meta.SetStatusCondition(all, metav1.Condition{
		Type: string(kind), Status: s, Reason: string(r), Message: message, ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(at),
	})
}
