// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
)

// floorNamespace is one that no agent works in. A GitOpsDeployment there would be
// served all the same, so the bare client makes none.
const floorNamespace = "bench-floor"

// Floor is the bare client: it makes the writes that truth flowing down and status
// flowing up cannot do without, one after the other, on objects of the same kinds
// and sizes, and does nothing else.
type Floor struct {
	client  client.WithWatch
	board   *Board
	scratch *scratch
	stop    context.CancelFunc
	count   int

	// application and credential are what statuses are written to.
	application *argov1alpha1.Application
	credential  *unstructured.Unstructured
}

// Part is one step of the bare client, and how long it took.
type Part struct {
	Name string
	Took time.Duration
}

// Total adds the steps up.
func Total(parts []Part) time.Duration {
	var all time.Duration
	for _, p := range parts {
		all += p.Took
	}
	return all
}

// NewFloor makes a bare client.
func (r *Rig) NewFloor(ctx context.Context) (*Floor, error) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: floorNamespace}}
	if err := r.Client.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	f := &Floor{client: r.Client, board: r.Board}
	var err error
	if f.scratch, err = r.openScratch(ctx); err != nil {
		return nil, err
	}
	watching, cancel := context.WithCancel(ctx)
	f.stop = cancel
	for _, list := range []client.ObjectList{
		&operationv1alpha1.OperationList{}, &argov1alpha1.ApplicationList{}, floorList(),
	} {
		if err := follow(watching, r.Client, r.options.Fail, list, f.saw, client.InNamespace(floorNamespace)); err != nil {
			return nil, errors.Join(err, f.Close(ctx))
		}
	}
	if err := f.prepareStatus(ctx); err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	return f, nil
}

// saw posts what names an object before it is written: its name, and for a
// status something unique in it.
func (f *Floor) saw(_ watch.EventType, o client.Object, at time.Time) {
	f.board.see(floorSight(o), at)
}

func (f *Floor) next() string {
	f.count++
	return fmt.Sprintf("floor-%d", f.count)
}

// Close takes down the bare client and what it made.
func (f *Floor) Close(ctx context.Context) error {
	f.stop()
	err := f.scratch.conn.Close(ctx)
	credentials := &unstructured.Unstructured{}
	credentials.SetGroupVersionKind(floorKind())
	for _, o := range []client.Object{&operationv1alpha1.Operation{}, &argov1alpha1.Application{}, credentials} {
		err = errors.Join(err, f.client.DeleteAllOf(ctx, o, client.InNamespace(floorNamespace)))
	}
	return err
}

// Down is the floor of truth flowing down: the rows are committed, the Operation is
// created and delivered, the row is read, the Application is created and delivered.
func (f *Floor) Down(ctx context.Context) ([]Part, error) {
	name := f.next()
	operation, application := floorOperation(name), floorApplication(name)
	return timed(
		work{"commit", func() error { return f.scratch.commit(ctx, name, application.Spec) }},
		work{"Operation written and delivered", func() error { return f.create(ctx, operation) }},
		work{"read", func() error { return f.scratch.read(ctx, name) }},
		work{"Application written and delivered", func() error { return f.create(ctx, application) }},
	)
}

// Up is the floor of status flowing up: the engine's status is written and
// delivered, the state is committed, it is read, the tenant's status is written
// and delivered.
//
// The patch is one that sets the status of an Application to the revision.
func (f *Floor) Up(ctx context.Context, revision string, patch client.Patch) ([]Part, error) {
	return timed(
		work{"Application status written and delivered", func() error { return f.patchStatus(ctx, revision, patch) }},
		work{"commit", func() error { return f.scratch.commit(ctx, f.application.Name, f.application.Status) }},
		work{"read", func() error { return f.scratch.read(ctx, f.application.Name) }},
		work{"CR status written and delivered", func() error { return f.updateStatus(ctx, revision) }},
	)
}

type work struct {
	name string
	do   func() error
}

func timed(all ...work) ([]Part, error) {
	parts := make([]Part, 0, len(all))
	for _, w := range all {
		start := time.Now()
		if err := w.do(); err != nil {
			return nil, fmt.Errorf("floor, %s: %w", w.name, err)
		}
		parts = append(parts, Part{w.name, time.Since(start)})
	}
	return parts, nil
}

// create writes an object and waits until the watch has delivered it.
func (f *Floor) create(ctx context.Context, o client.Object) error {
	return f.delivered(ctx, o, func() error { return f.client.Create(ctx, o) })
}

// delivered runs a write and waits until the watch has shown it. What is to be
// written has to be in the object before.
func (f *Floor) delivered(ctx context.Context, o client.Object, write func() error) error {
	seen := f.board.Expect(floorSight(o))
	if err := write(); err != nil {
		return err
	}
	_, err := seen.Wait(ctx)
	return err
}
