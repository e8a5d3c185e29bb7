// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/store"
)

// addController connects the queue to the two watches.
func (a *Agent) addController() error {
	o := a.options
	c, err := kube.NewController(a.mgr, kube.ControllerOptions{
		Name: "agent", Workers: o.Workers, PerWorkspace: o.PerWorkspace, Metrics: o.Queues, Log: o.Log, Work: work,
	}, a.step)
	if err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(a.mgr.GetCache(), &operationv1alpha1.Operation{}, operationEvents())); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(a.mgr.GetCache(), &argov1alpha1.Application{}, a.applicationEvents())); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(a.mgr.GetCache(), &argov1alpha1.AppProject{}, versionEvents[*argov1alpha1.AppProject](a.engine, projectNames))); err != nil {
		return err
	}
	if err := c.Watch(source.TypedKind(a.mgr.GetCache(), &corev1.Secret{}, versionEvents[*corev1.Secret](a.engine, secretNames))); err != nil {
		return err
	}
	o.Notifier.Subscribe(store.TopicOperation, a.operationChanged)
	return c.Watch(source.TypedFunc[fairq.Key](func(_ context.Context, q kube.Queue) error {
		a.queue.Store(&q)
		return nil
	}))
}

// operationChanged has an operation of this instance carried out as soon as it
// is committed. Before the controller has started there is no need: its CR will
// be in the cache.
func (a *Agent) operationChanged(e store.Event) {
	q := a.queue.Load()
	if q == nil || e.Instance != a.instance.ID || e.State != string(domain.OperationWaiting) {
		return
	}
	a.operate.Notice(e.ResourceType, e.Resource, domain.OperationID(e.Key))
	(*q).Add(fairq.Key{Workspace: string(e.Tenant), Application: e.Resource, Runner: string(e.ResourceType)})
}

// operationEvents: an Operation's arrival is all that matters; its spec does
// not change, and its going is our own doing.
func operationEvents() handler.TypedEventHandler[*operationv1alpha1.Operation, fairq.Key] {
	return handler.TypedFuncs[*operationv1alpha1.Operation, fairq.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*operationv1alpha1.Operation], q kube.Queue) {
			l := e.Object.Labels
			q.Add(fairq.Key{
				Workspace:   l[operationv1alpha1.TenantLabel],
				Application: l[operationv1alpha1.ResourceLabel],
				Runner:      l[operationv1alpha1.ResourceTypeLabel],
			})
		},
	}
}

func (a *Agent) applicationEvents() handler.TypedEventHandler[*argov1alpha1.Application, fairq.Key] {
	observe := func(app *argov1alpha1.Application, q kube.Queue) {
		a.engine.seen(app.Name, version(app))
		q.Add(applicationKey(app, runnerObserve))
		a.enqueueSyncs(app.Labels[argov1alpha1.TenantLabel], app.Labels[argov1alpha1.ApplicationLabel], "")
	}
	return handler.TypedFuncs[*argov1alpha1.Application, fairq.Key]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*argov1alpha1.Application], q kube.Queue) {
			observe(e.Object, q)
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[*argov1alpha1.Application], q kube.Queue) {
			observe(e.ObjectNew, q)
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*argov1alpha1.Application], q kube.Queue) {
			a.engine.ended(e.Object.Name, version(e.Object))
			q.Add(applicationKey(e.Object, runnerObserve))
			// An operation may have waited for just this.
			q.Add(applicationKey(e.Object, string(domain.ResourceApplication)))
			a.enqueueSyncs(e.Object.Labels[argov1alpha1.TenantLabel], e.Object.Labels[argov1alpha1.ApplicationLabel], "")
		},
	}
}

// enqueueSyncs has the syncs of a tenant looked at that wait for an Application,
// or for any where it is empty, but for one.
func (a *Agent) enqueueSyncs(tenant, app, but string) {
	q := a.queue.Load()
	if q == nil {
		return
	}
	for _, id := range a.operate.SyncsOf(domain.TenantID(tenant), domain.ApplicationID(app)) {
		if string(id) != but {
			(*q).Add(fairq.Key{Workspace: tenant, Application: string(id), Runner: string(domain.ResourceSyncOperation)})
		}
	}
}

// versionEvents only note how far the cache is: these objects are ours alone, and
// what somebody else does to them is for the sweep to undo.
func versionEvents[T client.Object](e *engineNamespace, names string) handler.TypedEventHandler[T, fairq.Key] {
	return handler.TypedFuncs[T, fairq.Key]{
		CreateFunc: func(_ context.Context, ev event.TypedCreateEvent[T], _ kube.Queue) {
			e.seen(names+ev.Object.GetName(), versionOf(ev.Object))
		},
		UpdateFunc: func(_ context.Context, ev event.TypedUpdateEvent[T], _ kube.Queue) {
			e.seen(names+ev.ObjectNew.GetName(), versionOf(ev.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, ev event.TypedDeleteEvent[T], _ kube.Queue) {
			e.ended(names+ev.Object.GetName(), versionOf(ev.Object))
		},
	}
}

func applicationKey(app *argov1alpha1.Application, runner string) fairq.Key {
	return fairq.Key{
		Workspace:   app.Labels[argov1alpha1.TenantLabel],
		Application: app.Labels[argov1alpha1.ApplicationLabel],
		Runner:      runner,
	}
}

const (
	// sweepEvery is how often all rows are compared with the engine although
	// nothing asked for it.
	sweepEvery = 30 * time.Minute
	sweepRetry = 2 * time.Second
)

// sweep looks for rows that the engine does not follow: at once after the caches
// are read, and from time to time.
func (a *Agent) sweep(ctx context.Context) error {
	if !a.mgr.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	a.synced.Store(true)
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-wait.C:
		}
		if _, err := a.rows.Sweep(ctx); err != nil {
			a.options.Log.WarnContext(ctx, "sweep will be tried again", "error", err)
			wait.Reset(sweepRetry)
			continue
		}
		wait.Reset(sweepEvery)
	}
}
