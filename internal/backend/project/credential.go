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

// Credentials writes the status of GitOpsDeploymentRepositoryCredentials.
type Credentials struct {
	Client client.SubResourceWriter
	// Events may be nil.
	Events Recorder
	Now    func() time.Time
}

// ShowCredential writes the three conditions, where they differ from those the CR
// has.
func (c *Credentials) ShowCredential(ctx context.Context, cr *v1alpha1.GitOpsDeploymentRepositoryCredential, v intake.CredentialVerdict, keep bool) error {
	shown := cr.DeepCopy()
	shown.Status.Conditions = composeCredential(cr, v, keep, c.Now())
	if len(shown.Status.Conditions) > 0 {
		shown.Status.ObservedGeneration = max(cr.Status.ObservedGeneration, cr.Generation)
	}
	happened := conditionHappenings(cr.Status.Conditions, shown.Status.Conditions, v1alpha1.ConditionValidRepositoryCredential, eventAccepted, v.Rotated)
	err := write(ctx, c.Client, cr, shown, &cr.Status, &shown.Status, func() { *cr = *shown })
	if err == nil {
		tell(c.Events, cr, happened)
	}
	return err
}

// composeCredential is pure.
func composeCredential(cr *v1alpha1.GitOpsDeploymentRepositoryCredential, v intake.CredentialVerdict, keep bool, now time.Time) []metav1.Condition {
	all := append([]metav1.Condition(nil), cr.Status.Conditions...)
	set := func(kind v1alpha1.ConditionType, s metav1.ConditionStatus, r v1alpha1.ConditionReason, message string) {
		setStandard(&all, kind, s, r, message, cr.Generation, now)
	}
	url, credential := v.URL, v.Secret
	if v.Checked != nil && v.Checked.Problem != nil {
		if v.Checked.Problem.Reason == v1alpha1.ReasonInvalidRepositoryURL {
			url = v.Checked.Problem
		} else {
			credential = v.Checked.Problem
		}
	}
	shown := meta.FindStatusCondition(all, string(v1alpha1.ConditionValidRepositoryCredential))
	switch {
	case url != nil:
		set(v1alpha1.ConditionValidRepositoryURL, metav1.ConditionFalse, url.Reason, url.Message)
		set(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionUnknown, url.Reason, "")
		set(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, url.Reason, url.Message)
	case credential != nil:
		set(v1alpha1.ConditionValidRepositoryURL, metav1.ConditionTrue, v1alpha1.ReasonValidRepositoryURL, "")
		set(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionFalse, credential.Reason, credential.Message)
		set(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, credential.Reason, credential.Message)
	case v.Operation != "":
		set(v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue, v1alpha1.ReasonErrorOccurred, v.Operation)
	case v.Checked != nil:
		set(v1alpha1.ConditionValidRepositoryURL, metav1.ConditionTrue, v1alpha1.ReasonValidRepositoryURL, "")
		set(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionTrue, v1alpha1.ReasonRepositoryCredentialUpToDate, "")
		set(v1alpha1.ConditionErrorOccurred, metav1.ConditionFalse, v1alpha1.ReasonErrorOccurred.Resolved(), "")
	case keep && shown != nil && shown.ObservedGeneration == cr.Generation:
		// It was answered before, and nothing has changed since; or something has, and
		// the answer comes. What the engine could not do before, it can by now.
		if shown.Status == metav1.ConditionTrue {
			set(v1alpha1.ConditionErrorOccurred, metav1.ConditionFalse, v1alpha1.ReasonErrorOccurred.Resolved(), "")
		}
	default:
		set(v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionUnknown, intake.ReasonConnecting, "asking the repository")
	}
	return all
}
