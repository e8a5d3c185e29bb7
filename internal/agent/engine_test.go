// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

func TestReadsAreNeverOlderThanOurOwnWrites(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.expectRead(t, "before anything was written", "", 0)

	w.create(t, app("first"))
	w.expectRead(t, "created, not in the cache yet", "first", 1)
	w.catchUp()
	w.expectRead(t, "once it is in the cache", "first", 0)

	w.replace(t, "second")
	w.expectRead(t, "replaced, and the cache is behind", "second", 1)
	w.replace(t, "first")
	w.expectRead(t, "an edit taken back within a moment", "first", 1)
	w.catchUp()
	w.expectRead(t, "once the cache has caught up", "first", 0)
	if len(w.written) != 0 {
		t.Errorf("still remembers %v", w.written)
	}
}

// The cache may show one of our writes and still be behind the next.
func TestACacheThatHasCaughtUpHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	w.replace(t, "second")
	halfWay := w.server.apps[appName].DeepCopy()
	w.replace(t, "third")
	w.cache.seen[appName] = halfWay
	w.seen(appName, version(halfWay))
	w.expectRead(t, "the cache shows the second of three", "third", 1)
}

// The engine's writes move the version as well, so the cache can be ahead of
// our last write without having shown it.
func TestACacheAheadOfOurWriteIsTrusted(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.byHand(func(a *argov1alpha1.Application) { a.Status.Health.Status = argov1alpha1.HealthStatusHealthy })
	w.catchUp()
	w.expectRead(t, "the engine has written since", "first", 0)
}

func TestAnApplicationThatWentSinceOurWrite(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	delete(w.server.apps, appName)
	w.expectRead(t, "gone before the cache saw it", "", 1)
	w.expectRead(t, "and that is known now", "", 0)
}

// What was found gone is forgotten, but not what has been made meanwhile.
func TestALookThatFindsNothingForgetsNoLaterWrite(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	delete(w.server.apps, appName)
	w.live = &during{w.server, func() { w.create(t, app("second")) }}
	if got, err := w.Application(t.Context(), appName); got != nil || err != nil {
		t.Fatal(got, err)
	}
	w.expectRead(t, "made while it was looked for", "second", 1)
}

func TestARememberedVersionOnlyGrows(t *testing.T) {
	t.Parallel()
	w := newWorld()
	for _, v := range []uint64{7, 5, 9, untilGone, 10} {
		before := w.lastWrite(appName)
		w.remember(appName, v)
		if got := w.lastWrite(appName); got != max(before, v) {
			t.Errorf("after %d and %d, %d is remembered", before, v, got)
		}
	}
}

func TestCreateWhatTheCacheHasNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld()
	theirs := app("theirs")
	theirs.UID = "uid-theirs"
	w.server.store(theirs)
	if err := w.CreateApplication(t.Context(), app("ours")); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
	w.expectRead(t, "the next look goes to the server", "theirs", 1)
	w.catchUp()
	w.expectRead(t, "once it is in the cache", "theirs", 0)
}

func TestAFailedWriteIsNotRemembered(t *testing.T) {
	t.Parallel()
	away := apierrors.NewServiceUnavailable("later")
	w := newWorld()
	w.server.NextErr = away
	if err := w.CreateApplication(t.Context(), app("first")); !errors.Is(err, away) {
		t.Errorf("got %v; want %v", err, away)
	}
	w.expectRead(t, "not created", "", 0)

	w.create(t, app("first"))
	w.catchUp()
	w.server.NextErr = away
	if err := w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second")); !errors.Is(err, away) {
		t.Errorf("got %v; want %v", err, away)
	}
	w.expectRead(t, "not replaced", "first", 0)
}

func TestUpdateLeavesAllElseAlone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first", argov1alpha1.ResourcesFinalizer))
	w.catchUp()
	w.byHand(func(a *argov1alpha1.Application) {
		a.Status.Health.Status = argov1alpha1.HealthStatusHealthy
		a.Annotations = map[string]string{argov1alpha1.RefreshAnnotation: argov1alpha1.RefreshHard}
	})
	want := w.server.apps[appName].DeepCopy()
	want.Spec = spec("second")
	// The copy that the step has does not know what was written by hand.
	if err := w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second")); err != nil {
		t.Fatal(err)
	}
	want.ResourceVersion = w.server.apps[appName].ResourceVersion
	if diff := cmp.Diff(want, w.server.apps[appName]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An Application that lost our labels gets them back and keeps the others.
func TestUpdatePutsOurLabelsOn(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.byHand(func(a *argov1alpha1.Application) {
		a.Labels = map[string]string{"team": "blue", argov1alpha1.TenantLabel: "forged"}
	})
	w.catchUp()
	want := app("second")
	want.Labels = map[string]string{argov1alpha1.TenantLabel: "tenant-a", argov1alpha1.ApplicationLabel: "uid-a"}
	if err := w.UpdateApplication(t.Context(), w.cache.seen[appName], want); err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"team": "blue", argov1alpha1.TenantLabel: "tenant-a", argov1alpha1.ApplicationLabel: "uid-a"}
	if diff := cmp.Diff(labels, w.server.apps[appName].Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

// What the API server will never take is not a conflict, which would be tried
// for ever.
func TestUpdateThatIsInvalidStaysInvalid(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	w.server.NextErr = apierrors.NewInvalid(argov1alpha1.GroupVersion.WithKind("Application").GroupKind(), appName, nil)
	err := w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second"))
	if !apierrors.IsInvalid(err) || errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want the API server's refusal", err)
	}
}

func TestUpdateOfWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	delete(w.server.apps, appName)
	if err := w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second")); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
}

func TestUpdateNeverTouchesAnotherUID(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	w.byHand(func(a *argov1alpha1.Application) { a.UID = "uid-of-another" })
	if w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second")) == nil {
		t.Error("another object under the name was replaced")
	}
	if got := w.server.apps[appName].Spec.Source.Path; got != "first" {
		t.Errorf("path is %q now", got)
	}
}

func TestDeleteApplication(t *testing.T) {
	t.Parallel()
	const finalizer = argov1alpha1.ResourcesFinalizer
	for name, c := range map[string]struct {
		setUp func(*testing.T, *world)
		gone  bool
	}{
		"there is none":               {func(*testing.T, *world) {}, true},
		"without finalizers":          {func(t *testing.T, w *world) { w.create(t, app("a")); w.catchUp() }, true},
		"with a finalizer":            {func(t *testing.T, w *world) { w.create(t, app("a", finalizer)); w.catchUp() }, false},
		"not in the cache":            {func(t *testing.T, w *world) { w.create(t, app("a")) }, true},
		"not in the cache, finalizer": {func(t *testing.T, w *world) { w.create(t, app("a", finalizer)) }, false},
		"gone, but still in the cache": {func(t *testing.T, w *world) {
			w.create(t, app("a", finalizer))
			w.catchUp()
			delete(w.server.apps, appName)
		}, true},
		"on its way already": {func(t *testing.T, w *world) {
			w.create(t, app("a", finalizer))
			w.byHand(func(a *argov1alpha1.Application) { now := metav1.Now(); a.DeletionTimestamp = &now })
			w.catchUp()
			// A second request would be refused by this.
			w.server.NextErr = errors.New("asked again")
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			c.setUp(t, w)
			gone, err := w.DeleteApplication(t.Context(), appName)
			if err != nil || gone != c.gone {
				t.Errorf("gone %v, %v; want %v", gone, err, c.gone)
			}
			if have := w.server.apps[appName]; have != nil && have.DeletionTimestamp.IsZero() {
				t.Error("it was not deleted")
			}
		})
	}
}

func TestDeleteApplicationThatFails(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	w := newWorld()
	w.create(t, app("a"))
	w.server.NextErr = away
	if gone, err := w.DeleteApplication(t.Context(), appName); gone || !errors.Is(err, away) {
		t.Errorf("gone %v, %v; want %v", gone, err, away)
	}
}

// Deleted and made again before the cache has seen either.
func TestMadeAgainAfterOurOwnDelete(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	if gone, err := w.DeleteApplication(t.Context(), appName); !gone || err != nil {
		t.Fatal(gone, err)
	}
	w.expectRead(t, "deleted, and still in the cache", "", 1)
	w.create(t, app("second"))
	w.expectRead(t, "made again, and the first still in the cache", "second", 1)
	w.catchUp()
	w.expectRead(t, "once the cache has caught up", "second", 0)
	if len(w.written) != 0 {
		t.Errorf("still remembers %v", w.written)
	}
}

// One that has to wait for its finalizers is read from the server until its end
// was seen, and forgotten then.
func TestNothingIsRememberedOfWhatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first", argov1alpha1.ResourcesFinalizer))
	w.catchUp()
	if gone, err := w.DeleteApplication(t.Context(), appName); gone || err != nil {
		t.Fatal(gone, err)
	}
	w.expectRead(t, "on its way", "first", 1)
	w.catchUp()
	delete(w.server.apps, appName)
	w.catchUp()
	w.expectRead(t, "gone", "", 0)
	if len(w.written) != 0 {
		t.Errorf("still remembers %v", w.written)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	if v := version(nil); v != 0 {
		t.Errorf("of nothing: %d", v)
	}
	for text, want := range map[string]uint64{"": 0, "x": 0, "-1": 0, "7": 7, "18446744073709551615": 1<<64 - 1} {
		a := app("a")
		a.ResourceVersion = text
		if got := version(a); got != want {
			t.Errorf("version of %q is %d; want %d", text, got, want)
		}
	}
}

func operation(id, kind, resource string) *operationv1alpha1.Operation {
	return &operationv1alpha1.Operation{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "argocd", Name: "operation-" + id, UID: types.UID("uid-" + id),
			Labels: map[string]string{operationv1alpha1.ResourceTypeLabel: kind, operationv1alpha1.ResourceLabel: resource},
		},
		Spec: operationv1alpha1.OperationSpec{OperationID: id},
	}
}

func TestOperationsOfAResourceOldestFirst(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := operationv1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	// A removal is for the one that was read, not for what has its name by then.
	var named []types.UID
	elsewhere := operation("0", "Application", "a")
	elsewhere.Namespace = "team-a"
	c := fake.NewClientBuilder().WithScheme(scheme).WithIndex(&operationv1alpha1.Operation{}, resourceIndex, indexResource).
		WithObjects(operation("3", "Application", "a"), operation("1", "Application", "a"), operation("2", "Application", "b"),
			operation("4", "SyncOperation", "a"), elsewhere).
		WithInterceptorFuncs(interceptor.Funcs{
			Delete: func(ctx context.Context, to client.WithWatch, o client.Object, options ...client.DeleteOption) error {
				if p := (&client.DeleteOptions{}).ApplyOptions(options).Preconditions; p != nil && p.UID != nil {
					named = append(named, *p.UID)
				}
				return to.Delete(ctx, o, options...)
			},
		}).Build()
	e := &engineNamespace{namespace: "argocd", cached: c, live: c}

	ids := func() []string {
		ops, err := e.Operations(t.Context(), domain.ResourceApplication, "a")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, op := range ops {
			out = append(out, op.Spec.OperationID)
		}
		return out
	}
	if diff := cmp.Diff([]string{"1", "3"}, ids()); diff != "" {
		t.Errorf("operations (-want +got):\n%s", diff)
	}
	for range 2 {
		if err := e.DeleteOperation(t.Context(), operation("1", "Application", "a")); err != nil {
			t.Errorf("removing it, also for the second time: %v", err)
		}
	}
	if diff := cmp.Diff([]string{"3"}, ids()); diff != "" {
		t.Errorf("operations after one was removed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]types.UID{"uid-1", "uid-1"}, named); diff != "" {
		t.Errorf("UIDs that removals were for (-want +got):\n%s", diff)
	}
}
