// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/weir-gitops/weir/localkube/internal/nodes"
)

var errNotYet = errors.New("not yet")

// template is a pod template with one container. Its short grace period is for
// the namespace controller, which waits half of it between two looks at a
// namespace that is being deleted.
func template(name string, policy corev1.RestartPolicy) corev1.PodTemplateSpec {
	second := int64(1)
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 policy,
			TerminationGracePeriodSeconds: &second,
			InitContainers:                []corev1.Container{{Name: "init", Image: "init:1"}},
			Containers:                    []corev1.Container{{Name: "main", Image: "main:1"}},
		},
	}
}

func failing(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	t.Annotations = map[string]string{nodes.FailAnnotation: "true"}
	return t
}

func selector(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

func createNamespace(t *testing.T, api kubernetes.Interface, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: meta(name)}
	if _, err := api.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// createDeployment creates one of two replicas.
func createDeployment(t *testing.T, api kubernetes.Interface, ns, name string, pod corev1.PodTemplateSpec) {
	t.Helper()
	replicas := int32(2)
	d := &appsv1.Deployment{ObjectMeta: meta(name), Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(name), Template: pod}}
	if _, err := api.AppsV1().Deployments(ns).Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func deploymentAvailable(api kubernetes.Interface, ns, name string) func(context.Context) error {
	return func(ctx context.Context) error {
		d, err := api.AppsV1().Deployments(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue && d.Status.AvailableReplicas == 2 {
				return nil
			}
		}
		return fmt.Errorf("%w: %+v", errNotYet, d.Status)
	}
}

// jobEnded waits for the Job to have the condition.
func jobEnded(api kubernetes.Interface, ns, name string, kind batchv1.JobConditionType) func(context.Context) error {
	return func(ctx context.Context) error {
		job, err := api.BatchV1().Jobs(ns).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, c := range job.Status.Conditions {
			if c.Type == kind && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%w: %+v", errNotYet, job.Status)
	}
}

func createJob(t *testing.T, api kubernetes.Interface, ns, name string, pod corev1.PodTemplateSpec) {
	t.Helper()
	none := int32(0)
	job := &batchv1.Job{ObjectMeta: meta(name), Spec: batchv1.JobSpec{BackoffLimit: &none, Template: pod}}
	if pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		job.Spec.BackoffLimit = nil // the default has to be enough to see it fail
	}
	if _, err := api.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func testWorkloads(t *testing.T, api kubernetes.Interface) {
	const ns = "workloads"
	createNamespace(t, api, ns)
	always, never, onFailure := corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure

	t.Run("a Deployment becomes available", func(t *testing.T) {
		createDeployment(t, api, ns, "web", template("web", always))
		t.Logf("available after %s", eventually(t, 15*time.Second, deploymentAvailable(api, ns, "web")))
	})
	t.Run("a Job completes", func(t *testing.T) {
		createJob(t, api, ns, "never", template("never", never))
		createJob(t, api, ns, "on-failure", template("on-failure", onFailure))
		eventually(t, 15*time.Second, jobEnded(api, ns, "never", batchv1.JobComplete))
		eventually(t, 15*time.Second, jobEnded(api, ns, "on-failure", batchv1.JobComplete))
	})
	t.Run("an annotated Job fails", func(t *testing.T) {
		createJob(t, api, ns, "bad-never", failing(template("bad-never", never)))
		createJob(t, api, ns, "bad-on-failure", failing(template("bad-on-failure", onFailure)))
		eventually(t, 15*time.Second, jobEnded(api, ns, "bad-never", batchv1.JobFailed))
		eventually(t, 15*time.Second, jobEnded(api, ns, "bad-on-failure", batchv1.JobFailed))
	})
	t.Run("an annotated Deployment crashes", func(t *testing.T) {
		createDeployment(t, api, ns, "bad", failing(template("bad", always)))
		eventually(t, 15*time.Second, func(ctx context.Context) error {
			pods, err := api.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=bad"})
			if err != nil {
				return err
			}
			crashing := 0
			for _, pod := range pods.Items {
				for _, c := range pod.Status.ContainerStatuses {
					if c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff" {
						crashing++
					}
				}
			}
			if crashing != 2 {
				return fmt.Errorf("%w: %d of 2 crash", errNotYet, crashing)
			}
			return nil
		})
	})
	t.Run("a StatefulSet and a DaemonSet become ready", func(t *testing.T) { testSets(t, api, ns, template("set", always)) })
	t.Run("a rollout replaces the pods", func(t *testing.T) { testRollout(t, api, ns) })
	t.Run("a namespace goes", func(t *testing.T) {
		if err := api.CoreV1().Namespaces().Delete(t.Context(), ns, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		took := eventually(t, 30*time.Second, func(ctx context.Context) error {
			got, err := api.CoreV1().Namespaces().Get(ctx, ns, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%w: %v, %+v", errNotYet, err, got.Status)
		})
		t.Logf("gone after %s", took)
	})
}

func testSets(t *testing.T, api kubernetes.Interface, ns string, pod corev1.PodTemplateSpec) {
	two := int32(2)
	ss := &appsv1.StatefulSet{ObjectMeta: meta("set"), Spec: appsv1.StatefulSetSpec{Replicas: &two, Selector: selector("set"), Template: pod}}
	if _, err := api.AppsV1().StatefulSets(ns).Create(t.Context(), ss, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod.Labels = map[string]string{"app": "daemon"}
	ds := &appsv1.DaemonSet{ObjectMeta: meta("daemon"), Spec: appsv1.DaemonSetSpec{Selector: selector("daemon"), Template: pod}}
	if _, err := api.AppsV1().DaemonSets(ns).Create(t.Context(), ds, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, func(ctx context.Context) error {
		ss, err := api.AppsV1().StatefulSets(ns).Get(ctx, "set", metav1.GetOptions{})
		if err != nil {
			return err
		}
		ds, err := api.AppsV1().DaemonSets(ns).Get(ctx, "daemon", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ss.Status.ReadyReplicas != 2 || ds.Status.NumberReady != 2 {
			return fmt.Errorf("%w: %d and %d ready", errNotYet, ss.Status.ReadyReplicas, ds.Status.NumberReady)
		}
		return nil
	})
}

// testRollout: the old pods have to go, which needs the nodes to let them.
func testRollout(t *testing.T, api kubernetes.Interface, ns string) {
	d, err := api.AppsV1().Deployments(ns).Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	d.Spec.Template.Spec.Containers[0].Image = "main:2"
	if d, err = api.AppsV1().Deployments(ns).Update(t.Context(), d, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, 15*time.Second, func(ctx context.Context) error {
		pods, err := api.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Spec.Containers[0].Image != "main:2" {
				return fmt.Errorf("%w: %s still runs", errNotYet, pod.Name)
			}
		}
		return deploymentAvailable(api, ns, "web")(ctx)
	})
}
