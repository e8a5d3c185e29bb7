// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC)

const testHostIP = "127.0.1.1"

// podWith is a bound pod with one container, as the scheduler leaves it.
func podWith(mods ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "n", UID: "11-22", Generation: 1},
		Spec: corev1.PodSpec{
			NodeName:      nodeName(1),
			RestartPolicy: corev1.RestartPolicyAlways,
			Containers:    []corev1.Container{{Name: "main", Image: "app:1"}},
		},
		Status: corev1.PodStatus{
			Phase:      corev1.PodPending,
			Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}},
		},
	}
	for _, mod := range mods {
		mod(pod)
	}
	return pod
}

func restart(policy corev1.RestartPolicy) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Spec.RestartPolicy = policy }
}

func failing(pod *corev1.Pod) { pod.Annotations = map[string]string{FailAnnotation: "true"} }

func deleted(grace int64) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		at := metav1.NewTime(epoch)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, &grace
	}
}

func finalized(pod *corev1.Pod) { pod.Finalizers = []string{"batch.kubernetes.io/job-tracking"} }

func gated(open corev1.ConditionStatus) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: "example.com/lb", Status: open})
	}
}

func withInit(pod *corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	pod.Spec.InitContainers = []corev1.Container{
		{Name: "migrate", Image: "m:1"},
		{Name: "proxy", Image: "s:1", RestartPolicy: &always},
	}
}

// play applies steps the way the loop does: a status is stored, with times in
// whole seconds as the API server keeps them, and waits pass. It returns what
// the pod ends as and how long that took.
func play(t interface{ Fatalf(string, ...any) }, pod *corev1.Pod, now time.Time) (final *corev1.Pod, removed bool, took time.Duration) {
	start := now
	for range 10 {
		todo := next(pod, testHostIP, now)
		switch {
		case todo.status != nil:
			pod = pod.DeepCopy()
			pod.Status = *todo.status
		case todo.remove:
			return pod, true, now.Sub(start)
		case todo.after > 0:
			now = now.Add(todo.after)
		default:
			return pod, false, now.Sub(start)
		}
	}
	t.Fatalf("the pod never comes to rest: %+v", pod.Status)
	return nil, false, 0
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return "absent"
}

func TestWhatBecomesOfAPod(t *testing.T) {
	const yes, no = corev1.ConditionTrue, corev1.ConditionFalse
	for _, tc := range []struct {
		name    string
		pod     *corev1.Pod
		phase   corev1.PodPhase
		ready   corev1.ConditionStatus
		removed bool
		takes   bool // between one and two seconds
	}{
		{name: "a server", pod: podWith(), phase: corev1.PodRunning, ready: yes},
		{name: "a server with init containers", pod: podWith(withInit), phase: corev1.PodRunning, ready: yes},
		{name: "a Job's pod", pod: podWith(restart(corev1.RestartPolicyNever)), phase: corev1.PodSucceeded, ready: no, takes: true},
		{name: "a Job's pod that restarts", pod: podWith(restart(corev1.RestartPolicyOnFailure), withInit), phase: corev1.PodSucceeded, ready: no, takes: true},
		{name: "a failing server", pod: podWith(failing), phase: corev1.PodRunning, ready: no},
		{name: "a failing Job's pod", pod: podWith(failing, restart(corev1.RestartPolicyNever)), phase: corev1.PodFailed, ready: no, takes: true},
		{name: "a failing Job's pod that restarts", pod: podWith(failing, restart(corev1.RestartPolicyOnFailure)), phase: corev1.PodRunning, ready: no},
		{name: "closed readiness gate", pod: podWith(gated(no)), phase: corev1.PodRunning, ready: no},
		{name: "open readiness gate", pod: podWith(gated(yes)), phase: corev1.PodRunning, ready: yes},
		{name: "deleted", pod: podWith(deleted(30)), phase: corev1.PodPending, ready: "absent", removed: true},
		{name: "deleted with finalizer", pod: podWith(deleted(30), finalized), phase: corev1.PodFailed, ready: no, removed: true},
		{name: "deleted by force with finalizer", pod: podWith(deleted(0), finalized), phase: corev1.PodFailed, ready: no},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, removed, took := play(t, tc.pod, epoch)
			if got.Status.Phase != tc.phase || condition(got, corev1.PodReady) != tc.ready || removed != tc.removed {
				t.Errorf("phase %s, ready %s, removed %v; want %s, %s, %v",
					got.Status.Phase, condition(got, corev1.PodReady), removed, tc.phase, tc.ready, tc.removed)
			}
			if inTime := took >= time.Second && took <= 2*time.Second; inTime != tc.takes {
				t.Errorf("took %s", took)
			}
			if condition(got, corev1.PodScheduled) != yes {
				t.Error("the scheduler's condition was touched")
			}
		})
	}
}

func TestContainerStatuses(t *testing.T) {
	pod, _, _ := play(t, podWith(withInit), epoch)
	main, migrate, proxy := pod.Status.ContainerStatuses[0], pod.Status.InitContainerStatuses[0], pod.Status.InitContainerStatuses[1]
	if main.State.Running == nil || !main.Ready || !*main.Started || main.Image != "app:1" || main.ContainerID == "" {
		t.Errorf("container: %+v", main)
	}
	if done := migrate.State.Terminated; done == nil || done.Reason != "Completed" || done.ExitCode != 0 {
		t.Errorf("init container: %+v", migrate)
	}
	if proxy.State.Running == nil || !proxy.Ready {
		t.Errorf("sidecar: %+v", proxy)
	}
	if pod.Status.StartTime == nil || pod.Status.PodIP == "" || pod.Status.HostIP != testHostIP || pod.Status.ObservedGeneration != 1 {
		t.Errorf("status: %+v", pod.Status)
	}

	failing(pod)
	pod, _, _ = play(t, pod, epoch.Add(time.Hour))
	crashed := pod.Status.ContainerStatuses[0]
	if w := crashed.State.Waiting; w == nil || w.Reason != "CrashLoopBackOff" || crashed.RestartCount <= 6 || crashed.LastTerminationState.Terminated.ExitCode != 1 {
		t.Errorf("crashing: %+v", crashed)
	}

	pod.Annotations = nil
	pod, _, _ = play(t, pod, epoch.Add(2*time.Hour))
	healed := pod.Status.ContainerStatuses[0]
	if healed.State.Running == nil || condition(pod, corev1.PodReady) != corev1.ConditionTrue || healed.RestartCount != crashRestarts {
		t.Errorf("healed: %+v", healed)
	}
}

// TestEveryPodComesToRest: whatever the pod, a few steps bring it to a status
// that is then left alone, now and later. Without this the loop would write
// for ever.
func TestEveryPodComesToRest(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		mods := map[string]func(*corev1.Pod){
			"failing": failing, "init": withInit, "finalized": finalized, "deleted": deleted(30), "forced": deleted(0),
			"gate closed": gated(corev1.ConditionFalse), "gate open": gated(corev1.ConditionTrue),
			"second container": func(pod *corev1.Pod) {
				pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", Image: "b"})
			},
		}
		names := rapid.SliceOfDistinct(rapid.SampledFrom([]string{
			"failing", "init", "finalized", "deleted", "forced", "gate closed", "gate open", "second container",
		}), func(s string) string { return s }).Draw(rt, "mods")
		pod := podWith(restart(rapid.SampledFrom([]corev1.RestartPolicy{
			corev1.RestartPolicyAlways, corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever,
		}).Draw(rt, "policy")))
		now := epoch.Add(time.Duration(rapid.IntRange(0, 1999).Draw(rt, "ms")) * time.Millisecond)
		for _, name := range append([]string{""}, names...) {
			if mod := mods[name]; mod != nil {
				mod(pod)
			}
			var removed bool
			var took time.Duration
			pod, removed, took = play(rt, pod, now)
			if removed {
				return
			}
			now = now.Add(took)
		}
		if later := next(pod, testHostIP, now.Add(time.Hour)); later != (step{}) {
			rt.Fatalf("an hour later: %+v", later)
		}
		if terminal(pod.Status.Phase) && condition(pod, corev1.PodReady) == corev1.ConditionTrue {
			rt.Fatalf("ended but ready: %+v", pod.Status)
		}
	})
}

func TestPodIP(t *testing.T) {
	network := netip.MustParsePrefix("10.128.0.0/9")
	rapid.Check(t, func(rt *rapid.T) {
		uid := types.UID(rapid.String().Draw(rt, "uid"))
		ip, err := netip.ParseAddr(podIP(uid))
		if err != nil || !network.Contains(ip) || podIP(uid) != ip.String() {
			rt.Fatalf("%q → %s, %v", uid, ip, err)
		}
	})
}

func TestNodeObject(t *testing.T) {
	node := nodeObject(3, "v1.36.3", epoch)
	if node.Name != "localkube-3" || node.Labels[SimulatedLabel] != "true" || node.Status.NodeInfo.KubeletVersion != "v1.36.3" {
		t.Errorf("node: %+v", node)
	}
	for _, a := range node.Status.Addresses {
		if a.Type == corev1.NodeInternalIP && !strings.HasPrefix(a.Address, "127.") {
			t.Errorf("the node's address %s leads out of the machine", a.Address)
		}
	}
}
