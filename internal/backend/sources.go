// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// addController connects the queue to everything that can put a key into it.
func (b *Backend) addController(ctx context.Context) error {
	o := b.options
	c, err := kube.NewController(b.mgr, kube.ControllerOptions{
		Name: "gitopsdeployment", Workers: o.Workers, PerWorkspace: o.PerWorkspace, Metrics: o.Queues, Log: o.Log, Work: work,
	}, b.step)
	if err != nil {
		return err
	}
	if err := c.Watch(source.TypedFunc[fairq.Key](b.captureQueue)); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(b.mgr.GetCache(), &v1alpha1.GitOpsDeployment{}, deploymentEvents())); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(b.mgr.GetCache(), kube.NamespaceMetadata(), b.namespaceEvents())); err != nil {
		return err
	}
	o.Notifier.Subscribe(store.TopicApplicationState, func(e store.Event) {
		b.enqueueUID(ctx, domain.ApplicationID(e.Key))
	})
	o.Notifier.Subscribe(store.TopicOperation, func(e store.Event) { b.operationChanged(ctx, e) })
	return nil
}

// captureQueue lets notifications and sweeps use the controller's queue.
func (b *Backend) captureQueue(_ context.Context, q workqueue.TypedRateLimitingInterface[fairq.Key]) error {
	b.queue.Store(&q)
	close(b.started)
	return nil
}

func deploymentKey(namespace, name string) fairq.Key {
	return fairq.Key{Workspace: namespace, Application: name, Runner: fairq.RunnerDeployment}
}

func (b *Backend) enqueueDeployment(namespace, name string) {
	// Before the controller has started, notifications need not be put in: it
	// begins with every deployment there is. Sweeps, which are about those that are
	// not there any more, wait for it.
	if q := b.queue.Load(); q != nil {
		(*q).Add(deploymentKey(namespace, name))
	}
}

func (b *Backend) enqueueUID(ctx context.Context, id domain.ApplicationID) {
	if cr, ok := b.cluster.deploymentByUID(ctx, id); ok {
		b.enqueueDeployment(cr.Namespace, cr.Name)
	}
}

// deploymentEvents lets through what can change a decision: the spec, the
// deletion, finalizers, or another UID. Our own status writes come back as
// events too, and must cost nothing.
func deploymentEvents() handler.TypedEventHandler[*v1alpha1.GitOpsDeployment, fairq.Key] {
	add := func(cr *v1alpha1.GitOpsDeployment, q workqueue.TypedRateLimitingInterface[fairq.Key]) {
		q.Add(deploymentKey(cr.Namespace, cr.Name))
	}
	return handler.TypedFuncs[*v1alpha1.GitOpsDeployment, fairq.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*v1alpha1.GitOpsDeployment], q workqueue.TypedRateLimitingInterface[fairq.Key]) {
			if e.IsInInitialList && looksSettled(e.Object) {
				q.AddAfter(deploymentKey(e.Object.Namespace, e.Object.Name), settledAfter)
				return
			}
			add(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*v1alpha1.GitOpsDeployment], q workqueue.TypedRateLimitingInterface[fairq.Key]) {
			if matters(e.ObjectOld, e.ObjectNew) {
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*v1alpha1.GitOpsDeployment], q workqueue.TypedRateLimitingInterface[fairq.Key]) {
			add(e.Object, q)
		},
	}
}

// settledAfter is how long a starting backend leaves alone what looks settled,
// so that what was created, changed or deleted while it was away comes first.
const settledAfter = 2 * time.Second

func looksSettled(cr *v1alpha1.GitOpsDeployment) bool {
	return cr.DeletionTimestamp.IsZero() && cr.Status.ObservedGeneration == cr.Generation && !showsError(cr)
}

func showsError(cr *v1alpha1.GitOpsDeployment) bool {
	return slices.ContainsFunc(cr.Status.Conditions, func(c v1alpha1.Condition) bool {
		return c.Type == v1alpha1.ConditionErrorOccurred && c.Status == metav1.ConditionTrue
	})
}

// namespaceEvents has the deployments of a new namespace looked at: one may have
// been taken in while the cache still showed an earlier namespace of that name.
func (b *Backend) namespaceEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, fairq.Key] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, fairq.Key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q kube.Queue) {
			if e.IsInInitialList {
				return
			}
			b.enqueueAll(ctx, client.InNamespace(e.Object.Name))
		},
	}
}

func matters(before, after *v1alpha1.GitOpsDeployment) bool {
	return before.UID != after.UID ||
		before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		!slices.Equal(before.Finalizers, after.Finalizers) ||
		!maps.Equal(before.Annotations, after.Annotations)
}

// operationChanged reacts to what an agent, or a hand, did to an operation row.
func (b *Backend) operationChanged(ctx context.Context, e store.Event) {
	switch domain.OperationState(e.State) {
	case domain.OperationWaiting:
		// Usually this process wrote and announced it a moment ago.
		b.recheckOperation(domain.OperationID(e.Key))
	case domain.OperationCompleted:
		b.armCollection()
		if b.awaitsCompletion(ctx, domain.ApplicationID(e.Resource)) {
			b.enqueueUID(ctx, domain.ApplicationID(e.Resource))
		}
	case domain.OperationFailed, domain.OperationInProgress:
		b.enqueueUID(ctx, domain.ApplicationID(e.Resource))
	}
}

// awaitsCompletion says whether a completed operation changes anything for its
// CR: one that is being deleted can be let go, one that showed an error can show
// that it is resolved. For all others there is nothing to do, and doing nothing is
// what a completed operation should cost.
func (b *Backend) awaitsCompletion(ctx context.Context, id domain.ApplicationID) bool {
	cr, ok := b.cluster.deploymentByUID(ctx, id)
	if !ok {
		return false
	}
	return !cr.DeletionTimestamp.IsZero() || showsError(cr)
}

// recheckAfter is how long the process that wrote an operation has to announce
// it before another one does.
const recheckAfter = 2 * time.Second
