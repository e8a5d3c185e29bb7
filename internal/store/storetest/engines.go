// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"sync"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func testRegisterEngine(t *testing.T, w world) {
	ctx := t.Context()
	i := store.Instance{ID: engine, Cluster: cluster, Namespace: "argocd", Kind: store.EngineArgoCD}
	// Both agents of a rollout register at once.
	var (
		wg   sync.WaitGroup
		errs [4]error
	)
	for n := range errs {
		s := []store.Store{w.Store, w.Another}[n%2]
		wg.Go(func() { errs[n] = s.RegisterEngine(ctx, i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	list := func() []store.Instance {
		got, err := w.Store.Instances(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	same(t, "instances", []store.Instance{i}, list())
	if n := w.count(t, "gitops_engine_instance WHERE ready"); n != 1 {
		t.Error("the instance is not ready")
	}
	for _, from := range []string{
		"gitops_engine_cluster",
		"kubernetes_to_db_resource_mapping WHERE kubernetes_resource_uid = 'kube-system-uid' AND db_relation_type = 'GitopsEngineCluster' AND db_relation_key = 'kube-system-uid'",
		"kubernetes_to_db_resource_mapping WHERE kubernetes_resource_uid = 'engine-uid' AND db_relation_type = 'GitopsEngineInstance' AND db_relation_key = 'engine-uid'",
	} {
		if n := w.count(t, from); n != 1 {
			t.Errorf("%d rows in %s, want 1", n, from)
		}
	}
	w.exec(t, `UPDATE gitops_engine_instance SET ready = FALSE`)
	i.Kind = store.EngineBuiltIn
	second := store.Instance{ID: "engine-2", Cluster: cluster, Namespace: "other", Kind: store.EngineNone}
	for _, r := range []store.Instance{i, second} {
		if err := w.Store.RegisterEngine(ctx, r); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "instances after registering again", []store.Instance{second, i}, list())
	if n := w.count(t, "gitops_engine_instance WHERE ready"); n != 2 {
		t.Error("registering again did not make the instance ready")
	}
}

func testInventory(t *testing.T, w world) {
	w.register(t, engine, "engine-2")
	var (
		links        []store.Link
		applications []store.Application
	)
	// Byte order, in which capitals come before small letters: whoever merges
	// pages with a list of their own compares that way.
	for _, uid := range []domain.ApplicationID{"B", "Z", "a", "b", "z"} {
		c := creating(row(alice, uid))
		w.apply(t, c)
		a := c.Insert.Application
		a.Version = 1
		links, applications = append(links, c.Insert.Link), append(applications, a)
	}
	other := row(bob, "bobs")
	other.Instance = "engine-2"
	c := creating(other)
	c.Tenant.Instance = "engine-2"
	w.apply(t, c)

	same(t, "applications of an instance", applications, paged(t, func(after store.Application) ([]store.Application, error) {
		return w.Store.Applications(t.Context(), engine, after.ID, 2)
	}))
	got := paged(t, func(after store.Link) ([]store.Link, error) {
		return w.Store.Links(t.Context(), after.Application, 2)
	})
	want := append(append([]store.Link{}, links[:4]...), c.Insert.Link, links[4])
	same(t, "links", want, got)
	all, err := w.Store.Applications(t.Context(), "", "", 100)
	if err != nil || len(all) != 6 {
		t.Errorf("%d applications of all instances, %v; want 6", len(all), err)
	}
}
