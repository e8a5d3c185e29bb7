// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/engine/plan"
)

// written is an object that a step has written or deleted.
type written struct {
	step *plan.Step
	api  dynamic.ResourceInterface
	name string
	uid  types.UID
	gone bool
}

// errNoKind says that the cluster does not know a kind, which a CustomResourceDefinition
// of the same plan may still change: the mapper is asked anew each time.
var errNoKind = errors.New("the cluster does not know this kind")

// do does one step.
func (c *Cluster) do(ctx context.Context, phase plan.PhaseName, step *plan.Step) (*written, Result) {
	result := Result{Key: step.Key, Phase: phase, Status: argov1alpha1.ResultSynced, Message: step.Reason}
	if step.Action == plan.Skip {
		result.Status = argov1alpha1.ResultPruneSkipped
		return nil, result
	}
	fail := func(err error) (*written, Result) {
		result.Status, result.Message = argov1alpha1.ResultSyncFailed, explain(err)
		return nil, result
	}
	api, err := c.resource(step)
	if err != nil {
		return fail(err)
	}
	w := &written{step: step, api: api, name: step.Key.Name}
	content := step.Object.Unstructured()
	switch step.Action {
	case plan.Prune, plan.DeleteHook:
		w.uid, w.gone = content.GetUID(), true
		if err := remove(ctx, api, step.Key.Name, w.uid); err != nil {
			return fail(err)
		}
		result.Status, result.Message = argov1alpha1.ResultPruned, "deleted"
		return w, result
	case plan.RunHook:
		result.Hook = argov1alpha1.OperationRunning
		w.uid, err = c.createHook(ctx, api, content)
	case plan.Replace:
		w.uid, err = c.replace(ctx, api, content, step.Force)
	default:
		w.uid, err = c.apply(ctx, api, content, step.Force)
	}
	if err != nil {
		return fail(err)
	}
	result.Message = "written"
	return w, result
}

func (c *Cluster) resource(step *plan.Step) (dynamic.ResourceInterface, error) {
	kind := step.Object.Unstructured().GroupVersionKind()
	mapping, err := c.Mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("%w: %s", errNoKind, kind)
	}
	if err != nil {
		return nil, err
	}
	return scoped(c.Client, mapping, step.Key.Namespace), nil
}

func scoped(client dynamic.Interface, mapping *meta.RESTMapping, namespace string) dynamic.ResourceInterface {
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return client.Resource(mapping.Resource)
	}
	return client.Resource(mapping.Resource).Namespace(namespace)
}

// apply makes an object what Git says. An object whose fields cannot be changed in
// place is deleted and made again only where that is allowed.
func (c *Cluster) apply(ctx context.Context, api dynamic.ResourceInterface, want *unstructured.Unstructured, force bool) (types.UID, error) {
	options := metav1.ApplyOptions{FieldManager: c.Manager, Force: true}
	have, err := api.Apply(ctx, want.GetName(), bare(want), options)
	if apierrors.IsInvalid(err) && force {
		if err := c.recreate(ctx, api, want.GetName()); err != nil {
			return "", err
		}
		have, err = api.Apply(ctx, want.GetName(), bare(want), options)
	}
	if err != nil {
		return "", err
	}
	return have.GetUID(), nil
}

// bare leaves out what only a server sets.
func bare(o *unstructured.Unstructured) *unstructured.Unstructured {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	o.SetUID("")
	return o
}

func (c *Cluster) replace(ctx context.Context, api dynamic.ResourceInterface, want *unstructured.Unstructured, force bool) (types.UID, error) {
	have, err := api.Get(ctx, want.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		made, err := api.Create(ctx, bare(want), metav1.CreateOptions{FieldManager: c.Manager})
		return uidOf(made), err
	}
	if err != nil {
		return "", err
	}
	put := bare(want)
	put.SetResourceVersion(have.GetResourceVersion())
	made, err := api.Update(ctx, put, metav1.UpdateOptions{FieldManager: c.Manager})
	if apierrors.IsInvalid(err) && force {
		if err := c.recreate(ctx, api, want.GetName()); err != nil {
			return "", err
		}
		made, err = api.Create(ctx, bare(want), metav1.CreateOptions{FieldManager: c.Manager})
	}
	return uidOf(made), err
}

func uidOf(o *unstructured.Unstructured) types.UID {
	if o == nil {
		return ""
	}
	return o.GetUID()
}

// recreate deletes an object and waits until it is gone.
func (c *Cluster) recreate(ctx context.Context, api dynamic.ResourceInterface, name string) error {
	have, err := api.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := remove(ctx, api, name, have.GetUID()); err != nil {
		return err
	}
	return await(ctx, api, name, func(o *unstructured.Unstructured) bool { return o == nil || o.GetUID() != have.GetUID() })
}

// createHook begins a hook, or finds the one that an interrupted run has begun.
func (c *Cluster) createHook(ctx context.Context, api dynamic.ResourceInterface, want *unstructured.Unstructured) (types.UID, error) {
	made, err := api.Create(ctx, bare(want), metav1.CreateOptions{FieldManager: c.Manager})
	if apierrors.IsAlreadyExists(err) {
		made, err = api.Get(ctx, want.GetName(), metav1.GetOptions{})
	}
	return uidOf(made), err
}

// remove deletes one very object. That it is gone, or another by now, is what was
// wanted.
func remove(ctx context.Context, api dynamic.ResourceInterface, name string, uid types.UID) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	if uid != "" {
		options.Preconditions = &metav1.Preconditions{UID: &uid}
	}
	err := api.Delete(ctx, name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// explain puts a refusal into words. An API server's own are good, and about the
// tenant's own objects.
func explain(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}
