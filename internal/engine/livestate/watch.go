// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// lister is the part of the metadata client that a watcher needs.
type lister interface {
	List(ctx context.Context, opts metav1.ListOptions) (*metav1.PartialObjectMetadataList, error)
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// feed takes what a watcher sees. All calls come from one goroutine.
type feed interface {
	// begin: a list of everything comes now, as calls of observe.
	begin()
	// observe: the object is there, as it is given.
	observe(obj *metav1.PartialObjectMetadata)
	// complete: everything that was not observed since begin is gone.
	complete()
	// forget: the object is gone.
	forget(obj *metav1.PartialObjectMetadata)
}

// Timings of watchers. They are no settings: none of them changes what is seen.
const (
	pageSize = 500
	// patience is how long a server may take to begin an answer, and to say the next
	// thing within a list.
	patience = 45 * time.Second
	// A watch is ended by the server after this, and up to twice this, so that
	// watches do not all end at once.
	watchFor    = 5 * time.Minute
	firstDelay  = 200 * time.Millisecond
	lastDelay   = 30 * time.Second
	refusedWait = 2 * time.Minute
	// A watch that lived for this long after its list was no failure, however it
	// ended. A list alone proves nothing: it may be all that works.
	goodWatch = 5 * time.Second
	// endOfList is on the bookmark after the last object of a streamed list.
	endOfList = metav1.InitialEventsAnnotationKey
)

// Why a stretch of watching ended, other than by an error of the API.
var (
	errClosed  = errors.New("livestate: the server ended the watch")
	errResync  = errors.New("livestate: the resync period is over")
	errStalled = errors.New("livestate: the server does not answer in time")
)

// watcher follows one resource in one namespace, or in all of them.
type watcher struct {
	client lister
	feed   feed
	resync time.Duration
	// lists bounds how many watchers list at once: each list in flight costs memory
	// here and work there.
	lists chan struct{}
	// report is told of every change: nil when a list is complete, an error when
	// something failed.
	report func(error)
	log    *slog.Logger

	// paged is set when the server turned out not to stream lists.
	paged bool
	// version is where to follow on; empty if a list is needed.
	version  string
	failures int
}

// run works until the context ends. Nothing that the API server answers ends it.
func (w *watcher) run(ctx context.Context) {
	for ctx.Err() == nil {
		err := w.once(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := w.judge(ctx, err)
		if wait == 0 {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// judge decides what an end means: whether to list again, and how long to wait.
func (w *watcher) judge(ctx context.Context, err error) time.Duration {
	switch {
	case errors.Is(err, errResync):
		w.version = ""
		return 0
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err), apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		// What happened in between is not told any more; a list shows its outcome. A
		// version that the server has not reached is one from before it was restored.
		w.log.DebugContext(ctx, "the watch expired; listing again")
		w.version = ""
		return w.delay()
	case errors.Is(err, errClosed):
		return w.delay()
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsNotFound(err), apierrors.IsMethodNotSupported(err):
		// Rights may have been lost and come back: what happened in between is seen
		// from a list only.
		w.version = ""
		w.report(err)
		w.log.InfoContext(ctx, "the API server refuses", "error", err)
		return jitter(refusedWait)
	}
	w.report(err)
	w.log.WarnContext(ctx, "watching failed; trying again", "error", err)
	return w.delay()
}

// delay grows with each failure in a row. The first one costs little: servers do
// restart.
func (w *watcher) delay() time.Duration {
	d := min(firstDelay<<min(w.failures, 16), lastDelay)
	w.failures++
	return jitter(d)
}

// jitter spreads: half to one and a half of d.
func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d)
}

// once lists if that is needed, and follows until something ends it.
func (w *watcher) once(ctx context.Context) error {
	if w.version == "" && !w.paged {
		err := w.stream(ctx)
		if !refusesStream(err) {
			return err
		}
		w.paged = true
	}
	if w.version == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	return w.follow(ctx, metav1.ListOptions{ResourceVersion: w.version, AllowWatchBookmarks: true}, nil)
}

// refusesStream says whether a server does not know streamed lists: it says so, or
// it knows neither the parameter nor that it has to say so, and sends no end.
func refusesStream(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || errors.Is(err, errStalled)
}

// enter waits for a turn to list.
func (w *watcher) enter(ctx context.Context) (leave func(), _ error) {
	select {
	case w.lists <- struct{}{}:
		return func() { <-w.lists }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// list reads everything in pages. All pages are of one moment; if the server
// forgets that moment on the way, the list fails with 410 and begins anew.
func (w *watcher) list(ctx context.Context) error {
	leave, err := w.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	w.feed.begin()
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := w.page(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			w.feed.observe(&page.Items[i])
		}
		if page.Continue == "" {
			w.completed(page.ResourceVersion)
			return nil
		}
		options.Continue = page.Continue
	}
}

func (w *watcher) page(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errStalled)
	defer cancel()
	page, err := w.client.List(ctx, options)
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return nil, errStalled
	}
	return page, err
}

// stream reads everything as the beginning of a watch, and follows on.
func (w *watcher) stream(ctx context.Context) error {
	leave, err := w.enter(ctx)
	if err != nil {
		return err
	}
	left := false
	once := func() {
		if !left {
			left = true
			leave()
		}
	}
	defer once()
	yes := true
	w.feed.begin()
	return w.follow(ctx, metav1.ListOptions{
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}, once)
}

func (w *watcher) completed(version string) {
	w.version = version
	w.feed.complete()
	w.report(nil)
}
