// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/diff"
	"github.com/weir-gitops/weir/internal/engine/health"
	"github.com/weir-gitops/weir/internal/engine/plan"
	"github.com/weir-gitops/weir/internal/engine/render"
	"github.com/weir-gitops/weir/internal/engine/source"
)

// fieldManager is the name under which the engine owns fields.
const fieldManager = "weir-engine"

// comparison is an application as Git has it and as the cluster has it.
type comparison struct {
	revision   string
	sourceType string
	to         *destination
	// desired is what Git says, marked as the application's; live is what of the
	// application is in the cluster, without contents.
	desired, live []*plan.Object
	inSync        map[plan.Key]bool
	resources     []argo.ResourceStatus
	health        argo.HealthStatus
}

// problem is why there is no comparison: a condition of the Application.
type problem struct {
	kind    string
	message string
}

func (p *problem) Error() string { return p.message }

// The types of conditions, as Argo CD has them.
const (
	conditionInvalidSpec = "InvalidSpecError"
	conditionComparison  = "ComparisonError"
)

// desired resolves, reads and renders what an Application asks for.
func (e *Engine) desired(ctx context.Context, app *argo.Application, revision string, anew bool) (*render.Result, string, error) {
	repo, err := e.repository(ctx, app)
	if err != nil {
		return nil, "", err
	}
	commit, err := e.commits.resolve(ctx, e.options.Source, app.UID, repo, revision, anew)
	if err != nil {
		return nil, "", &problem{conditionComparison, err.Error()}
	}
	tree, err := e.options.Source.Tree(ctx, repo, commit)
	if err != nil {
		return nil, commit, &problem{conditionComparison, err.Error()}
	}
	src := app.Spec.Source
	request, err := render.Gather(ctx, tree, render.Spec{
		Path: src.Path, Directory: src.Directory, Kustomize: src.Kustomize, Helm: src.Helm,
		Name: app.Name, Namespace: app.Spec.Destination.Namespace,
	}, render.Limits{})
	if err != nil {
		return nil, commit, &problem{conditionComparison, err.Error()}
	}
	rendered, err := e.options.Render.Render(ctx, request)
	if err != nil {
		return nil, commit, &problem{conditionComparison, err.Error()}
	}
	return rendered, commit, nil
}

// compare compares an application with the cluster.
func (e *Engine) compare(ctx context.Context, app *argo.Application, revision string, anew bool) (*comparison, error) {
	if app.Spec.Source == nil {
		return nil, &problem{conditionInvalidSpec, "spec.source is missing"}
	}
	project, err := e.project(ctx, app)
	if err != nil {
		return nil, err
	}
	to, err := e.destinations.get(ctx, app, project)
	if err != nil {
		return nil, &problem{conditionInvalidSpec, err.Error()}
	}
	rendered, commit, err := e.desired(ctx, app, revision, anew)
	if err != nil {
		return nil, err
	}
	c := &comparison{revision: commit, sourceType: string(rendered.Type), to: to, inSync: map[plan.Key]bool{}}
	comparer, err := diff.New(diff.Options{Manager: fieldManager, Ignore: app.Spec.IgnoreDifferences})
	if err != nil {
		return nil, &problem{conditionInvalidSpec, err.Error()}
	}
	kinds := kindsOf{}
	for _, o := range rendered.Objects {
		if err := e.compareObject(ctx, app, project, comparer, c, o, kinds); err != nil {
			return nil, err
		}
	}
	if err := e.addExtra(ctx, app, c, kinds); err != nil {
		return nil, err
	}
	c.health = aggregate(c.resources)
	return c, nil
}

// kindsOf are the kinds and namespaces that an application has objects of.
type kindsOf map[watched]*meta.RESTMapping

func (e *Engine) compareObject(
	ctx context.Context, app *argo.Application, project *argo.AppProject, comparer *diff.Comparer, c *comparison, rendered render.Object, kinds kindsOf,
) error {
	want := rendered.DeepCopy()
	mapping, err := c.to.mapping(want.GroupVersionKind())
	if err != nil {
		return &problem{conditionComparison, fmt.Sprintf("%s: the cluster does not know %s", rendered.Source(), want.GroupVersionKind())}
	}
	namespaced := mapping.Scope.Name() != meta.RESTScopeNameRoot
	switch {
	case !namespaced:
		want.SetNamespace("")
	case want.GetNamespace() == "":
		want.SetNamespace(app.Spec.Destination.Namespace)
	}
	if refused := checkObject(project, app.Spec.Destination.Namespace, want.GetNamespace(), want.GetName(), want.GroupVersionKind().GroupKind(), namespaced); refused != "" {
		return &problem{conditionInvalidSpec, rendered.Source() + ": " + refused}
	}
	track(app.Name, want)
	object := plan.NewObject(want, rendered.Source())
	c.desired = append(c.desired, object)
	if _, hook := want.GetAnnotations()["argocd.argoproj.io/hook"]; hook {
		return nil
	}
	kinds[watched{mapping.Resource, want.GetNamespace()}] = mapping
	equal, status, err := e.judge(ctx, c.to, mapping, comparer, want)
	if err != nil {
		return err
	}
	c.inSync[object.Key()] = equal
	sync := argo.SyncStatusSynced
	if !equal {
		sync = argo.SyncStatusOutOfSync
	}
	c.resources = append(c.resources, resourceStatus(want, sync, status, false))
	return nil
}

func resourceStatus(o *unstructured.Unstructured, sync argo.SyncStatusCode, status *health.HealthStatus, extra bool) argo.ResourceStatus {
	kind := o.GroupVersionKind()
	r := argo.ResourceStatus{
		Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: o.GetNamespace(), Name: o.GetName(), Status: sync, RequiresPruning: extra,
	}
	if status != nil {
		r.Health = &argo.HealthStatus{Status: status.Status, Message: status.Message}
	}
	return r
}

// judge says whether an object is live as it should be, and how well it runs. What
// was judged before in this version is not read again.
func (e *Engine) judge(ctx context.Context, to *destination, mapping *meta.RESTMapping, comparer *diff.Comparer, want *unstructured.Unstructured) (bool, *health.HealthStatus, error) {
	informer, err := to.watched.open(ctx, mapping.Resource, want.GetNamespace())
	if err != nil {
		return false, nil, err
	}
	hash, err := comparer.Hash(want)
	if err != nil {
		return false, nil, err
	}
	key := want.GetName()
	if want.GetNamespace() != "" {
		key = want.GetNamespace() + "/" + key
	}
	if seen, known, _ := informer.GetStore().GetByKey(key); known {
		m := seen.(*metav1.PartialObjectMetadata)
		if status, judged := e.healths.get(m.UID, m.ResourceVersion); judged && e.equals.Equal(hash, m.UID, m.ResourceVersion) {
			return true, status, nil
		}
	}
	live, err := scoped(to.client, mapping, want.GetNamespace()).Get(ctx, want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, &health.HealthStatus{Status: health.Missing}, nil
	}
	if err != nil {
		return false, nil, fmt.Errorf("read %s %s: %w", want.GetKind(), want.GetName(), err)
	}
	result, err := comparer.Compare(want, live)
	if err != nil {
		return false, nil, &problem{conditionComparison, err.Error()}
	}
	status, err := e.options.Health.GetResourceHealth(live)
	if err != nil {
		status = &health.HealthStatus{Status: health.Unknown, Message: err.Error()}
	}
	e.healths.put(live.GetUID(), live.GetResourceVersion(), status)
	if result.Equal {
		e.equals.Add(hash, live.GetUID(), live.GetResourceVersion())
	}
	return result.Equal, status, nil
}

func scoped(client dynamic.Interface, mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource)
	}
	return client.Resource(mapping.Resource).Namespace(namespace)
}

// addExtra finds what is the application's own and no longer in Git: among the
// kinds that it has now, and those that its status speaks of.
func (e *Engine) addExtra(ctx context.Context, app *argo.Application, c *comparison, kinds kindsOf) error {
	for _, r := range app.Status.Resources {
		gvk := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		mapping, err := c.to.mapping(gvk)
		if err != nil {
			continue // A kind that is gone has no objects.
		}
		kinds[watched{mapping.Resource, r.Namespace}] = mapping
	}
	wanted := map[plan.Key]bool{}
	for _, o := range c.desired {
		wanted[o.Key()] = true
	}
	for of, mapping := range kinds {
		informer, err := c.to.watched.open(ctx, of.resource, of.namespace)
		if err != nil {
			return err
		}
		ours, err := informer.GetIndexer().ByIndex(byApplication, app.Name)
		if err != nil {
			return err
		}
		for _, o := range ours {
			m := o.(*metav1.PartialObjectMetadata)
			if !owns(app.Name, mapping.GroupVersionKind.GroupKind(), m) {
				continue
			}
			live := liveObject(m, mapping)
			c.live = append(c.live, live)
			if !wanted[live.Key()] && m.DeletionTimestamp.IsZero() {
				if _, hook := m.Annotations["argocd.argoproj.io/hook"]; !hook {
					c.resources = append(c.resources, resourceStatus(live.Unstructured(), argo.SyncStatusOutOfSync, nil, true))
				}
			}
		}
	}
	return nil
}

// liveObject is a live object without its contents.
func liveObject(m *metav1.PartialObjectMetadata, mapping *meta.RESTMapping) *plan.Object {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetGroupVersionKind(mapping.GroupVersionKind)
	o.SetNamespace(m.Namespace)
	o.SetName(m.Name)
	o.SetUID(m.UID)
	o.SetLabels(m.Labels)
	o.SetAnnotations(m.Annotations)
	o.SetDeletionTimestamp(m.DeletionTimestamp)
	return plan.NewObject(o, "live")
}

// aggregate is the application's health: the worst of its resources'.
func aggregate(resources []argo.ResourceStatus) argo.HealthStatus {
	worst := argo.HealthStatus{Status: argo.HealthStatusHealthy}
	for _, r := range resources {
		if r.Health != nil && !r.RequiresPruning && health.Worse(r.Health.Status, worst.Status) {
			worst = argo.HealthStatus{Status: r.Health.Status, Message: r.Health.Message}
			if worst.Message != "" {
				worst.Message = fmt.Sprintf("%s %s: %s", r.Kind, r.Name, worst.Message)
			}
		}
	}
	return worst
}

// healths remembers how well objects ran, by their version.
type healths struct {
	mu    sync.Mutex
	known map[types.UID]known
}

type known struct {
	version string
	status  *health.HealthStatus
}

// mostKnown bounds the memory; past it everything is judged anew, once.
const mostKnown = 200_000

func (h *healths) get(uid types.UID, version string) (*health.HealthStatus, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k, ok := h.known[uid]
	return k.status, ok && k.version == version
}

func (h *healths) put(uid types.UID, version string, status *health.HealthStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.known == nil || len(h.known) > mostKnown {
		h.known = map[types.UID]known{}
	}
	h.known[uid] = known{version, status}
}

// commits remembers which commit a revision was, so that a change in the cluster
// does not ask Git.
type commits struct {
	every time.Duration
	mu    sync.Mutex
	known map[types.UID]resolved
}

type resolved struct {
	question string
	commit   string
	at       time.Time
}

func (c *commits) resolve(ctx context.Context, from *source.Cache, app types.UID, repo source.Repo, revision string, anew bool) (string, error) {
	question := repo.URL + " " + revision
	c.mu.Lock()
	last, known := c.known[app]
	c.mu.Unlock()
	if known && !anew && last.question == question && time.Since(last.at) < c.every {
		return last.commit, nil
	}
	commit, err := from.Resolve(ctx, repo, revision)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known == nil {
		c.known = map[types.UID]resolved{}
	}
	c.known[app] = resolved{question, commit, time.Now()}
	return commit, nil
}

func (c *commits) forget(app types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, app)
}
