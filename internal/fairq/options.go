// SPDX-License-Identifier: Apache-2.0

package fairq

import (
	"time"

	"k8s.io/client-go/util/workqueue"
)

const (
	firstRetry = 5 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// Options say how a queue shares itself out. The zero value is a fair queue without caps.
type Options[K Keyed] struct {
	// Name tells this queue from others in metrics.
	Name string

	// RateLimiter says how long AddRateLimited delays an item. Default: DefaultRateLimiter. A limiter remembers items,
	// so queues must not share one.
	RateLimiter workqueue.TypedRateLimiter[K]

	// PerWorkspace is how many items of one workspace may run at once. 0: as many as there are workers.
	PerWorkspace int

	// Weight is how many items in a row a workspace gets when its turn comes; nil, or a result below 1, counts as 1.
	// It is asked anew for every turn, under the queue's lock: it must be quick and must not call the queue.
	Weight func(workspace string) int

	// Observe is told of every item handed out. Optional.
	Observe Observer

	// Metrics are the Prometheus metrics in which the queue appears, under Name, until it is shut down. Optional.
	Metrics *Metrics
}

// Observer is called by Get, on the worker's goroutine and outside the queue's lock, with the workspace of the item
// that was handed out, how long the item had been ready, and how many ready items were left.
type Observer func(workspace string, wait time.Duration, depth int)

// DefaultRateLimiter is exponential backoff for each item by itself: 5 ms, doubling up to 5 minutes. There is no limit
// over all items, because one tenant's failures would use it up for all.
func DefaultRateLimiter[K Keyed]() workqueue.TypedRateLimiter[K] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[K](firstRetry, lastRetry)
}

// NewQueueFunc is what controller.TypedOptions.NewQueue takes. A controller calls it once, when it starts, with its own
// name and rate limiter; these count where opts leaves Name or RateLimiter open. (controller-runtime always has a
// limiter: without one in the controller's options it is exponential up to 1000 seconds, not DefaultRateLimiter.)
func NewQueueFunc[K Keyed](
	opts Options[K],
) func(controllerName string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
	return func(controllerName string, limiter workqueue.TypedRateLimiter[K]) workqueue.TypedRateLimitingInterface[K] {
		o := opts
		if o.Name == "" {
			o.Name = controllerName
		}
		if o.RateLimiter == nil {
			o.RateLimiter = limiter
		}
		return New(o)
	}
}
