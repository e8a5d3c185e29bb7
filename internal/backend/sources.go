// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// tenantKinds are the kinds that tenants write.
func tenantKinds() []client.Object {
	return []client.Object{
		&v1alpha1.GitOpsDeployment{}, &v1alpha1.GitOpsDeploymentSyncRun{},
		&v1alpha1.GitOpsDeploymentManagedEnvironment{}, &v1alpha1.GitOpsDeploymentRepositoryCredential{},
	}
}

func addIndexes(ctx context.Context, c cache.Cache) error {
	for _, kind := range tenantKinds() {
		if err := c.IndexField(ctx, kind, uidIndex, indexUID); err != nil {
			return fmt.Errorf("index %T: %w", kind, err)
		}
	}
	if err := c.IndexField(ctx, &v1alpha1.GitOpsDeployment{}, environmentIndex, indexEnvironment); err != nil {
		return fmt.Errorf("index GitOpsDeployments: %w", err)
	}
	if err := c.IndexField(ctx, &v1alpha1.GitOpsDeploymentSyncRun{}, deploymentIndex, indexDeployment); err != nil {
		return fmt.Errorf("index GitOpsDeploymentSyncRuns: %w", err)
	}
	return nil
}

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
	if err := errors.Join(
		c.Watch(source.TypedKind(b.mgr.GetCache(), &v1alpha1.GitOpsDeployment{}, b.deploymentEvents())),
		c.Watch(source.TypedKind(b.mgr.GetCache(), &v1alpha1.GitOpsDeploymentSyncRun{}, crEvents[*v1alpha1.GitOpsDeploymentSyncRun](fairq.RunnerSyncRun))),
		c.Watch(source.TypedKind(b.mgr.GetCache(), &v1alpha1.GitOpsDeploymentManagedEnvironment{},
			roomMaking[*v1alpha1.GitOpsDeploymentManagedEnvironment](b, runnerEnvironment, &v1alpha1.GitOpsDeploymentManagedEnvironmentList{}))),
		c.Watch(source.TypedKind(b.mgr.GetCache(), &v1alpha1.GitOpsDeploymentRepositoryCredential{},
			roomMaking[*v1alpha1.GitOpsDeploymentRepositoryCredential](b, runnerCredential, &v1alpha1.GitOpsDeploymentRepositoryCredentialList{}))),
		c.Watch(source.TypedKind(b.mgr.GetCache(), kube.NamespaceMetadata(), b.namespaceEvents())),
	); err != nil {
		return err
	}
	o.Notifier.Subscribe(store.TopicApplicationState, func(e store.Event) {
		b.enqueueUID(ctx, domain.ApplicationID(e.Key))
	})
	o.Notifier.Subscribe(store.TopicSyncOperation, func(e store.Event) {
		b.enqueueResource(ctx, domain.ResourceSyncOperation, e.Key)
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

// enqueue puts a key into the queue. Before the controller has started,
// notifications need not be put in: it begins with every CR there is. Sweeps,
// which are about those that are not there any more, wait for it.
func (b *Backend) enqueue(key fairq.Key) {
	if q := b.queue.Load(); q != nil {
		(*q).Add(key)
	}
}

func (b *Backend) enqueueDeployment(namespace, name string) {
	b.enqueue(deploymentKey(namespace, name))
}

func (b *Backend) enqueueUID(ctx context.Context, id domain.ApplicationID) {
	b.enqueueResource(ctx, domain.ResourceApplication, string(id))
}

// enqueueResource has the CR looked at that a row stands for, where there is one.
func (b *Backend) enqueueResource(ctx context.Context, t domain.ResourceType, id string) {
	var list client.ObjectList
	var runner string
	switch t {
	case domain.ResourceApplication:
		list, runner = &v1alpha1.GitOpsDeploymentList{}, fairq.RunnerDeployment
	case domain.ResourceSyncOperation:
		list, runner = &v1alpha1.GitOpsDeploymentSyncRunList{}, fairq.RunnerSyncRun
	case domain.ResourceManagedEnvironment:
		list, runner = &v1alpha1.GitOpsDeploymentManagedEnvironmentList{}, runnerEnvironment
	case domain.ResourceRepositoryCredential:
		list, runner = &v1alpha1.GitOpsDeploymentRepositoryCredentialList{}, runnerCredential
	default:
		return
	}
	b.enqueueListed(ctx, list, runner, client.MatchingFields{uidIndex: id})
}

// enqueueListed has all CRs looked at that the cache has of a kind.
func (b *Backend) enqueueListed(ctx context.Context, list client.ObjectList, runner string, which ...client.ListOption) {
	if err := b.cluster.cached.List(ctx, list, append(which, client.UnsafeDisableDeepCopy)...); err != nil {
		b.options.Log.WarnContext(ctx, "cannot list from the cache", "error", err)
		return
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		if cr, isObject := o.(client.Object); isObject {
			b.enqueue(fairq.Key{Workspace: cr.GetNamespace(), Application: cr.GetName(), Runner: runner})
		}
		return nil
	})
}

// enqueueKind has a name of a kind looked at.
func (b *Backend) enqueueKind(kind store.CRKind, namespace, name string) {
	runner := fairq.RunnerSyncRun
	switch kind {
	case store.KindEnvironment:
		runner = runnerEnvironment
	case store.KindCredential:
		runner = runnerCredential
	case store.KindSyncRun:
	}
	b.enqueue(fairq.Key{Workspace: namespace, Application: name, Runner: runner})
}

// enqueueSyncRunsOf wakes the runs of a deployment that have not begun.
func (b *Backend) enqueueSyncRunsOf(ctx context.Context, namespace, name string) {
	var runs v1alpha1.GitOpsDeploymentSyncRunList
	if err := b.cluster.cached.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{deploymentIndex: name}, client.UnsafeDisableDeepCopy); err != nil {
		b.options.Log.WarnContext(ctx, "cannot list from the cache", "error", err)
		return
	}
	for _, run := range runs.Items {
		if run.Status.StartedAt == nil && run.Status.FinishedAt == nil {
			b.enqueue(fairq.Key{Workspace: namespace, Application: run.Name, Runner: fairq.RunnerSyncRun})
		}
	}
}

// crEvents lets through what can change a decision: the spec, the deletion,
// finalizers, annotations, or another UID. Our own status writes come back as
// events too, and must cost nothing.
func crEvents[T client.Object](runner string) handler.TypedFuncs[T, fairq.Key] {
	add := func(cr T, q kube.Queue) {
		q.Add(fairq.Key{Workspace: cr.GetNamespace(), Application: cr.GetName(), Runner: runner})
	}
	return handler.TypedFuncs[T, fairq.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[T], q kube.Queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[T], q kube.Queue) {
			if matters(e.ObjectOld, e.ObjectNew) {
				add(e.ObjectNew, q)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[T], q kube.Queue) { add(e.Object, q) },
	}
}

// roomMaking are the events of any CR, with one more: the end of one lets in
// another of the namespace that the quota had kept out. There are few of these
// kinds in a namespace, so all of them are looked at.
func roomMaking[T client.Object](b *Backend, runner string, kind client.ObjectList) handler.TypedEventHandler[T, fairq.Key] {
	events := crEvents[T](runner)
	deleted := events.DeleteFunc
	events.DeleteFunc = func(ctx context.Context, e event.TypedDeleteEvent[T], q kube.Queue) {
		deleted(ctx, e, q)
		list, isList := kind.DeepCopyObject().(client.ObjectList)
		if isList {
			b.enqueueListed(ctx, list, runner, client.InNamespace(e.Object.GetNamespace()))
		}
	}
	return events
}

// deploymentEvents are those of any CR, with two more: what a starting backend
// finds settled waits, and the end of a deployment lets in one that the quota had
// kept out.
func (b *Backend) deploymentEvents() handler.TypedEventHandler[*v1alpha1.GitOpsDeployment, fairq.Key] {
	events := crEvents[*v1alpha1.GitOpsDeployment](fairq.RunnerDeployment)
	created, deleted := events.CreateFunc, events.DeleteFunc
	events.CreateFunc = func(ctx context.Context, e event.TypedCreateEvent[*v1alpha1.GitOpsDeployment], q kube.Queue) {
		if e.IsInInitialList && looksSettled(e.Object) {
			q.AddAfter(deploymentKey(e.Object.Namespace, e.Object.Name), settledAfter)
			return
		}
		created(ctx, e, q)
	}
	events.DeleteFunc = func(ctx context.Context, e event.TypedDeleteEvent[*v1alpha1.GitOpsDeployment], q kube.Queue) {
		deleted(ctx, e, q)
		b.enqueueRefused(ctx, e.Object.Namespace)
	}
	return events
}

// enqueueRefused has the deployments of a namespace looked at that show an error.
func (b *Backend) enqueueRefused(ctx context.Context, namespace string) {
	var all v1alpha1.GitOpsDeploymentList
	if err := b.cluster.cached.List(ctx, &all, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		b.options.Log.WarnContext(ctx, "cannot list from the cache", "error", err)
		return
	}
	for i := range all.Items {
		if showsError(&all.Items[i]) {
			b.enqueueDeployment(namespace, all.Items[i].Name)
		}
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
// And so are those of a namespace whose annotations, and with them its quotas, are
// others now.
func (b *Backend) namespaceEvents() handler.TypedEventHandler[*metav1.PartialObjectMetadata, fairq.Key] {
	return handler.TypedFuncs[*metav1.PartialObjectMetadata, fairq.Key]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*metav1.PartialObjectMetadata], q kube.Queue) {
			if e.IsInInitialList {
				return
			}
			b.enqueueAll(ctx, client.InNamespace(e.Object.Name))
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*metav1.PartialObjectMetadata], _ kube.Queue) {
			if !maps.Equal(e.ObjectOld.Annotations, e.ObjectNew.Annotations) {
				b.enqueueAll(ctx, client.InNamespace(e.ObjectNew.Name))
			}
		},
	}
}

func matters(before, after client.Object) bool {
	return before.GetUID() != after.GetUID() ||
		before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers()) ||
		!maps.Equal(before.GetAnnotations(), after.GetAnnotations())
}

// operationChanged reacts to what an agent, or a hand, did to an operation row.
func (b *Backend) operationChanged(ctx context.Context, e store.Event) {
	switch domain.OperationState(e.State) {
	case domain.OperationWaiting:
		// Usually this process wrote and announced it a moment ago.
		b.recheckOperation(domain.OperationID(e.Key))
	case domain.OperationCompleted:
		b.armCollection()
		if e.ResourceType != domain.ResourceApplication || b.awaitsCompletion(ctx, domain.ApplicationID(e.Resource)) {
			b.enqueueResource(ctx, e.ResourceType, e.Resource)
		}
	case domain.OperationFailed, domain.OperationInProgress:
		b.enqueueResource(ctx, e.ResourceType, e.Resource)
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
