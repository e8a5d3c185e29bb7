// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// KindStatus is how it goes with one kind, in one namespace if the cache has
// namespaces.
type KindStatus struct {
	schema.GroupKind
	Namespace string
	// Synced: it has been listed. It stays so when a watch breaks.
	Synced bool
	// Err is the last failure since the last list, if any.
	Err error
}

// Status is how a cache does.
type Status struct {
	// Objects in the cache.
	Objects int
	// Kinds that are watched, sorted.
	Kinds []KindStatus
	// Silent are the groups that do not answer to discovery.
	Silent []schema.GroupVersion
}

// state is that of a target.
type state struct {
	synced bool
	err    error
}

// settled: there is nothing to wait for. Who is refused once is refused until an
// operator changes something; waiting for it would be waiting for ever.
func (s *state) settled() bool { return s.synced || refused(s.err) }

func refused(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}

// Status tells how the cache does.
func (c *ClusterCache) Status() Status {
	status := Status{Objects: c.store.len()}
	c.mu.Lock()
	defer c.mu.Unlock()
	status.Silent = slices.Clone(c.failed)
	for t, s := range c.states {
		status.Kinds = append(status.Kinds, KindStatus{GroupKind: t.gk, Namespace: t.namespace, Synced: s.synced, Err: s.err})
	}
	slices.SortFunc(status.Kinds, func(a, b KindStatus) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace))
	})
	return status
}

// WaitForSync returns when all kinds that the cluster serves at that time have
// been listed. It does not wait for kinds that the API server refuses to show, nor
// for groups that do not answer to discovery: Status has them. When the context
// ends first, the error is a NotSyncedError.
func (c *ClusterCache) WaitForSync(ctx context.Context) error {
	for {
		c.mu.Lock()
		news := c.news
		waiting := &NotSyncedError{}
		for t, s := range c.states {
			if !s.settled() {
				waiting.Kinds = append(waiting.Kinds, t.gk)
			}
		}
		done := c.asked && len(waiting.Kinds) == 0
		c.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			waiting.Cause = context.Cause(ctx)
			slices.SortFunc(waiting.Kinds, func(a, b schema.GroupKind) int { return cmp.Compare(a.String(), b.String()) })
			waiting.Kinds = slices.Compact(waiting.Kinds)
			return waiting
		}
	}
}

// tell changes the state and wakes those who wait for it.
func (c *ClusterCache) tell(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.news)
	c.news = make(chan struct{})
}
