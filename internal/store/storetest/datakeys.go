// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

func dataKey(tenant domain.TenantID, id, ringKey string) store.DataKey {
	return store.DataKey{ID: id, Tenant: tenant, RingKey: ringKey, Wrapped: []byte{0, 0xff, 'w', id[len(id)-1]}}
}

func (w world) addDataKey(t *testing.T, k store.DataKey) {
	t.Helper()
	got, err := w.Store.AddDataKey(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the added data key", k, got)
}

func testDataKey(t *testing.T, w world) {
	ctx := t.Context()
	_, err := w.Store.TenantDataKey(ctx, alice)
	wantError(t, "the key of a tenant without one", err, domain.ErrNotFound)

	// No row of the tenant is needed: the first credential is sealed before.
	key := dataKey(alice, "key-1", "ring-1")
	w.addDataKey(t, key)
	got, err := w.Store.AddDataKey(ctx, dataKey(alice, "key-2", "ring-2"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "adding a second key gives the first", key, got)
	for name, read := range map[string]func() (store.DataKey, error){
		"TenantDataKey": func() (store.DataKey, error) { return w.Store.TenantDataKey(ctx, alice) },
		"DataKey":       func() (store.DataKey, error) { return w.Another.DataKey(ctx, alice, "key-1") },
	} {
		got, err := read()
		if err != nil {
			t.Fatal(err)
		}
		same(t, name, key, got)
	}

	w.addDataKey(t, dataKey(bob, "key-3", "ring-1"))
	for _, c := range []struct {
		tenant domain.TenantID
		id     string
	}{{alice, "key-2"}, {alice, "key-3"}, {bob, "key-1"}, {"", "key-1"}} {
		_, err := w.Store.DataKey(ctx, c.tenant, c.id)
		wantError(t, fmt.Sprintf("key %s of %q", c.id, c.tenant), err, domain.ErrNotFound)
	}
	_, err = w.Store.AddDataKey(ctx, dataKey("carol", "key-3", "ring-1"))
	wantError(t, "another tenant's id", err, domain.ErrConflict)
}

func testRewrap(t *testing.T, w world) {
	ctx := t.Context()
	var old []store.DataKey
	for n := range 5 {
		k := dataKey(domain.TenantID(fmt.Sprintf("tenant-%d", n)), fmt.Sprintf("key-%d", n), fmt.Sprintf("ring-%d", n%2+1))
		w.addDataKey(t, k)
		old = append(old, k)
	}
	w.addDataKey(t, dataKey(alice, "key-new", "ring-3"))
	page := func(after store.DataKey) ([]store.DataKey, error) {
		return w.Store.DataKeysToRewrap(ctx, "ring-3", after.ID, 2)
	}
	same(t, "keys to wrap anew", old, paged(t, page))
	counts := func(want map[string]int) {
		t.Helper()
		got, err := w.Store.CountDataKeys(ctx)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "counts", want, got)
	}
	counts(map[string]int{"ring-1": 3, "ring-2": 2, "ring-3": 1})

	for _, k := range old[:4] {
		if err := w.Store.RewrapDataKey(ctx, k, "ring-3", []byte("anew")); err != nil {
			t.Fatal(err)
		}
		wantError(t, "the same once more", w.Store.RewrapDataKey(ctx, k, "ring-3", []byte("late")), domain.ErrConflict)
	}
	same(t, "keys left", old[4:], paged(t, page))
	counts(map[string]int{"ring-1": 1, "ring-3": 5})
	got, err := w.Store.DataKey(ctx, old[0].Tenant, old[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "a key wrapped anew", store.DataKey{ID: "key-0", Tenant: "tenant-0", RingKey: "ring-3", Wrapped: []byte("anew")}, got)

	foreign := old[4]
	foreign.Tenant = alice
	wantError(t, "under another tenant", w.Store.RewrapDataKey(ctx, foreign, "ring-3", []byte("x")), domain.ErrConflict)
}

func testRetire(t *testing.T, w world) {
	ctx := t.Context()
	key := dataKey(alice, "key-1", "ring-1")
	w.addDataKey(t, key)
	wantError(t, "retiring a ring key in use", w.Store.RetireRingKey(ctx, "ring-1"), domain.ErrConflict)
	if err := w.Store.RewrapDataKey(ctx, key, "ring-2", []byte("anew")); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second finds nothing to do
		if err := w.Store.RetireRingKey(ctx, "ring-1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Store.RetireRingKey(ctx, "ring-0"); err != nil {
		t.Errorf("retiring one that never wrapped anything: %v", err)
	}
	for _, ringKey := range []string{"ring-0", "ring-1"} {
		_, err := w.Another.AddDataKey(ctx, dataKey(bob, "key-2", ringKey))
		wantError(t, "wrapping by retired "+ringKey, err, domain.ErrMissingParent)
	}
	now, err := w.Store.TenantDataKey(ctx, alice)
	if err != nil {
		t.Fatal(err)
	}
	wantError(t, "wrapping anew by a retired one", w.Store.RewrapDataKey(ctx, now, "ring-1", []byte("x")), domain.ErrMissingParent)
	// Who comes late with a retired ring key, but for a tenant that has its key,
	// adds nothing and is told the tenant's key.
	got, err := w.Another.AddDataKey(ctx, dataKey(alice, "key-3", "ring-1"))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the tenant's key", now, got)
}

func testSweepDataKeys(t *testing.T, w world) {
	ctx := t.Context()
	w.register(t, engine)
	w.create(t, bob, "uid-1")
	for _, tenant := range []domain.TenantID{alice, bob, "carol", "dave", domain.InternalTenant} {
		w.addDataKey(t, dataKey(tenant, "key-"+string(tenant), "ring-1"))
	}
	long := time.Now().Add(-48 * time.Hour)
	w.exec(t, `UPDATE data_key SET used_on = $1`, w.Time(long))
	if _, err := w.Store.TenantDataKey(ctx, alice); err != nil { // asked for just now
		t.Fatal(err)
	}
	if _, err := w.Store.DataKey(ctx, "carol", "key-carol"); err != nil { // only opened with
		t.Fatal(err)
	}
	sweep := func(since time.Time, limit, want int) {
		t.Helper()
		n, err := w.Store.SweepDataKeys(ctx, since, limit)
		if err != nil || n != want {
			t.Errorf("swept %d, %v; want %d", n, err, want)
		}
	}
	sweep(long, 10, 0)
	day := time.Now().Add(-24 * time.Hour)
	sweep(day, 1, 1)
	sweep(day, 10, 1)
	sweep(day, 10, 0)
	left, err := w.Store.DataKeysToRewrap(ctx, "none", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	var tenants []domain.TenantID
	for _, k := range left {
		tenants = append(tenants, k.Tenant)
	}
	same(t, "who still has a key", []domain.TenantID{alice, bob, domain.InternalTenant}, tenants)
	// A tenant that went: its key follows.
	w.exec(t, `DELETE FROM application WHERE tenant = $1`, bob)
	w.exec(t, `DELETE FROM cluster_user WHERE id = $1`, bob)
	sweep(day, 10, 1)
}

func testDataKeyConstraints(t *testing.T, w world) {
	w.addDataKey(t, dataKey(alice, "key-1", "ring-1"))
	w.refused(t, []refusal{
		{`INSERT INTO data_key (id, tenant, ring_key_id, wrapped) SELECT '', 'x', ring_key_id, wrapped FROM data_key`, Check},
		{`INSERT INTO data_key (id, tenant, ring_key_id, wrapped) SELECT 'k', '', ring_key_id, wrapped FROM data_key`, Check},
		{`INSERT INTO data_key (id, tenant, ring_key_id, wrapped) SELECT 'k', 'x', 'unknown', wrapped FROM data_key`, MissingParent},
		{`INSERT INTO data_key (id, tenant, ring_key_id, wrapped) SELECT 'k', tenant, ring_key_id, wrapped FROM data_key`, Duplicate},
		{`INSERT INTO data_key (id, tenant, ring_key_id, wrapped) SELECT 'k', 'x', ring_key_id, NULL FROM data_key`, NotNull},
		{`UPDATE data_key SET ring_key_live = FALSE`, Check},
		{`DELETE FROM ring_key`, MissingParent},
		{`INSERT INTO ring_key (id, live) VALUES ('', TRUE)`, Check},
	})
}

// testFirstDataKeyRace: whoever is first, all seal with one key. The ring key is new
// to the database, too.
func testFirstDataKeyRace(t *testing.T, w world) {
	ctx := t.Context()
	for round := range 10 {
		var (
			wg      sync.WaitGroup
			got     [8]store.DataKey
			errs    [8]error
			tenant  = domain.TenantID(fmt.Sprintf("tenant-%d", round))
			ringKey = fmt.Sprintf("ring-%d", round)
		)
		for n := range got {
			s := []store.Store{w.Store, w.Another}[n%2]
			wg.Go(func() {
				got[n], errs[n] = s.AddDataKey(ctx, dataKey(tenant, fmt.Sprintf("key-%d-%d", round, n), ringKey))
			})
		}
		wg.Wait()
		for n := range got {
			if errs[n] != nil {
				t.Fatal(errs[n])
			}
			same(t, "the key that everybody gets", got[0], got[n])
		}
	}
	if n := w.count(t, "data_key"); n != 10 {
		t.Errorf("%d data keys, want one for each tenant", n)
	}
}

// testRetireRace: of retiring a ring key and wrapping a data key by it, one is
// refused, whichever comes first.
func testRetireRace(t *testing.T, w world) {
	ctx := t.Context()
	for round := range 10 {
		ringKey := fmt.Sprintf("ring-%d", round)
		var (
			wg                    sync.WaitGroup
			adding, ending, again error
		)
		wg.Go(func() {
			_, adding = w.Store.AddDataKey(ctx, dataKey(domain.TenantID(ringKey), "key-"+ringKey, ringKey))
		})
		wg.Go(func() { ending = w.Another.RetireRingKey(ctx, ringKey) })
		wg.Go(func() { again = w.Store.RetireRingKey(ctx, ringKey) })
		wg.Wait()
		if (again == nil) != (ending == nil) || again != nil && !errors.Is(again, domain.ErrConflict) {
			t.Errorf("retiring twice at once: %v and %v", ending, again)
		}
		added := adding == nil && errors.Is(ending, domain.ErrConflict)
		retired := ending == nil && errors.Is(adding, domain.ErrMissingParent)
		if added == retired {
			t.Errorf("adding: %v, retiring: %v; want one of them refused", adding, ending)
		}
	}
}

// insertDataKeyAt is insertAt for data keys, which came with version 4.
func insertDataKeyAt(t *testing.T, raw *sql.DB, version int64) {
	t.Helper()
	if version < 4 {
		return
	}
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO ring_key (id, live) VALUES ('old-ring', TRUE)`); err != nil {
		t.Fatal(err)
	}
	k := dataKey("old", "old-key", "old-ring")
	if _, err := raw.ExecContext(t.Context(), `INSERT INTO data_key (id, tenant, ring_key_id, wrapped) VALUES ($1, $2, $3, $4)`,
		k.ID, k.Tenant, k.RingKey, k.Wrapped); err != nil {
		t.Fatal(err)
	}
}

func checkDataKeyAfter(t *testing.T, w world, version int64) {
	t.Helper()
	if version < 4 {
		// What had no data keys can have them now.
		w.addDataKey(t, dataKey("old", "old-key", "old-ring"))
	}
	got, err := w.Store.TenantDataKey(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the data key", dataKey("old", "old-key", "old-ring"), got)
}
