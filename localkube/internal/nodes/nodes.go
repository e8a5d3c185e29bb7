// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

const (
	// renewEvery: three renewals fall into the controller manager's grace
	// period, so that a machine that stalls for a while keeps its nodes.
	renewEvery = 20 * time.Second
	workers    = 4
)

// Simulator plays the kubelets of a number of nodes.
type Simulator struct {
	client  kubernetes.Interface
	version string
	logf    func(format string, args ...any)
	count   int
	hostIPs map[string]string // of our nodes, by name
}

// New makes a simulator of count nodes that report version as their kubelet's.
// The client should have no rate limit of its own. logf hears of requests that
// fail; each of them is tried again.
func New(client kubernetes.Interface, count int, version string, logf func(format string, args ...any)) *Simulator {
	s := &Simulator{client: client, version: version, logf: logf, count: count, hostIPs: map[string]string{}}
	for i := 1; i <= count; i++ {
		s.hostIPs[nodeName(i)] = nodeIP(i)
	}
	return s
}

// Register makes the nodes exist and Ready, and removes those of an earlier
// run that are not wanted any more.
func (s *Simulator) Register(ctx context.Context) error {
	for i := 1; i <= s.count; i++ {
		if err := s.register(ctx, i); err != nil {
			return err
		}
	}
	return s.removeSurplus(ctx)
}

// Run plays until the context ends, and returns when all its goroutines have.
func (s *Simulator) Run(ctx context.Context) error {
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, 10*time.Second))
	factory := informers.NewSharedInformerFactoryWithOptions(s.client, 0,
		informers.WithTransform(stripManagedFields),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = "spec.nodeName!=" // bound to a node, whichever
		}))
	informer := factory.Core().V1().Pods().Informer()
	if _, err := informer.AddEventHandler(enqueueInto(queue)); err != nil {
		return fmt.Errorf("watch pods: %w", err)
	}
	factory.Start(ctx.Done())

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { s.work(ctx, queue, informer.GetStore()) })
	}
	wg.Go(func() { s.renewLoop(ctx) })
	<-ctx.Done()
	queue.ShutDown()
	wg.Wait()
	factory.Shutdown()
	return nil
}

// stripManagedFields drops the largest part of a pod, which nobody here reads.
// The API server takes their absence from an update to mean no change.
func stripManagedFields(obj any) (any, error) {
	if pod, ok := obj.(*corev1.Pod); ok {
		pod.ManagedFields = nil
	}
	return obj, nil
}

// enqueueInto needs no deletions: a pod that has gone needs nothing.
func enqueueInto(queue workqueue.TypedInterface[cache.ObjectName]) cache.ResourceEventHandler {
	add := func(obj any) {
		if name, err := cache.ObjectToName(obj); err == nil {
			queue.Add(name)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, obj any) { add(obj) },
	}
}

func (s *Simulator) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[cache.ObjectName], pods cache.Store) {
	for {
		name, shutdown := queue.Get()
		if shutdown {
			return
		}
		after, err := s.look(ctx, pods, name)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			s.logf("pod %s: %v", name, err)
			queue.AddRateLimited(name)
		default:
			queue.Forget(name)
			if after > 0 {
				queue.AddAfter(name, after)
			}
		}
		queue.Done(name)
	}
}

// look brings one pod a step further.
func (s *Simulator) look(ctx context.Context, pods cache.Store, name cache.ObjectName) (time.Duration, error) {
	obj, exists, err := pods.GetByKey(name.String())
	if err != nil || !exists {
		return 0, err
	}
	pod := obj.(*corev1.Pod)
	hostIP, ours := s.hostIPs[pod.Spec.NodeName]
	if !ours {
		return 0, nil
	}
	todo := next(pod, hostIP, time.Now())
	switch {
	case todo.status != nil:
		pod = pod.DeepCopy()
		pod.Status = *todo.status
		_, err = s.client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	case todo.remove:
		// The UID keeps a pod of the same name that came after this one safe.
		err = s.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			GracePeriodSeconds: new(int64),
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		})
	}
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		err = nil // the watch brings the news: see the package documentation
	}
	return todo.after, err
}

// renewLoop keeps the leases fresh.
func (s *Simulator) renewLoop(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for i := 1; i <= s.count; i++ {
			err := s.renew(ctx, i)
			if apierrors.IsNotFound(err) {
				// Someone deleted the node, and its lease went with it: a node
				// comes back when its kubelet does.
				err = s.register(ctx, i)
			}
			if err != nil && ctx.Err() == nil {
				s.logf("renew the lease of %s: %v", nodeName(i), err)
			}
		}
	}
}

// renew sets the lease's time with a patch, which needs no earlier read.
func (s *Simulator) renew(ctx context.Context, i int) error {
	patch, err := json.Marshal(map[string]any{
		"spec": map[string]any{"renewTime": metav1.NewMicroTime(time.Now())},
	})
	if err != nil {
		return err
	}
	_, err = s.client.CoordinationV1().Leases(leaseNamespace).
		Patch(ctx, nodeName(i), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
