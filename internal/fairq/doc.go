// SPDX-License-Identifier: Apache-2.0

// Package fairq is a workqueue that gives workspaces turns, so that one tenant's flood of events is that tenant's own
// wait and nobody else's. It plugs into controller-runtime where a controller makes its queue
// (controller.TypedOptions.NewQueue, see NewQueueFunc), and keeps what reconcilers rely on there: an item is never
// handed out twice at once, adding it again while it waits or runs costs one more run and not two, and failures come
// back with backoff.
//
// # The layers
//
// An event belongs to a runner of an application of a workspace (see Key). The layers are levels of one data
// structure, not goroutines, so that what is idle costs nothing:
//
//	             turns                     first in, first out            at most once at a time
//	Get ◀──── workspace a (weight 2) ◀──── a/shop/deployment … a/blog/syncrun      running: a/web/deployment
//	          workspace b (weight 1) ◀──── b/wiki/deployment                       running: none
//	          ─────────────────────
//	          workspace c (at its cap, out of the rotation until one of its items is Done)
//
//	AddAfter, AddRateLimited ────▶ heap by due time ──── one timer ────▶ as if added then
//
// # Turns
//
// Workspaces that have an item which may run now stand in a line, the rotation. Get serves the workspace at the front,
// with the item that has been ready longest there. A workspace of weight w keeps the front for w items in a row and
// then goes to the back. It leaves the line when it has no ready item or when its cap is reached, gives up the turns it
// had left, and joins again at the back, with w turns, when it has an item that may run.
//
// Whoever joins does so at the back, and nobody stays at the front for longer than its weight. So a workspace in the
// line is served after at most as many other items as the weights of the workspaces before it add up to, however much
// any of them adds, and however cleverly: leaving and joining again never brings a workspace forward.
//
// # Caps
//
// With PerWorkspace set, so many items of one workspace run at once, and no more. This is what keeps a tenant whose
// remote cluster hangs from holding every worker, provided that the cap is well below the number of workers: workers
// divided by the cap is the number of tenants that must hang at the same time before the others feel it.
//
// The cap is why this package implements the whole queue and does not only supply an order to client-go's
// (workqueue.TypedQueueConfig.Queue). That seam is asked for the next item whenever its length is not zero, and it is
// not told when an item is done. A capped workspace needs both: ready items that nobody may have for the moment, and a
// worker that is woken by Done when a slot of the workspace becomes free.
//
// # Delays
//
// A delayed item takes no slot and no turn and holds up nobody; it is an entry in a heap. One timer stands for the
// earliest of them. Delaying an item that is delayed already keeps the earlier of the two times. Adding an item that is
// delayed makes it ready at once; the delayed run stays due as well, as with client-go, because who asked for a look
// "in a minute" is not served by a look now. A reconciler compares and does nothing then.
//
// # Cost
//
// Every operation is O(1), but for delays, which are O(log n) in the number of delayed items. New starts no goroutine;
// while the queue is at rest there is none, and after ShutDown there is neither a goroutine nor a timer. An idle
// workspace has no cost but its measurements, which are forgotten an hour after it fell idle (see Waits).
//
// # Waits
//
// The wait of an item is the time from when it became ready until it was handed out. It contains what the tenant
// brought upon itself (its own items before this one, its cap) as well as other tenants' turns. For an item added while
// it was running it begins when that run is done.
//
// # What it is not
//
// Not a priority queue: controller-runtime's priorities (an initial list's events coming after live ones) have no
// meaning here and are ignored by the wrapper that controller-runtime puts around a plain queue. And not client-go's
// metrics: workqueue_* has no series for these queues, Metrics has.
package fairq
