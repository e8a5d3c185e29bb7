// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// follow watches until something ends it, and says what. listed is not nil while
// the watch begins with a list, and is called when that is complete.
func (w *watcher) follow(ctx context.Context, options metav1.ListOptions, listed func()) error {
	seconds := int64((watchFor + rand.N(watchFor)).Seconds())
	options.TimeoutSeconds = &seconds
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	events, err := w.open(ctx, cancel, options)
	if err != nil {
		return err
	}
	defer events.Stop()
	good := time.NewTimer(goodWatch)
	defer good.Stop()
	// The server should have ended it by then. If it did not, it may be dead behind
	// something that is alive.
	overdue := time.NewTimer(time.Duration(seconds)*time.Second + patience)
	defer overdue.Stop()
	var resync <-chan time.Time
	if w.resync > 0 {
		timer := time.NewTimer(jitter(w.resync))
		defer timer.Stop()
		resync = timer.C
	}
	stalled := time.NewTimer(patience)
	defer stalled.Stop()
	if listed == nil {
		stalled.Stop()
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-resync:
			return errResync
		case <-stalled.C:
			return errStalled
		case <-overdue.C:
			return errClosed
		case <-good.C:
			if listed == nil {
				w.failures = 0
			}
		case event, ok := <-events.ResultChan():
			if !ok {
				return errClosed
			}
			end, err := w.take(event, listed != nil)
			switch {
			case err != nil:
				return err
			case end:
				listed()
				listed = nil
				stalled.Stop()
				good.Reset(goodWatch)
			case listed != nil:
				stalled.Reset(patience)
			}
		}
	}
}

// open starts a watch. A server that takes the request and says nothing is given
// up: nothing else would end the wait.
func (w *watcher) open(ctx context.Context, cancel context.CancelFunc, options metav1.ListOptions) (watch.Interface, error) {
	timer := time.AfterFunc(patience, cancel)
	events, err := w.client.Watch(ctx, options)
	if !timer.Stop() {
		if err == nil {
			events.Stop()
		}
		return nil, errStalled
	}
	return events, err
}

// take works on one event. end says that it was the end of the streamed list.
//
// The version to follow on from moves with every event, but only once the list is
// complete: before that, to follow on would lose what the list has not named yet.
func (w *watcher) take(event watch.Event, listing bool) (end bool, _ error) {
	if event.Type == watch.Error {
		return false, apierrors.FromObject(event.Object)
	}
	obj, ok := event.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return false, fmt.Errorf("livestate: a watch gave a %T", event.Object)
	}
	switch event.Type {
	case watch.Added, watch.Modified:
		w.feed.observe(obj)
	case watch.Deleted:
		w.feed.forget(obj)
	case watch.Bookmark:
		if listing && obj.Annotations[endOfList] == "true" {
			w.completed(obj.ResourceVersion)
			return true, nil
		}
	default:
		return false, fmt.Errorf("livestate: a watch gave an event of type %q", event.Type)
	}
	if !listing {
		w.version = obj.ResourceVersion
	}
	return false, nil
}
