// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var (
	errNotSeen    = errors.New("it was not seen")
	errWatchEnded = errors.New("the watch cannot go on")
)

// handler is given each event with the time at which it came. It is called by
// one goroutine and must not block.
type handler func(t watch.EventType, object client.Object, at time.Time)

// follow watches until the context ends, beginning with what is there. When it
// returns, the watch is open. There is no cache in between: the bare client of the
// floor and the sightings of the scenarios see events the same way.
//
// A watch that breaks ends the run through fail: whoever waits for a sighting
// would wait in vain, and a latency measured across the gap would be wrong.
func follow(ctx context.Context, c client.WithWatch, fail func(error), list client.ObjectList, handle handler, options ...client.ListOption) error {
	s := &stream{client: c, fail: fail, list: list, options: options, handle: handle}
	first, err := s.open(ctx)
	if err != nil {
		return fmt.Errorf("begin a watch: %w", err)
	}
	go s.run(ctx, first)
	return nil
}

type stream struct {
	client  client.WithWatch
	fail    func(error)
	list    client.ObjectList
	options []client.ListOption
	handle  handler
	// version is that of the last event: an API server ends every watch at some
	// time, and the next one goes on from there. Empty is the present state. It is
	// not taken from a list, because of a kind that has just been defined a list may
	// give a version from before the API server began to watch it.
	version string
}

func (s *stream) open(ctx context.Context) (watch.Interface, error) {
	options := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: s.version}}}, s.options...)
	return s.client.Watch(ctx, s.list, options...)
}

func (s *stream) run(ctx context.Context, w watch.Interface) {
	for {
		err := s.drain(ctx, w)
		w.Stop()
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			w, err = s.open(ctx)
		}
		if err != nil {
			s.fail(fmt.Errorf("%w: %w", errWatchEnded, err))
			return
		}
	}
}

func (s *stream) drain(ctx context.Context, w watch.Interface) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, open := <-w.ResultChan():
			at := time.Now()
			switch {
			case !open:
				return nil
			case e.Type == watch.Error:
				return apierrors.FromObject(e.Object)
			}
			object, err := meta.Accessor(e.Object)
			if err != nil {
				return err
			}
			s.version = object.GetResourceVersion()
			if o, is := e.Object.(client.Object); is && e.Type != watch.Bookmark {
				s.handle(e.Type, o, at)
			}
		}
	}
}
