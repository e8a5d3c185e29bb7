// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// script is an API server that answers what a test tells it to, one answer for
// each request, and then nothing.
type script struct {
	t       *testing.T
	answers []func(metav1.ListOptions) (any, error)
	asked   []string
	open    *watch.RaceFreeFakeWatcher
}

func (s *script) next(ctx context.Context, what string, options metav1.ListOptions) (any, error) {
	if options.SendInitialEvents != nil {
		what = "stream"
	}
	s.asked = append(s.asked, strings.TrimSpace(what+" "+options.ResourceVersion+options.Continue))
	if len(s.answers) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	answer := s.answers[0]
	s.answers = s.answers[1:]
	return answer(options)
}

func (s *script) List(ctx context.Context, options metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	answer, err := s.next(ctx, "list", options)
	list, _ := answer.(*metav1.PartialObjectMetadataList)
	return list, err
}

func (s *script) Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	answer, err := s.next(ctx, "watch", options)
	if err != nil {
		return nil, err
	}
	s.open = watch.NewRaceFreeFake()
	for _, event := range answer.([]watch.Event) {
		if event.Type == "" {
			s.open.Stop()
			break
		}
		s.open.Action(event.Type, event.Object)
	}
	return s.open, nil
}

func fails(err error) func(metav1.ListOptions) (any, error) {
	return func(metav1.ListOptions) (any, error) { return nil, err }
}

// events answers with a watch that says these and stays open; "end" closes it.
func events(texts ...string) func(metav1.ListOptions) (any, error) {
	var all []watch.Event
	for _, text := range texts {
		all = append(all, event(text))
	}
	return func(metav1.ListOptions) (any, error) { return all, nil }
}

// event reads "+name version", "-name version", "bookmark version",
// "complete version", "gone" and "end".
func event(text string) watch.Event {
	what, version, _ := strings.Cut(text, " ")
	switch what {
	case "gone":
		status := apierrors.NewResourceExpired("too old").ErrStatus
		return watch.Event{Type: watch.Error, Object: &status}
	case "end":
		return watch.Event{}
	case "bookmark", "complete":
		obj := object("", version)
		if what == "complete" {
			obj.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		}
		return watch.Event{Type: watch.Bookmark, Object: obj}
	}
	if name, ok := strings.CutPrefix(what, "-"); ok {
		return watch.Event{Type: watch.Deleted, Object: object(name, version)}
	}
	return watch.Event{Type: watch.Added, Object: object(strings.TrimPrefix(what, "+"), version)}
}

func object(name, version string) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: "s", UID: types.UID("uid-" + name), ResourceVersion: version,
	}}
}

func page(version, next string, names ...string) func(metav1.ListOptions) (any, error) {
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: version, Continue: next}}
	for _, text := range names {
		name, version, _ := strings.Cut(text, " ")
		list.Items = append(list.Items, *object(name, version))
	}
	return func(metav1.ListOptions) (any, error) { return list, nil }
}

func TestWatcher(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("busy")
	invalid := apierrors.NewInvalid(schema.GroupKind{}, "", nil)
	forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", nil)
	tooLarge := apierrors.NewTimeoutError("too large", 1)
	tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
	unknown := apierrors.NewGenericServerResponse(http.StatusInternalServerError, "get", schema.GroupResource{}, "", "", 0, true)
	for _, test := range []struct {
		name    string
		resync  time.Duration
		run     time.Duration
		answers []func(metav1.ListOptions) (any, error)
		asked   []string
		told    []string
	}{
		{
			name:    "a streamed list, and what comes after",
			answers: []func(metav1.ListOptions) (any, error){events("+a 1", "+b 2", "complete 3", "+a 4", "-b 5")},
			asked:   []string{"stream"},
			told:    []string{"created a 1", "created b 2", "synced", "updated a 4", "deleted b"},
		},
		{
			name: "a server without streams gives pages",
			answers: []func(metav1.ListOptions) (any, error){
				fails(invalid), page("9", "more", "a 1", "b 2"), page("9", "", "c 3"), events("+d 10"),
			},
			asked: []string{"stream", "list", "list more", "watch 9"},
			told:  []string{"created a 1", "created b 2", "created c 3", "synced", "created d 10"},
		},
		{
			name: "a server that ignores the wish for a stream sends no end",
			run:  2 * patience,
			answers: []func(metav1.ListOptions) (any, error){
				events("+a 1"), page("9", "", "a 1"), events(),
			},
			asked: []string{"stream", "list", "watch 9"},
			told:  []string{"created a 1", "synced"},
		},
		{
			name: "a watch that is closed goes on where it was",
			answers: []func(metav1.ListOptions) (any, error){
				events("+a 1", "complete 3", "bookmark 7", "end"), events("+a 8", "end"), fails(unavailable), events("-a 9"),
			},
			asked: []string{"stream", "watch 7", "watch 8", "watch 8"},
			told:  []string{"created a 1", "synced", "updated a 8", "failed", "deleted a"},
		},
		{
			name: "410 in a watch: the list tells what was hidden and nothing else",
			answers: []func(metav1.ListOptions) (any, error){
				events("+same 1", "+changed 2", "+gone 3", "complete 4", "gone"),
				events("+same 1", "+changed 5", "+new 6", "complete 7"),
			},
			asked: []string{"stream", "stream"},
			told: []string{
				"created same 1", "created changed 2", "created gone 3", "synced",
				"updated changed 5", "created new 6", "deleted gone", "synced",
			},
		},
		{
			name: "410 when a watch begins",
			answers: []func(metav1.ListOptions) (any, error){
				events("+a 1", "complete 4", "end"), fails(apierrors.NewResourceExpired("old")), events("complete 9"),
			},
			asked: []string{"stream", "watch 4", "stream"},
			told:  []string{"created a 1", "synced", "deleted a", "synced"},
		},
		{
			name: "410 between pages begins the list again and deletes nothing",
			answers: []func(metav1.ListOptions) (any, error){
				fails(invalid), page("3", "", "a 1", "b 2"), events("gone"),
				page("8", "more", "a 1"), fails(apierrors.NewResourceExpired("old")),
				page("9", "more", "a 1"), page("9", "", "b 2"), events(),
			},
			asked: []string{"stream", "list", "watch 3", "list", "list more", "list", "list more", "watch 9"},
			told:  []string{"created a 1", "created b 2", "synced", "synced"},
		},
		{
			name: "a streamed list that breaks off deletes nothing",
			answers: []func(metav1.ListOptions) (any, error){
				events("+a 1", "+b 2", "complete 4", "gone"), events("+a 1", "end"), fails(unknown), events("+a 1", "+b 2", "complete 9"),
			},
			asked: []string{"stream", "stream", "stream", "stream"},
			told:  []string{"created a 1", "created b 2", "synced", "failed", "synced"},
		},
		{
			name: "a watch that nobody ends", run: 2*watchFor + 2*patience,
			answers: []func(metav1.ListOptions) (any, error){events("+a 1", "complete 4"), events("+a 5")},
			asked:   []string{"stream", "watch 4"},
			told:    []string{"created a 1", "synced", "updated a 5"},
		},
		{
			name: "a version from before a restore",
			answers: []func(metav1.ListOptions) (any, error){
				events("+a 9", "complete 9", "end"), fails(tooLarge), events("+a 5", "complete 6"),
			},
			asked: []string{"stream", "watch 9", "stream"},
			told:  []string{"created a 9", "synced", "updated a 5", "synced"},
		},
		{
			name: "refused, then let in", run: 2 * refusedWait,
			answers: []func(metav1.ListOptions) (any, error){fails(forbidden), events("+a 1", "complete 4")},
			asked:   []string{"stream", "stream"},
			told:    []string{"failed", "created a 1", "synced"},
		},
		{
			name: "resync", resync: time.Minute, run: 100 * time.Second,
			answers: []func(metav1.ListOptions) (any, error){events("+a 1", "+b 1", "complete 4"), events("+a 1", "complete 4")},
			asked:   []string{"stream", "stream"},
			told:    []string{"created a 1", "created b 1", "synced", "deleted b", "synced"},
		},
		{
			name: "a server that never answers", run: 2*patience + time.Minute,
			answers: nil,
			// The stream is given up, then the page; both are tried again.
			asked: []string{"stream", "list", "list", "list"},
			told:  []string{"failed", "failed"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &script{t: t, answers: test.answers}
				var told []string
				w := testWatcher(server, &told)
				w.resync = test.resync
				run := test.run
				if run == 0 {
					run = 20 * time.Second
				}
				ctx, cancel := context.WithTimeout(t.Context(), run)
				defer cancel()
				w.run(ctx)
				if !slices.Equal(server.asked, test.asked) {
					// What is asked after the script's end depends on chance.
					if len(server.answers) > 0 || len(server.asked) < len(test.asked) || !slices.Equal(server.asked[:len(test.asked)], test.asked) {
						t.Errorf("asked %q, want %q", server.asked, test.asked)
					}
				}
				// After the script's end the server does not answer any more.
				for len(told) > len(test.told) && told[len(told)-1] == "failed" {
					told = told[:len(told)-1]
				}
				if !slices.Equal(told, test.told) {
					t.Errorf("told %q, want %q", told, test.told)
				}
				if len(w.lists) != 0 {
					t.Error("a turn to list was not given back")
				}
			})
		})
	}
}

// testWatcher writes what handlers and waiters are told.
func testWatcher(server lister, told *[]string) *watcher {
	s := newStore(nil, nil)
	say := func(what string, name, version string) {
		*told = append(*told, strings.TrimSpace(what+" "+name+" "+version))
	}
	return &watcher{
		client: server,
		feed: &scopeFeed{store: s, scope: s.open(schema.GroupKind{Kind: "A"}), handlers: ResourceEventHandlers{
			OnCreated: func(o *unstructured.Unstructured) { say("created", o.GetName(), o.GetResourceVersion()) },
			OnUpdated: func(o *unstructured.Unstructured) { say("updated", o.GetName(), o.GetResourceVersion()) },
			OnDeleted: func(id ResourceID) { say("deleted", id.Name, "") },
		}},
		lists: make(chan struct{}, 1),
		report: func(err error) {
			if err != nil {
				say("failed", "", "")
			} else {
				say("synced", "", "")
			}
		},
		log: slog.New(slog.DiscardHandler),
	}
}

// A server that lets nothing but lists succeed is not asked for a list five times a
// second.
func TestWatcherBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &script{t: t}
		for range 1000 {
			server.answers = append(server.answers, events("+a 1", "complete 4", "gone"))
		}
		var told []string
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		testWatcher(server, &told).run(ctx)
		if n := len(server.asked); n < 10 || n > 60 {
			t.Errorf("asked %d times in ten minutes", n)
		}
		if created := strings.Count(fmt.Sprint(told), "created"); created != 1 {
			t.Errorf("told of %d creations, want 1", created)
		}
	})
}
