// SPDX-License-Identifier: Apache-2.0

package health

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

// parse makes an object of "group/version Kind" and YAML.
func parse(t testing.TB, what, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	apiVersion, kind, _ := strings.Cut(what, " ")
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

type example struct {
	name, what, object string
	want               Status
	// message is a part of it.
	message string
}

func run(t *testing.T, examples []example) {
	t.Helper()
	for _, e := range examples {
		t.Run(e.what+" "+e.name, func(t *testing.T) {
			got, err := New(nil).GetResourceHealth(parse(t, e.what, e.object))
			if err != nil {
				t.Fatal(err)
			}
			if got == nil || got.Status != e.want || !strings.Contains(got.Message, e.message) {
				t.Errorf("health is %+v, want %s with %q", got, e.want, e.message)
			}
		})
	}
}

func TestWorkloads(t *testing.T) {
	const d, r, s, ds = "apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet"
	run(t, []example{
		{"new", d, `{metadata: {generation: 1}, spec: {replicas: 1}}`, Progressing, "newest spec"},
		{"paused", d, `{metadata: {generation: 2}, spec: {paused: true}}`, Suspended, "paused"},
		{"outdated status", d, `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, Progressing, "newest spec"},
		{"deadline", d, `{status: {conditions: [{type: Progressing, status: "False", reason: ProgressDeadlineExceeded, message: too slow}]}}`, Degraded, "too slow"},
		{"old failure, newer spec", d, `{metadata: {generation: 3}, status: {observedGeneration: 2, conditions: [{type: Progressing, reason: ProgressDeadlineExceeded}]}}`, Progressing, ""},
		{"updating", d, `{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 2, availableReplicas: 3}}`, Progressing, "2 of 3"},
		{"old left", d, `{spec: {replicas: 3}, status: {replicas: 4, updatedReplicas: 3, availableReplicas: 4}}`, Progressing, "1 replicas of an older"},
		{"unavailable", d, `{spec: {replicas: 3}, status: {replicas: 3, updatedReplicas: 3, availableReplicas: 1}}`, Progressing, "1 of 3"},
		{"one by default", d, `{spec: {}, status: {}}`, Progressing, "0 of 1"},
		{"ready", d, `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1}}`, Healthy, ""},
		{"at zero", d, `{spec: {replicas: 0}, status: {}}`, Healthy, ""},
		{"old group", "extensions/v1beta1 Deployment", `{spec: {replicas: 0}}`, Healthy, ""},

		{"failure", r, `{spec: {replicas: 1}, status: {conditions: [{type: ReplicaFailure, status: "True", reason: FailedCreate, message: quota}]}}`, Degraded, "FailedCreate: quota"},
		{"waiting", r, `{spec: {replicas: 2}, status: {availableReplicas: 1}}`, Progressing, "1 of 2"},
		{"ready", r, `{spec: {replicas: 2}, status: {availableReplicas: 2}}`, Healthy, ""},
		{"outdated", r, `{metadata: {generation: 2}, status: {observedGeneration: 1, availableReplicas: 1}}`, Progressing, ""},

		{"not ready", s, `{spec: {replicas: 3}, status: {readyReplicas: 2}}`, Progressing, "2 of 3"},
		{"rolling", s, `{spec: {replicas: 1}, status: {readyReplicas: 1, updatedReplicas: 0, updateRevision: b, currentRevision: a}}`, Progressing, "0 of 1"},
		{"on delete", s, `{spec: {replicas: 1, updateStrategy: {type: OnDelete}}, status: {readyReplicas: 1, updateRevision: b, currentRevision: a}}`, Healthy, "deleted"},
		{"partition not reached", s, `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}, status: {readyReplicas: 5, updatedReplicas: 1}}`, Progressing, "1 of 2"},
		{"partition", s, `{spec: {replicas: 5, updateStrategy: {rollingUpdate: {partition: 3}}}, status: {readyReplicas: 5, updatedReplicas: 2, updateRevision: b, currentRevision: a}}`, Healthy, "partition"},
		{"partition beyond", s, `{spec: {replicas: 2, updateStrategy: {rollingUpdate: {partition: 9}}}, status: {readyReplicas: 2}}`, Healthy, "partition"},
		{"ready", s, `{spec: {replicas: 1}, status: {readyReplicas: 1, updateRevision: a, currentRevision: a}}`, Healthy, ""},
		{"outdated", s, `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 1, readyReplicas: 1}}`, Progressing, ""},

		{"updating", ds, `{status: {desiredNumberScheduled: 2, updatedNumberScheduled: 1, numberAvailable: 2}}`, Progressing, "1 of 2 pods are of"},
		{"unavailable", ds, `{status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 1}}`, Progressing, "1 of 2 pods are available"},
		{"on delete", ds, `{spec: {updateStrategy: {type: OnDelete}}, status: {desiredNumberScheduled: 2}}`, Healthy, ""},
		{"ready", ds, `{status: {desiredNumberScheduled: 2, updatedNumberScheduled: 2, numberAvailable: 2}}`, Healthy, ""},
		{"outdated", ds, `{metadata: {generation: 2}, status: {observedGeneration: 1}}`, Progressing, ""},
	})
}

func TestPods(t *testing.T) {
	const p = "v1 Pod"
	run(t, []example{
		{"new", p, `{}`, Progressing, "about to start"},
		{"unschedulable", p, `{status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: Unschedulable, message: no nodes}]}}`, Progressing, "no nodes"},
		{"image", p, `{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff, message: cannot pull}}}]}}`, Degraded, "container a: ImagePullBackOff: cannot pull"},
		{"crash", p, `{spec: {restartPolicy: Always}, status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, Degraded, "CrashLoopBackOff"},
		{"config", p, `{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: CreateContainerConfigError}}}]}}`, Degraded, "ConfigError"},
		{"init container", p, `{status: {phase: Pending, initContainerStatuses: [{name: i, state: {waiting: {reason: ErrImagePull}}}]}}`, Degraded, "container i"},
		{"creating", p, `{status: {phase: Pending, containerStatuses: [{name: a, state: {waiting: {reason: ContainerCreating}}}]}}`, Progressing, ""},
		{"job's pod retries", p, `{spec: {restartPolicy: OnFailure}, status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: CrashLoopBackOff}}}]}}`, Progressing, ""},
		{"job's pod runs", p, `{spec: {restartPolicy: Never}, status: {phase: Running, conditions: [{type: Ready, status: "True"}]}}`, Progressing, "should end"},
		{"succeeded", p, `{spec: {restartPolicy: Never}, status: {phase: Succeeded}}`, Healthy, ""},
		{"failed", p, `{status: {phase: Failed, message: evicted}}`, Degraded, "evicted"},
		{"failed with code", p, `{spec: {restartPolicy: Never}, status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 7}}}]}}`, Degraded, "code 7"},
		{"out of memory", p, `{spec: {restartPolicy: Never}, status: {phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 137, reason: OOMKilled}}}]}}`, Degraded, "memory"},
		{"failed without words", p, `{status: {phase: Failed, reason: NodeLost}}`, Degraded, "NodeLost"},
		{"ready", p, `{status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, lastState: {terminated: {exitCode: 1}}}]}}`, Healthy, ""},
		{"not ready", p, `{status: {phase: Running, conditions: [{type: Ready, status: "False"}]}}`, Progressing, "not ready"},
		{"not ready again", p, `{status: {phase: Running, containerStatuses: [{name: a, lastState: {terminated: {exitCode: 3}}}]}}`, Degraded, "code 3"},
		{"lost", p, `{status: {phase: Unknown}}`, Unknown, ""},
	})
}

func TestOtherKinds(t *testing.T) {
	const (
		j, cj      = "batch/v1 Job", "batch/v1 CronJob"
		svc, ing   = "v1 Service", "networking.k8s.io/v1 Ingress"
		pvc        = "v1 PersistentVolumeClaim"
		hpa1, hpa2 = "autoscaling/v1 HorizontalPodAutoscaler", "autoscaling/v2 HorizontalPodAutoscaler"
		api        = "apiregistration.k8s.io/v1 APIService"
		crd        = "apiextensions.k8s.io/v1 CustomResourceDefinition"
		app, wf    = "argoproj.io/v1alpha1 Application", "argoproj.io/v1alpha1 Workflow"
		ro         = "argoproj.io/v1alpha1 Rollout"
	)
	run(t, []example{
		{"new", j, `{}`, Progressing, ""},
		{"retries", j, `{spec: {backoffLimit: 4}, status: {failed: 2}}`, Progressing, "2 pods failed; the Job may still retry, up to 4"},
		{"failed", j, `{status: {conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: too often}]}}`, Degraded, "BackoffLimitExceeded: too often"},
		{"complete", j, `{status: {failed: 1, conditions: [{type: Complete, status: "True"}]}}`, Healthy, ""},
		{"suspended", j, `{spec: {suspend: true}}`, Suspended, ""},
		{"suspended condition", j, `{status: {conditions: [{type: Suspended, status: "True"}]}}`, Suspended, ""},
		{"resumed", j, `{status: {conditions: [{type: Suspended, status: "False"}]}}`, Progressing, ""},

		{"new", cj, `{}`, Healthy, "not run yet"},
		{"suspended", cj, `{spec: {suspend: true}}`, Suspended, ""},
		{"running", cj, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z", active: [{name: a}]}}`, Healthy, "1 jobs"},
		{"never succeeded", cj, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z"}}`, Degraded, ""},
		{"last one failed", cj, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-01T00:01:00Z"}}`, Degraded, ""},
		{"succeeded", cj, `{status: {lastScheduleTime: "2026-01-02T00:00:00Z", lastSuccessfulTime: "2026-01-02T00:01:00Z"}}`, Healthy, ""},

		{"plain", svc, `{spec: {type: ClusterIP}}`, Healthy, ""},
		{"waiting", svc, `{spec: {type: LoadBalancer}, status: {loadBalancer: {}}}`, Progressing, ""},
		{"address", svc, `{spec: {type: LoadBalancer}, status: {loadBalancer: {ingress: [{ip: 1.2.3.4}]}}}`, Healthy, ""},
		{"waiting", ing, `{}`, Progressing, ""},
		{"address", ing, `{status: {loadBalancer: {ingress: [{hostname: a}]}}}`, Healthy, ""},
		{"waiting", "extensions/v1beta1 Ingress", `{}`, Progressing, ""},

		{"new", pvc, `{}`, Progressing, ""},
		{"bound", pvc, `{status: {phase: Bound}}`, Healthy, ""},
		{"lost", pvc, `{status: {phase: Lost}}`, Degraded, ""},
		{"odd", pvc, `{status: {phase: Odd}}`, Unknown, "Odd"},

		{"new", hpa2, `{}`, Progressing, ""},
		{"no target", hpa2, `{status: {conditions: [{type: AbleToScale, status: "False", reason: FailedGetScale, message: gone}]}}`, Degraded, "gone"},
		{"no metric", hpa2, `{status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingActive, status: "False", reason: FailedGetResourceMetric}]}}`, Degraded, ""},
		{"off", hpa2, `{status: {conditions: [{type: ScalingActive, status: "False", reason: ScalingDisabled}]}}`, Healthy, ""},
		{"well", hpa2, `{status: {conditions: [{type: AbleToScale, status: "True"}, {type: ScalingLimited, status: "True", reason: TooManyReplicas}]}}`, Healthy, ""},
		{"well", hpa1, `{metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '[{"type":"AbleToScale","status":"True"}]'}}}`, Healthy, ""},
		{"no metric", hpa1, `{metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: '[{"type":"ScalingActive","status":"False","reason":"InvalidSelector"}]'}}}`, Degraded, "InvalidSelector"},

		{"new", api, `{}`, Progressing, ""},
		{"available", api, `{status: {conditions: [{type: Available, status: "True"}]}}`, Healthy, ""},
		{"down", api, `{status: {conditions: [{type: Available, status: "False", reason: MissingEndpoints}]}}`, Progressing, "MissingEndpoints"},

		{"new", crd, `{}`, Progressing, ""},
		{"clash", crd, `{status: {conditions: [{type: NamesAccepted, status: "False", reason: ListKindConflict}, {type: Established, status: "False", reason: NotAccepted}]}}`, Degraded, "ListKindConflict"},
		{"installing", crd, `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "False", reason: Installing}]}}`, Progressing, ""},
		{"established", crd, `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}]}}`, Healthy, ""},
		{"bad schema", crd, `{status: {conditions: [{type: NamesAccepted, status: "True"}, {type: Established, status: "True"}, {type: NonStructuralSchema, status: "True", reason: Violations}]}}`, Degraded, "Violations"},
		{"terminating", crd, `{status: {conditions: [{type: Terminating, status: "True"}]}}`, Progressing, ""},

		{"new", app, `{}`, Progressing, ""},
		{"says", app, `{status: {health: {status: Degraded, message: m}}}`, Degraded, "m"},
		{"odd", app, `{status: {health: {status: Fine}}}`, Unknown, "Fine"},
		{"running", wf, `{status: {phase: Running}}`, Progressing, ""},
		{"suspended", wf, `{spec: {suspend: true}, status: {phase: Running}}`, Suspended, ""},
		{"failed", wf, `{status: {phase: Error, message: m}}`, Degraded, "m"},
		{"done", wf, `{status: {phase: Succeeded}}`, Healthy, ""},
		{"paused", ro, `{status: {phase: Paused, message: step 2}}`, Suspended, "step 2"},
	})
}

func TestNoOpinion(t *testing.T) {
	for _, what := range []string{"v1 ConfigMap", "example.com/v1 Deployment", "apps/v1 Ingress", "networking.k8s.io/v1 NetworkPolicy"} {
		if got, err := New(nil).GetResourceHealth(parse(t, what, `{}`)); got != nil || err != nil {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
}

func TestDeletionIsProgress(t *testing.T) {
	for _, what := range []string{"v1 ConfigMap", "v1 Service"} {
		u := parse(t, what, `{metadata: {deletionTimestamp: "2026-01-02T00:00:00Z"}}`)
		if got := Assess(New(nil), u); got == nil || got.Status != Progressing {
			t.Errorf("%s: %+v", what, got)
		}
	}
}

func TestWrongTypesAreErrors(t *testing.T) {
	tests := []struct{ what, object, field string }{
		{"apps/v1 Deployment", `{spec: {replicas: "3"}}`, "spec.replicas"},
		{"apps/v1 Deployment", `{spec: {replicas: 1.5}}`, "spec.replicas"},
		{"apps/v1 Deployment", `{spec: 3}`, "spec"},
		{"apps/v1 Deployment", `{status: {conditions: {}}}`, "status.conditions"},
		{"apps/v1 Deployment", `{status: {conditions: [1]}}`, "status.conditions[0]"},
		{"apps/v1 Deployment", `{status: {conditions: [{type: 1}]}}`, "status.conditions[0].type"},
		{"v1 Pod", `{status: {phase: [x]}}`, "status.phase"},
		{"batch/v1 Job", `{spec: {suspend: "yes"}}`, "spec.suspend"},
		{"batch/v1 CronJob", `{status: {lastScheduleTime: x, lastSuccessfulTime: "2026-01-02T00:00:00Z"}}`, "status.lastScheduleTime"},
		{"networking.k8s.io/v1 Ingress", `{status: {loadBalancer: {ingress: 1}}}`, "status.loadBalancer.ingress"},
		{"autoscaling/v1 HorizontalPodAutoscaler", `{metadata: {annotations: {autoscaling.alpha.kubernetes.io/conditions: "{"}}}`, "metadata.annotations.autoscaling.alpha.kubernetes.io/conditions"},
	}
	for _, test := range tests {
		u := parse(t, test.what, test.object)
		var fault *FieldError
		if got, err := New(nil).GetResourceHealth(u); got != nil || !errors.As(err, &fault) || fault.Field != test.field {
			t.Errorf("%s %s: %+v, %v", test.what, test.object, got, err)
		}
		if got := Assess(New(nil), u); got.Status != Unknown || got.Message == "" {
			t.Errorf("%s %s: %+v", test.what, test.object, got)
		}
	}
}

func TestOverrides(t *testing.T) {
	mine := &HealthStatus{Suspended, "mine"}
	a := New(Overrides{
		{Group: "apps", Kind: "Deployment"}: AssessorFunc(func(*unstructured.Unstructured) (*HealthStatus, error) { return mine, nil }),
		{Group: "example.com", Kind: "W"}:   AssessorFunc(func(*unstructured.Unstructured) (*HealthStatus, error) { return nil, errors.New("broken") }),
	})
	if got := Assess(a, parse(t, "apps/v1 Deployment", `{}`)); got != mine {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(&HealthStatus{Unknown, "broken"}, Assess(a, parse(t, "example.com/v1 W", `{}`))); diff != "" {
		t.Error(diff)
	}
	if got := Assess(a, parse(t, "v1 Service", `{}`)); got == nil || got.Status != Healthy {
		t.Errorf("%+v", got)
	}
	if got := Assess(a, nil); got.Status != Missing {
		t.Errorf("%+v", got)
	}
}

func TestAggregate(t *testing.T) {
	order := []Status{Healthy, Suspended, Progressing, Missing, Degraded, Unknown}
	for i, a := range order {
		for j, b := range order {
			if got, want := Aggregate(slices.Values([]Status{a, b})), order[max(i, j)]; got != want {
				t.Errorf("of %s and %s: %s, want %s", a, b, got, want)
			}
		}
	}
	if got := Aggregate(slices.Values[[]Status](nil)); got != Healthy {
		t.Errorf("of nothing: %s", got)
	}
}

// TestAnyShape: whatever a status is, the answer is one of the six, an error or
// nothing, and the object is left as it was.
func TestAnyShape(t *testing.T) {
	kinds := []schema.GroupVersionKind{}
	for _, what := range []string{
		"apps/v1 Deployment", "apps/v1 ReplicaSet", "apps/v1 StatefulSet", "apps/v1 DaemonSet", "v1 Pod", "batch/v1 Job", "batch/v1 CronJob",
		"v1 Service", "networking.k8s.io/v1 Ingress", "v1 PersistentVolumeClaim", "autoscaling/v2 HorizontalPodAutoscaler",
		"apiregistration.k8s.io/v1 APIService", "apiextensions.k8s.io/v1 CustomResourceDefinition", "argoproj.io/v1alpha1 Application",
		"argoproj.io/v1alpha1 Workflow", "argoproj.io/v1alpha1 Rollout",
	} {
		apiVersion, kind, _ := strings.Cut(what, " ")
		kinds = append(kinds, schema.FromAPIVersionAndKind(apiVersion, kind))
	}
	names := []string{
		"replicas", "phase", "conditions", "type", "status", "reason", "containerStatuses", "state", "waiting", "loadBalancer", "ingress",
		"updateStrategy", "rollingUpdate", "partition", "restartPolicy", "lastScheduleTime", "active", "suspend", "health", "observedGeneration",
	}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		leaves := []*rapid.Generator[any]{
			rapid.Just[any](nil), rapid.Int64().AsAny(), rapid.Bool().AsAny(), rapid.Float64().AsAny(),
			rapid.SampledFrom([]string{"", "True", "Running", "Failed", "Always", "LoadBalancer"}).AsAny(),
		}
		if depth > 0 {
			leaves = append(leaves,
				rapid.MapOfN(rapid.SampledFrom(names), value(depth-1), 0, 4).AsAny(),
				rapid.SliceOfN(value(depth-1), 0, 3).AsAny())
		}
		return rapid.OneOf(leaves...)
	}
	rapid.Check(t, func(t *rapid.T) {
		u := &unstructured.Unstructured{Object: map[string]any{
			"spec": value(3).Draw(t, "spec"), "status": value(4).Draw(t, "status"),
		}}
		u.SetGroupVersionKind(rapid.SampledFrom(kinds).Draw(t, "kind"))
		before := u.DeepCopy()
		got, err := New(nil).GetResourceHealth(u)
		if (got == nil) == (err == nil) {
			t.Fatalf("health %+v and error %v", got, err)
		}
		if got != nil && severity(got.Status) == severity(Unknown) && got.Status != Unknown {
			t.Fatalf("health is %q", got.Status)
		}
		if diff := cmp.Diff(before.Object, u.Object); diff != "" {
			t.Fatal(diff)
		}
	})
}

func BenchmarkDeployment(b *testing.B) {
	u := parse(b, "apps/v1 Deployment", `{metadata: {generation: 2}, spec: {replicas: 1}, status: {observedGeneration: 2, replicas: 1, updatedReplicas: 1, availableReplicas: 1,
		conditions: [{type: Available, status: "True"}, {type: Progressing, status: "True"}]}}`)
	a := New(nil)
	for b.Loop() {
		if _, err := a.GetResourceHealth(u); err != nil {
			b.Fatal(err)
		}
	}
}
