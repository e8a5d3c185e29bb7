// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// FailAnnotation on a pod makes its containers fail.
const FailAnnotation = "localkube.weir.dev/fail"

// runFor is how long after its start time a pod of a Job completes. Start
// times are kept in whole seconds, so the pod is seen running for one to two
// seconds.
const runFor = 2 * time.Second

// step is what to do about a pod now. The zero step is nothing.
type step struct {
	// status is to be written.
	status *corev1.PodStatus
	// remove the pod for good.
	remove bool
	// after is when to look again without any change to the pod.
	after time.Duration
}

// next decides. hostIP is the address of the pod's node.
func next(pod *corev1.Pod, hostIP string, now time.Time) step {
	if pod.DeletionTimestamp != nil {
		return nextDeleted(pod, hostIP, now)
	}
	if terminal(pod.Status.Phase) {
		return step{}
	}
	o, after := outcomeOf(pod, now)
	want := statusFor(pod, o, hostIP, now)
	if equality.Semantic.DeepEqual(*want, pod.Status) {
		return step{after: after}
	}
	// The write brings the pod back here, and a wait is computed then.
	return step{status: want}
}

// nextDeleted: a pod with finalizers is waited for by someone (a Job counts
// its pods so), who has to see that it ended before it goes. A pod whose grace
// is 0 has been removed as far as a kubelet can; only finalizers hold it.
func nextDeleted(pod *corev1.Pod, hostIP string, now time.Time) step {
	if len(pod.Finalizers) > 0 && !terminal(pod.Status.Phase) {
		return step{status: statusFor(pod, outcome{phase: corev1.PodFailed, exitCode: exitTerminated}, hostIP, now)}
	}
	if grace := pod.DeletionGracePeriodSeconds; grace != nil && *grace == 0 {
		return step{}
	}
	return step{remove: true}
}

func terminal(phase corev1.PodPhase) bool {
	return phase == corev1.PodSucceeded || phase == corev1.PodFailed
}

// exitTerminated is the exit code of a program ended by SIGTERM.
const exitTerminated = 128 + 15

// outcome is the state of a pod's containers, all alike.
type outcome struct {
	phase    corev1.PodPhase
	exitCode int32 // where the phase is terminal
	crashing bool  // where it is Running: in CrashLoopBackOff
}

// outcomeOf tells how the pod's containers fare now, and when that changes by
// itself.
func outcomeOf(pod *corev1.Pod, now time.Time) (outcome, time.Duration) {
	fails := pod.Annotations[FailAnnotation] == "true"
	policy := pod.Spec.RestartPolicy
	if fails && policy != corev1.RestartPolicyNever {
		return outcome{phase: corev1.PodRunning, crashing: true}, 0
	}
	running := outcome{phase: corev1.PodRunning}
	if policy == corev1.RestartPolicyAlways || pod.Status.StartTime == nil {
		return running, 0
	}
	if left := pod.Status.StartTime.Add(runFor).Sub(now); left > 0 {
		return running, left
	}
	if fails {
		return outcome{phase: corev1.PodFailed, exitCode: 1}, 0
	}
	return outcome{phase: corev1.PodSucceeded}, 0
}
