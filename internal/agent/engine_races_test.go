// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

func TestUpdateOfAnotherUIDIsAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	w.byHand(func(a *argov1alpha1.Application) { a.UID = "uid-of-another" })
	if err := w.UpdateApplication(t.Context(), w.cache.seen[appName], app("second")); !errors.Is(err, domain.ErrConflict) {
		t.Errorf("got %v; want a conflict", err)
	}
}

type during struct {
	client.Reader
	do func()
}

func (d *during) Get(ctx context.Context, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := d.Reader.Get(ctx, k, o, opts...)
	if d.do != nil {
		do := d.do
		d.do = nil
		do()
	}
	return err
}

// The observing step reads while the operating one writes.
func TestAReadDoesNotForgetAWriteThatHappenedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	w.replace(t, "second")
	second := w.server.apps[appName].DeepCopy()
	w.live = &during{w.server, func() { w.replace(t, "third") }}
	if _, err := w.Application(t.Context(), appName); err != nil { // the observing step
		t.Fatal(err)
	}
	w.cache.seen[appName] = second
	w.seen(appName, version(second))
	w.expectRead(t, "the cache shows the second", "third", 1)
}

// Deleted, and the cache has not noticed.
func TestReadsAreNotOlderThanOurOwnDelete(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.create(t, app("first"))
	w.catchUp()
	if gone, err := w.DeleteApplication(t.Context(), appName); !gone || err != nil {
		t.Fatal(gone, err)
	}
	if path, _ := w.read(t); path != "" {
		t.Errorf("still reads %q", path)
	}
}
