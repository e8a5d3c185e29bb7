// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// Engine stands in for a GitOps engine: it lets Applications go that have been
// deleted, and does nothing else. Nothing was deployed, so there is nothing to
// remove first.
type Engine struct {
	client client.Client
	fail   func(error)
	turns  chan struct{}

	mu   sync.Mutex
	dead bool
	held map[string]bool // Applications that wait for the engine to come alive
}

// releasesAtOnce bounds how many finalizers are removed at the same time.
const releasesAtOnce = 16

func newEngine(c client.Client, fail func(error)) *Engine {
	return &Engine{client: c, fail: fail, turns: make(chan struct{}, releasesAtOnce), held: make(map[string]bool)}
}

// Die has the engine do nothing any more.
func (e *Engine) Die() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = true
}

// Revive has it work again, beginning with what has waited.
func (e *Engine) Revive(ctx context.Context) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.dead = false
	for name := range e.held {
		go e.release(ctx, name)
	}
	clear(e.held)
}

// saw is told of every version of every Application.
func (e *Engine) saw(ctx context.Context, app *argov1alpha1.Application) {
	if app.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(app, argov1alpha1.ResourcesFinalizer) {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.dead {
		e.held[app.Name] = true
		return
	}
	go e.release(ctx, app.Name)
}

func (e *Engine) release(ctx context.Context, name string) {
	e.turns <- struct{}{}
	defer func() { <-e.turns }()
	app := &argov1alpha1.Application{ObjectMeta: metav1.ObjectMeta{Namespace: EngineNamespace, Name: name}}
	err := e.client.Patch(ctx, app, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if err != nil && !apierrors.IsNotFound(err) && ctx.Err() == nil {
		e.fail(err)
	}
}
