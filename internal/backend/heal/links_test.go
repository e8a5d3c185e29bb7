// SPDX-License-Identifier: Apache-2.0

package heal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// fakeInventory holds link rows in the order of their ids.
type fakeInventory struct {
	store.Inventory
	links   []store.Link
	pages   []int
	NextErr error
}

func (f *fakeInventory) Links(_ context.Context, after domain.ApplicationID, limit int) ([]store.Link, error) {
	if err := f.NextErr; err != nil {
		f.NextErr = nil
		return nil, err
	}
	var out []store.Link
	for _, l := range f.links {
		if l.Application > after && len(out) < limit {
			out = append(out, l)
		}
	}
	f.pages = append(f.pages, len(out))
	return out, nil
}

// world is the sweep with the CRs that its cache has, by name, as UIDs.
type world struct {
	*Links
	inventory *fakeInventory
	cache     map[string]string
	lookupErr error
	enqueued  []string
	log       *strings.Builder
}

func newWorld(links ...store.Link) *world {
	w := &world{inventory: &fakeInventory{links: links}, cache: map[string]string{}, log: &strings.Builder{}}
	w.Links = &Links{
		Store: w.inventory,
		Lookup: func(_ context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error) {
			uid, ok := w.cache[namespace+"/"+name]
			if !ok || w.lookupErr != nil {
				return nil, w.lookupErr
			}
			return &v1alpha1.GitOpsDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(uid)}}, nil
		},
		Enqueue: func(namespace, name string) { w.enqueued = append(w.enqueued, namespace+"/"+name) },
		Log:     slog.New(slog.NewTextHandler(w.log, nil)),
	}
	return w
}

func link(uid, name string) store.Link {
	return store.Link{Application: domain.ApplicationID(uid), Tenant: "tenant-a", Namespace: "team-a", Name: name}
}

func TestSweepEnqueuesLinksWithoutTheirDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(link("uid-1", "alive"), link("uid-2", "deleted"), link("uid-3", "replaced"), link("uid-4", "replaced"))
	w.cache = map[string]string{"team-a/alive": "uid-1", "team-a/replaced": "uid-4", "team-b/deleted": "uid-2"}
	found, err := w.Sweep(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"team-a/deleted", "team-a/replaced"}, w.enqueued); diff != "" || found != 2 {
		t.Errorf("found %d, enqueued (-want +got):\n%s", found, diff)
	}
	for _, said := range []string{"uid-2", "uid-3", "tenant-a", "heal=B"} {
		if !strings.Contains(w.log.String(), said) {
			t.Errorf("the log does not say %s:\n%s", said, w.log)
		}
	}
	if strings.Contains(w.log.String(), "uid-1") {
		t.Errorf("the log speaks of what is well:\n%s", w.log)
	}
}

func TestSweepTurnsPages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		links int
		pages []int
	}{
		"none":          {0, []int{0}},
		"exactly full":  {linksPage, []int{linksPage, 0}},
		"two and a bit": {2*linksPage + 1, []int{linksPage, linksPage, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			for i := range c.links {
				w.inventory.links = append(w.inventory.links, link(fmt.Sprintf("uid-%06d", i), fmt.Sprintf("d-%d", i)))
			}
			found, err := w.Sweep(t.Context())
			if err != nil || found != c.links || len(w.enqueued) != c.links {
				t.Errorf("found %d, enqueued %d of %d: %v", found, len(w.enqueued), c.links, err)
			}
			if diff := cmp.Diff(c.pages, w.inventory.pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
		})
	}
}

// What cannot be read is not taken for gone.
func TestSweepStopsAtWhatItCannotRead(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, fault := range map[string]func(*world){
		"the database": func(w *world) { w.inventory.NextErr = away },
		"the cache":    func(w *world) { w.lookupErr = away },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(link("uid-1", "a"))
			fault(w)
			if found, err := w.Sweep(t.Context()); !errors.Is(err, away) || found != 0 || len(w.enqueued) != 0 {
				t.Errorf("found %d, enqueued %v, error %v", found, w.enqueued, err)
			}
		})
	}
}
