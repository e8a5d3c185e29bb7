// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/fairq"
	"github.com/weir-gitops/weir/internal/seal"
)

const (
	// sweepEvery is how often everything is looked over although nothing asked
	// for it: a guard against program errors, not part of the flow.
	sweepEvery = 30 * time.Minute
	sweepRetry = 2 * time.Second

	// collectAfter is how long a finished operation stays to be looked at, and so
	// how long after one finished the collection runs.
	collectAfter = 30 * time.Second
	collectPage  = 1000
	// changesKept is how far back a notifier that lost its connection can catch up.
	changesKept = time.Hour
)

// runnerOutbox is the runner of an operation row that may lack its CR.
const runnerOutbox = "outbox"

// sweep looks for what was missed: at once after the caches are read, when
// notifications were lost for good, and from time to time.
func (b *Backend) sweep(ctx context.Context) error {
	if !b.mgr.GetCache().WaitForCacheSync(ctx) {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-b.started:
		b.synced.Store(true)
	}
	lost := make(chan struct{}, 1)
	b.options.Notifier.OnResync(func() {
		select {
		case lost <- struct{}{}:
		default:
		}
	})
	wait := time.NewTimer(0)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-lost:
			b.enqueueAll(ctx)
		case <-wait.C:
		}
		if err := b.sweepOnce(ctx); err != nil {
			b.options.Log.WarnContext(ctx, "sweep will be tried again", "error", err)
			wait.Reset(sweepRetry)
			continue
		}
		wait.Reset(sweepEvery)
	}
}

func (b *Backend) sweepOnce(ctx context.Context) error {
	_, err := b.links.Sweep(ctx)
	_, others := b.crLinks.Sweep(ctx)
	return errors.Join(err, others, b.outbox.Scan(ctx))
}

// enqueueAll has every CR of the tenants looked at again, or every one of a
// namespace.
func (b *Backend) enqueueAll(ctx context.Context, which ...client.ListOption) {
	b.enqueueListed(ctx, &v1alpha1.GitOpsDeploymentList{}, fairq.RunnerDeployment, which...)
	b.enqueueListed(ctx, &v1alpha1.GitOpsDeploymentSyncRunList{}, fairq.RunnerSyncRun, which...)
	b.enqueueListed(ctx, &v1alpha1.GitOpsDeploymentManagedEnvironmentList{}, runnerEnvironment, which...)
	b.enqueueListed(ctx, &v1alpha1.GitOpsDeploymentRepositoryCredentialList{}, runnerCredential, which...)
}

// recheckOperation has the outbox look at a waiting operation after a while.
func (b *Backend) recheckOperation(id domain.OperationID) {
	if q := b.queue.Load(); q != nil {
		(*q).AddAfter(fairq.Key{Workspace: runnerOutbox, Application: string(id), Runner: runnerOutbox}, recheckAfter)
	}
}

// armCollection asks for a collection; asking again before it ran is free.
func (b *Backend) armCollection() {
	select {
	case b.finished <- struct{}{}:
	default:
	}
}

// collect removes finished operations and old entries of the change log, some
// time after an operation finished. With no operations it does not run.
func (b *Backend) collect(ctx context.Context) error {
	b.armCollection()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-b.finished:
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(2 * collectAfter):
		}
		if more, err := b.collectOnce(ctx); err != nil || more {
			if err != nil {
				b.options.Log.WarnContext(ctx, "collection of finished operations will be tried again", "error", err)
			}
			b.armCollection()
		}
	}
}

func (b *Backend) collectOnce(ctx context.Context) (more bool, err error) {
	now := time.Now()
	n, err := b.options.Store.Collect(ctx, now.Add(-collectAfter), collectPage)
	if err != nil {
		return false, err
	}
	if _, err := b.options.Store.TrimChanges(ctx, now.Add(-changesKept)); err != nil {
		return false, err
	}
	if _, err := b.options.Store.SweepDataKeys(ctx, now.Add(-seal.SweepAfter), collectPage); err != nil {
		return false, err
	}
	return n == collectPage, nil
}
