// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"hash/fnv"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// crashRestarts is the restart count of a crashing container. It is above the
// default backoffLimit of a Job, so that a Job whose pods restart in place
// (OnFailure) fails at once and not after ten minutes of back-off.
const crashRestarts = 7

// statusFor is the status the pod should have. It starts from the present one
// and keeps every time in it that still holds: computing it again for a pod
// that has it gives the same, which is how next knows that nothing is to do.
func statusFor(pod *corev1.Pod, o outcome, hostIP string, now time.Time) *corev1.PodStatus {
	at := metav1.NewTime(now).Rfc3339Copy()
	s := pod.Status.DeepCopy()
	s.Phase = o.phase
	s.ObservedGeneration = pod.Generation
	s.Reason, s.Message = "", ""
	if s.StartTime == nil {
		s.StartTime = &at
	}
	s.HostIP, s.HostIPs = hostIP, []corev1.HostIP{{IP: hostIP}}
	if s.PodIP == "" {
		s.PodIP = podIP(pod.UID)
		s.PodIPs = []corev1.PodIP{{IP: s.PodIP}}
	}
	s.InitContainerStatuses = initStatuses(pod, o, at)
	s.ContainerStatuses = make([]corev1.ContainerStatus, 0, len(pod.Spec.Containers))
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		s.ContainerStatuses = append(s.ContainerStatuses, containerStatus(pod.UID, c, pod.Status.ContainerStatuses, o, at))
	}
	setConditions(pod, s, o, at)
	return s
}

// initStatuses: plain init containers have completed, those that restart
// (sidecars) live as long as the pod.
func initStatuses(pod *corev1.Pod, o outcome, at metav1.Time) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		initOutcome := outcome{phase: corev1.PodSucceeded}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			initOutcome = outcome{phase: o.phase}
		}
		st := containerStatus(pod.UID, c, pod.Status.InitContainerStatuses, initOutcome, at)
		if initOutcome.phase == corev1.PodSucceeded {
			st.Ready = true // what a kubelet reports for an init container that is done
		}
		all = append(all, st)
	}
	return all
}

// containerStatus describes one container; before is where its earlier status
// is looked up.
func containerStatus(uid types.UID, c *corev1.Container, before []corev1.ContainerStatus, o outcome, at metav1.Time) corev1.ContainerStatus {
	running := o.phase == corev1.PodRunning && !o.crashing
	st := corev1.ContainerStatus{
		Name:        c.Name,
		Image:       c.Image,
		ImageID:     "localkube://" + c.Image,
		ContainerID: fmt.Sprintf("localkube://%s/%s", uid, c.Name),
		Ready:       running,
		Started:     &running,
	}
	var earlier corev1.ContainerStatus
	for _, b := range before {
		if b.Name == c.Name {
			earlier = b
		}
	}
	st.RestartCount, st.LastTerminationState = earlier.RestartCount, earlier.LastTerminationState
	switch {
	case o.crashing:
		st.RestartCount = max(st.RestartCount, crashRestarts)
		st.LastTerminationState = terminatedState(earlier.LastTerminationState, st.ContainerID, at, at, 1)
		st.State.Waiting = &corev1.ContainerStateWaiting{
			Reason:  "CrashLoopBackOff",
			Message: "failing because of the annotation " + FailAnnotation,
		}
	case running:
		st.State.Running = &corev1.ContainerStateRunning{StartedAt: at}
		if earlier.State.Running != nil {
			st.State.Running.StartedAt = earlier.State.Running.StartedAt
		}
	default:
		started := at
		if earlier.State.Running != nil {
			started = earlier.State.Running.StartedAt
		}
		st.State = terminatedState(earlier.State, st.ContainerID, started, at, o.exitCode)
	}
	return st
}

// terminatedState keeps an earlier end with the same exit code.
func terminatedState(earlier corev1.ContainerState, id string, started, finished metav1.Time, code int32) corev1.ContainerState {
	if t := earlier.Terminated; t != nil && t.ExitCode == code {
		return earlier
	}
	reason := "Completed"
	if code != 0 {
		reason = "Error"
	}
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
		ExitCode: code, Reason: reason, StartedAt: started, FinishedAt: finished, ContainerID: id,
	}}
}

// setConditions sets the kubelet's conditions and leaves others, such as
// readiness gates and PodScheduled, to their owners.
func setConditions(pod *corev1.Pod, s *corev1.PodStatus, o outcome, at metav1.Time) {
	running := o.phase == corev1.PodRunning && !o.crashing
	containers := corev1.PodCondition{Type: corev1.ContainersReady, Status: conditionStatus(running)}
	switch {
	case running:
	case o.phase == corev1.PodSucceeded:
		containers.Reason = "PodCompleted"
	case o.phase == corev1.PodFailed:
		containers.Reason = "PodFailed"
	default:
		containers.Reason, containers.Message = "ContainersNotReady", "containers are crashing"
	}
	ready := containers
	ready.Type = corev1.PodReady
	if running && !gatesOpen(pod, s) {
		ready.Status, ready.Reason = corev1.ConditionFalse, "ReadinessGatesNotReady"
	}
	initialized := corev1.PodCondition{Type: corev1.PodInitialized, Status: corev1.ConditionTrue}
	if o.phase == corev1.PodSucceeded {
		initialized.Reason = "PodCompleted"
	}
	sandbox := corev1.PodCondition{
		Type:   corev1.PodReadyToStartContainers,
		Status: conditionStatus(!terminal(o.phase)),
	}
	for _, c := range []corev1.PodCondition{sandbox, initialized, ready, containers} {
		setCondition(s, c, at)
	}
}

// gatesOpen tells whether every readiness gate's condition is true.
func gatesOpen(pod *corev1.Pod, s *corev1.PodStatus) bool {
	for _, gate := range pod.Spec.ReadinessGates {
		open := false
		for _, c := range s.Conditions {
			open = open || c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue
		}
		if !open {
			return false
		}
	}
	return true
}

func setCondition(s *corev1.PodStatus, c corev1.PodCondition, at metav1.Time) {
	c.LastTransitionTime = at
	for i := range s.Conditions {
		old := &s.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		c.LastProbeTime, c.ObservedGeneration = old.LastProbeTime, old.ObservedGeneration
		if !equality.Semantic.DeepEqual(*old, c) {
			*old = c
		}
		return
	}
	s.Conditions = append(s.Conditions, c)
}

func conditionStatus(v bool) corev1.ConditionStatus {
	if v {
		return corev1.ConditionTrue
	}
	return corev1.ConditionFalse
}

// podIP derives an address in 10.128.0.0/9 from the pod's UID: nothing has to
// be remembered or given back, and among eight million addresses two pods of
// a local cluster hardly ever share one. Nothing listens there.
func podIP(uid types.UID) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // never fails
	sum := h.Sum32()
	return netip.AddrFrom4([4]byte{10, 128 | byte(sum>>16)&0x7f, byte(sum >> 8), byte(sum)}).String()
}
