// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// runState is how far a run has come.
type runState string

const (
	runWaiting   runState = "Waiting"
	runRunning   runState = "Running"
	runSucceeded runState = "Succeeded"
	runFailed    runState = "Failed"
)

// verdict is what a run's status says, in one look.
type verdict struct {
	state runState
	// message is the reason of a failure, or what a run waits for.
	message string
}

func (v verdict) final() bool { return v.state == runSucceeded || v.state == runFailed }

// trouble is the message of a run that is not simply fine.
func (v verdict) trouble() string {
	if v.state == runSucceeded {
		return ""
	}
	return v.message
}

// judge reads a run. The API promises the condition Succeeded and finishedAt
// once the run has ended and not before; either is enough, so that the two need
// not come in one write. ErrorOccurred alone ends nothing: a run that waits for
// its deployment has it too.
func judge(r *v1alpha1.GitOpsDeploymentSyncRun) verdict {
	var succeeded *v1alpha1.Condition
	for i, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded && c.Status != metav1.ConditionUnknown {
			succeeded = &r.Status.Conditions[i]
		}
	}
	trouble := errorMessage(r.Status.Conditions)
	switch {
	case succeeded != nil && succeeded.Status == metav1.ConditionTrue:
		return verdict{state: runSucceeded, message: succeeded.Message}
	case succeeded != nil:
		return verdict{state: runFailed, message: firstText(succeeded.Message, trouble, string(succeeded.Reason))}
	case !r.Status.FinishedAt.IsZero():
		return verdict{state: runFailed, message: trouble}
	case !r.Status.StartedAt.IsZero():
		return verdict{state: runRunning, message: trouble}
	default:
		return verdict{state: runWaiting, message: trouble}
	}
}

func firstText(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// answer is what the service found out about an environment or a credential.
type answer struct {
	// known is false until the service has looked at the present spec.
	known, good     bool
	reason, message string
}

func (a answer) word(good, bad string) string {
	switch {
	case !a.known:
		return "-"
	case a.good:
		return good
	default:
		return bad
	}
}

func (a answer) trouble() string {
	if !a.known || a.good {
		return ""
	}
	return firstText(a.message, a.reason)
}

// current says whether a status speaks of the present spec. A status without
// the field is taken for current.
func current(generation, observed int64) bool { return observed == 0 || observed >= generation }

func environmentAnswer(e *v1alpha1.GitOpsDeploymentManagedEnvironment) answer {
	c := meta.FindStatusCondition(e.Status.Conditions, string(v1alpha1.ConditionConnectionInitializationSucceeded))
	if c == nil || c.Status == metav1.ConditionUnknown || !current(e.Generation, e.Status.ObservedGeneration) {
		return answer{}
	}
	return answer{known: true, good: c.Status == metav1.ConditionTrue, reason: c.Reason, message: c.Message}
}

// credentialAnswer lets any bad condition decide, because a credential with a
// wrong URL is never tried.
func credentialAnswer(r *v1alpha1.GitOpsDeploymentRepositoryCredential) answer {
	if !current(r.Generation, r.Status.ObservedGeneration) {
		return answer{}
	}
	for _, bad := range []struct {
		condition v1alpha1.ConditionType
		status    metav1.ConditionStatus
	}{
		{v1alpha1.ConditionErrorOccurred, metav1.ConditionTrue},
		{v1alpha1.ConditionValidRepositoryURL, metav1.ConditionFalse},
		{v1alpha1.ConditionValidRepositoryCredential, metav1.ConditionFalse},
	} {
		if c := meta.FindStatusCondition(r.Status.Conditions, string(bad.condition)); c != nil && c.Status == bad.status {
			return answer{known: true, reason: c.Reason, message: c.Message}
		}
	}
	c := meta.FindStatusCondition(r.Status.Conditions, string(v1alpha1.ConditionValidRepositoryCredential))
	if c == nil || c.Status != metav1.ConditionTrue {
		return answer{}
	}
	return answer{known: true, good: true, reason: c.Reason, message: c.Message}
}
