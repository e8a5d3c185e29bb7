// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// Recorder records events; a manager's event recorder is one. It does not wait
// for the API server.
type Recorder interface {
	Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any)
}

// Events tell tenants what happened, where a status tells how things are. They
// follow from two statuses of one CR, the one before a write and the one after it:
// what has not changed is not told again.
type happening struct {
	warning bool
	reason  string
	note    string
}

// What can happen, as reasons of events.
const (
	eventTakenIn     = "TakenIn"
	eventDenied      = "Denied"
	eventWaiting     = "Waiting"
	eventSynced      = "Synced"
	eventDegraded    = "Degraded"
	eventSyncStarted = "SyncStarted"
	eventSyncFailed  = "SyncFailed"
	eventConnected   = "Connected"
	eventRotated     = "Rotated"
	eventAccepted    = "Accepted"
	eventUnusable    = "Unusable"
)

// tell records what happened to a CR. An event's note has a limit, and text
// beyond it would lose the event.
func tell(r Recorder, cr runtime.Object, all []happening) {
	if r == nil {
		return
	}
	for _, h := range all {
		kind := corev1.EventTypeNormal
		if h.warning {
			kind = corev1.EventTypeWarning
		}
		r.Eventf(cr, nil, kind, h.reason, h.reason, "%s", clipped(h.note))
	}
}

const longestNote = 1000

func clipped(s string) string {
	if len(s) <= longestNote {
		return s
	}
	s = s[:longestNote]
	for !utf8.ValidString(s) {
		s = s[:len(s)-1]
	}
	return s + "…"
}

// deploymentHappenings is pure.
func deploymentHappenings(before, after v1alpha1.GitOpsDeploymentStatus, verdict error) []happening {
	var all []happening
	wrong, message := errorOf(after.Conditions)
	if was, said := errorOf(before.Conditions); wrong && (!was || said != message) {
		all = append(all, happening{true, troubleOf(verdict), message})
	}
	if before.ObservedGeneration == 0 && !wrong {
		all = append(all, happening{false, eventTakenIn, "the deployment was taken in"})
	}
	if after.Sync.Status == v1alpha1.SyncSynced && (before.Sync.Status != v1alpha1.SyncSynced || before.Sync.Revision != after.Sync.Revision) {
		all = append(all, happening{false, eventSynced, "in sync with " + orElse(after.Sync.Revision, "its repository")})
	}
	if after.Health.Status == v1alpha1.HealthDegraded && before.Health.Status != v1alpha1.HealthDegraded {
		all = append(all, happening{true, eventDegraded, orElse(after.Health.Message, "a resource of the deployment is not healthy")})
	}
	return all
}

// troubleOf tells what the tenant has to change from what will come by itself.
func troubleOf(verdict error) string {
	var refusal *domain.Refusal
	if errors.As(verdict, &refusal) {
		return eventDenied
	}
	return eventWaiting
}

func errorOf(all []v1alpha1.Condition) (holds bool, message string) {
	for _, c := range all {
		if c.Type == v1alpha1.ConditionErrorOccurred && c.Status == metav1.ConditionTrue {
			return true, c.Message
		}
	}
	return false, ""
}

// syncRunHappenings is pure.
func syncRunHappenings(before, after v1alpha1.GitOpsDeploymentSyncRunStatus, verdict error) []happening {
	var all []happening
	wrong, message := errorOf(after.Conditions)
	was, said := errorOf(before.Conditions)
	switch {
	case after.FinishedAt != nil && wrong:
		all = append(all, happening{true, eventSyncFailed, message})
	case after.FinishedAt != nil:
		all = append(all, happening{false, eventSynced, "synced " + orElse(after.Revision, "the newest commit")})
	case wrong && (!was || said != message):
		all = append(all, happening{true, troubleOf(verdict), message})
	case after.StartedAt != nil && before.StartedAt == nil:
		all = append(all, happening{false, eventSyncStarted, "the engine has begun"})
	}
	return all
}

// conditionHappenings is for the kinds whose status is one condition: pure.
func conditionHappenings(before, after []metav1.Condition, kind v1alpha1.ConditionType, good string, rotated bool) []happening {
	was, is := meta.FindStatusCondition(before, string(kind)), meta.FindStatusCondition(after, string(kind))
	switch {
	case is == nil:
		return nil
	case is.Status == metav1.ConditionTrue && (was == nil || was.Status != metav1.ConditionTrue):
		return []happening{{false, good, "it can be used"}}
	case is.Status == metav1.ConditionTrue && rotated:
		return []happening{{false, eventRotated, "new credentials were taken in"}}
	case is.Status == metav1.ConditionFalse && (was == nil || was.Status != is.Status || was.Message != is.Message):
		return []happening{{true, eventUnusable, is.Message}}
	default:
		return nil
	}
}
