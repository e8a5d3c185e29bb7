// SPDX-License-Identifier: Apache-2.0

// Package outbox turns committed Operation rows into Operation CRs, which is
// how agents learn of them.
//
// The row is written in the same transaction as the change that it is about, so
// it cannot be forgotten; the CR is written after that, so it can. Three things
// find a row whose CR is missing:
//
//   - the step that wrote it, when it runs again,
//   - Scan, at once when the backend starts and from time to time,
//   - Check, some moments after a notification says that a row waits.
//
// Creating a CR that exists is harmless and announcing twice is too, because an
// operation prescribes nothing: the agent looks at the rows as they are.
package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/recent"
	"github.com/weir-gitops/weir/internal/store"
)

// Store is what the outbox reads.
type Store interface {
	store.Engines
	Operation(ctx context.Context, id domain.OperationID) (store.Operation, error)
	Unfinished(ctx context.Context, instance domain.InstanceID, after domain.OperationID, limit int) ([]store.Operation, error)
}

// Outbox announces operations.
type Outbox struct {
	Client client.Client
	Store  Store
	Log    *slog.Logger

	mu        sync.Mutex
	instances map[domain.InstanceID]store.Instance
	// announced spares a look at rows that this process wrote and announced itself.
	announced recent.Set[domain.OperationID]
}

// Announce creates the Operation CR for a row, unless this process did so
// lately.
func (o *Outbox) Announce(ctx context.Context, op store.Operation) error {
	if o.announced.Has(op.ID) {
		return nil
	}
	return o.create(ctx, op)
}

func (o *Outbox) create(ctx context.Context, op store.Operation) error {
	instance, err := o.instance(ctx, op.Instance)
	if err != nil {
		return err
	}
	cr := &operationv1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: instance.Namespace,
			Name:      domain.OperationObjectName(op.ID),
			Labels: map[string]string{
				operationv1alpha1.TenantLabel:       string(op.Tenant),
				operationv1alpha1.ResourceTypeLabel: string(op.ResourceType),
				operationv1alpha1.ResourceLabel:     op.ResourceID,
			},
		},
		Spec: operationv1alpha1.OperationSpec{OperationID: string(op.ID)},
	}
	if err := o.Client.Create(ctx, cr); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	o.announced.Add(op.ID)
	return nil
}

// Check announces one row if it still waits and nobody has announced it.
func (o *Outbox) Check(ctx context.Context, id domain.OperationID) error {
	if o.announced.Has(id) {
		return nil
	}
	op, err := o.Store.Operation(ctx, id)
	if err != nil || op.State.Final() {
		return ignoreGone(err)
	}
	o.Log.InfoContext(ctx, "outbox: announcing an operation that nobody had announced", "operation", id, "tenant", op.Tenant)
	return o.Announce(ctx, op)
}

// scanPage bounds how many rows a scan holds at a time.
const scanPage = 500

// Scan creates the CR of every unfinished row, also of those announced before:
// somebody may have removed one by hand. Unfinished rows are few, and agents take
// the repetition lightly.
func (o *Outbox) Scan(ctx context.Context) error {
	var after domain.OperationID
	var failed error
	for {
		page, err := o.Store.Unfinished(ctx, "", after, scanPage)
		if err != nil {
			return errors.Join(failed, fmt.Errorf("outbox scan: %w", err))
		}
		for _, op := range page {
			// One that cannot be announced holds up none of the others.
			if err := o.create(ctx, op); err != nil {
				failed = errors.Join(failed, fmt.Errorf("outbox scan: announce operation %s: %w", op.ID, err))
			}
			after = op.ID
		}
		if len(page) < scanPage || ctx.Err() != nil {
			return failed
		}
	}
}

// instance resolves an instance's namespace, remembering what it read:
// instances are few and keep their namespace.
func (o *Outbox) instance(ctx context.Context, id domain.InstanceID) (store.Instance, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if i, known := o.instances[id]; known {
		return i, nil
	}
	all, err := o.Store.Instances(ctx)
	if err != nil {
		return store.Instance{}, err
	}
	o.instances = make(map[domain.InstanceID]store.Instance, len(all))
	for _, i := range all {
		o.instances[i.ID] = i
	}
	i, known := o.instances[id]
	if !known {
		return i, fmt.Errorf("engine instance %s: %w", id, domain.ErrNotFound)
	}
	return i, nil
}

func ignoreGone(err error) error {
	if errors.Is(err, domain.ErrNotFound) {
		return nil
	}
	return err
}
