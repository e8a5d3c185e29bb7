// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// world is a store with a scope for each kind, filled by hand.
type world struct {
	*store
	byKind map[schema.GroupKind]*scope
	uids   map[string]string
	clock  int
}

func newWorld(labels ...string) *world {
	return &world{store: newStore(labels, nil), byKind: map[schema.GroupKind]*scope{}, uids: map[string]string{}}
}

func (w *world) scopeOf(gk schema.GroupKind) *scope {
	if w.byKind[gk] == nil {
		w.byKind[gk] = w.open(gk)
	}
	return w.byKind[gk]
}

// uidFor gives the same UID for the same text.
func (w *world) uidFor(text string) string {
	if w.uids[text] == "" {
		w.uids[text] = fmt.Sprintf("00000000-0000-4000-8000-%012x", len(w.uids)+1)
	}
	return w.uids[text]
}

// parse reads Kind.group namespace/name.
func parse(text string) ResourceID {
	kind, name, _ := strings.Cut(text, " ")
	gk := schema.ParseGroupKind(kind)
	id := ResourceID{Group: gk.Group, Kind: gk.Kind, Name: name}
	if ns, name, ok := strings.Cut(name, "/"); ok {
		id.Namespace, id.Name = ns, name
	}
	return id
}

// meta makes an object; owners are texts that were, or will be, put.
func (w *world) meta(text string, owners ...string) *metav1.PartialObjectMetadata {
	id := parse(text)
	w.clock++
	m := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: id.Namespace, Name: id.Name, UID: types.UID(w.uidFor(text)), ResourceVersion: fmt.Sprint(w.clock),
	}}
	for _, owner := range owners {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: types.UID(w.uidFor(owner))})
	}
	return m
}

func (w *world) putMeta(text string, m *metav1.PartialObjectMetadata) change {
	id := parse(text)
	return w.upsert(w.scopeOf(schema.GroupKind{Group: id.Group, Kind: id.Kind}), m)
}

func (w *world) put(text string, owners ...string) change {
	return w.putMeta(text, w.meta(text, owners...))
}

func (w *world) drop(text string) bool {
	id := parse(text)
	return w.forget(w.scopeOf(schema.GroupKind{Group: id.Group, Kind: id.Kind}), &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name},
	})
}

func (w *world) treeOf(roots ...string) []string {
	var ids []ResourceID
	for _, root := range roots {
		ids = append(ids, parse(root))
	}
	return texts(w.tree(ids))
}

func texts(ids []ResourceID) []string {
	var all []string
	for _, id := range ids {
		all = append(all, id.String())
	}
	return all
}

func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.Sort(all)
	return all
}

func wantSame(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("%s:\n got %q\nwant %q", what, sorted(got), sorted(want))
	}
}
