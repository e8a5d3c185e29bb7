// SPDX-License-Identifier: Apache-2.0

package seal_test

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

func TestRoundTrips(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	for name, value := range map[string]string{
		"empty":        "",
		"a password":   "hunter2",
		"an SSH key":   strings.Repeat("-----BEGIN OPENSSH PRIVATE KEY-----\n", 400),
		"any bytes":    "\x00\xff\xfe\x00",
		"a kubeconfig": strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			p := place("alice", name)
			v, again := sealed(t, s, p, value), sealed(t, s, p, value)
			opens(t, s, p, v, value)
			if bytes.Equal(v.Text, again.Text) {
				t.Error("the same value sealed twice is the same text")
			}
			if v.KeyID == "" || v.KeyID != again.KeyID {
				t.Errorf("key ids %q and %q, want one", v.KeyID, again.KeyID)
			}
			// Another process, without anything in memory.
			opens(t, newSealer(t, source, db), p, again, value)
		})
	}
}

func TestIncompletePlaces(t *testing.T) {
	db, _ := newSQLite(t)
	s := newSealer(t, newRingFile(t), db)
	v := sealed(t, s, place("alice", "1"), canary)
	for _, p := range []seal.Place{
		{},
		{Table: "t", Row: "r", Column: "c"},
		{Tenant: "a", Row: "r", Column: "c"},
		{Tenant: "a", Table: "t", Column: "c"},
		{Tenant: "a", Table: "t", Row: "r"},
	} {
		_, err := s.Seal(t.Context(), p, []byte(canary))
		wantError(t, "seal", err, seal.ErrIncompletePlace)
		_, err = s.Open(t.Context(), p, v)
		wantError(t, "open", err, seal.ErrIncompletePlace)
	}
}

// What somebody with access to the tables, but not to the ring, can do by moving
// things around.
func TestSwappedRowsDoNotOpen(t *testing.T) {
	db, path := newSQLite(t)
	source := newRingFile(t)
	s := newSealer(t, source, db)
	a1, a2, b1 := place("alice", "1"), place("alice", "2"), place("bob", "1")
	va1, va2, vb1 := sealed(t, s, a1, "one"), sealed(t, s, a2, "two"), sealed(t, s, b1, "bobs")
	for _, c := range []struct {
		name string
		at   seal.Place
		v    seal.Sealed
		want error
	}{
		{"another row's text", a1, va2, seal.ErrNotAuthentic},
		{"and the other way round", a2, va1, seal.ErrNotAuthentic},
		{"another tenant's text and key id", a1, vb1, seal.ErrUnknownKey},
		{"another tenant's text", a1, seal.Sealed{KeyID: va1.KeyID, Text: vb1.Text}, seal.ErrNotAuthentic},
		{"another tenant's key id", a1, seal.Sealed{KeyID: vb1.KeyID, Text: va1.Text}, seal.ErrUnknownKey},
		{"no text", a1, seal.Sealed{KeyID: va1.KeyID}, seal.ErrNotAuthentic},
		{"nothing", a1, seal.Sealed{}, seal.ErrUnknownKey},
		{"plain text", a1, seal.Sealed{KeyID: va1.KeyID, Text: []byte("one")}, seal.ErrNotAuthentic},
	} {
		for _, s := range []*seal.Sealer{s, newSealer(t, source, db)} {
			got, err := s.Open(t.Context(), c.at, c.v)
			wantError(t, c.name, err, c.want)
			if got != nil {
				t.Errorf("%s: opened to something", c.name)
			}
		}
	}

	// The data keys themselves: alice's row gets what bob's row has, so that bob's text
	// would open for alice.
	raw := openRaw(t, "sqlite", path)
	if _, err := raw.ExecContext(t.Context(), `UPDATE data_key SET wrapped = (SELECT wrapped FROM data_key WHERE tenant = 'bob')`); err != nil {
		t.Fatal(err)
	}
	fresh := newSealer(t, source, db)
	_, err := fresh.Open(t.Context(), a1, va1)
	wantError(t, "another tenant's data key", err, seal.ErrNotAuthentic)
	_, err = fresh.Seal(t.Context(), a1, []byte(canary))
	wantError(t, "sealing with another tenant's data key", err, seal.ErrNotAuthentic)
	opens(t, fresh, b1, vb1, "bobs")
}

// Several processes meet a new tenant at once: what one seals, the others open.
func TestFirstUseAtOnce(t *testing.T) {
	dsn := pg.Shared(t).NewDatabase(t)
	source := newRingFile(t)
	var (
		wg      sync.WaitGroup
		sealers [4]*seal.Sealer
		values  [4]seal.Sealed
		errs    [4]error
	)
	for i := range sealers {
		sealers[i] = newSealer(t, source, newPostgres(t, dsn))
	}
	for i, s := range sealers {
		wg.Go(func() { values[i], errs[i] = s.Seal(t.Context(), place("alice", "1"), []byte(canary)) })
	}
	wg.Wait()
	for i := range values {
		if errs[i] != nil {
			t.Fatal(errs[i])
		}
		if values[i].KeyID != values[0].KeyID {
			t.Errorf("two data keys for one tenant: %s and %s", values[i].KeyID, values[0].KeyID)
		}
		for _, s := range sealers {
			opens(t, s, place("alice", "1"), values[i], canary)
		}
	}
}

func TestWithoutRing(t *testing.T) {
	db, _ := newSQLite(t)
	path := filepath.Join(t.TempDir(), "ring.json")
	_, err := seal.NewSealer(t.Context(), seal.NewFile(path), db)
	wantError(t, "without a ring", err, seal.ErrNoRing)
	for _, words := range []string{path, "weir keys create --key-ring " + path} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("the message %q does not say %q", err, words)
		}
	}
}

// A ring that is lost while the process runs: what is in memory still works, but
// no data key is made that only this process could unwrap.
func TestRingLostWhileRunning(t *testing.T) {
	db, _ := newSQLite(t)
	source := &switchable{Source: newRingFile(t)}
	synctest.Test(t, func(t *testing.T) {
		s := newSealer(t, source, db)
		v := sealed(t, s, place("alice", "1"), canary)
		source.Source = seal.NewFile(filepath.Join(t.TempDir(), "gone"))
		time.Sleep(2 * time.Hour)
		opens(t, s, place("alice", "1"), v, canary)
		opens(t, s, place("alice", "2"), sealed(t, s, place("alice", "2"), "x"), "x")
		_, err := s.Seal(t.Context(), place("bob", "1"), []byte(canary))
		wantError(t, "a new tenant", err, seal.ErrNoRing)
	})
	if _, err := db.TenantDataKey(t.Context(), "bob"); err == nil {
		t.Error("a data key was made without a ring")
	}
}

type switchable struct{ seal.Source }

// A data key whose ring key nobody has: named, with what to do, after one look at
// the source.
func TestUnknownRingKey(t *testing.T) {
	db, _ := newSQLite(t)
	v := sealed(t, newSealer(t, newRingFile(t), db), place("alice", "1"), canary)
	key, err := db.TenantDataKey(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	source := &countingSource{Source: newRingFile(t)} // another ring
	s := newSealer(t, source, db)
	_, opening := s.Open(t.Context(), place("alice", "1"), v)
	_, sealing := s.Seal(t.Context(), place("alice", "1"), []byte(canary))
	for _, err := range []error{opening, sealing} {
		wantError(t, "with another ring", err, seal.ErrUnknownKey)
		for _, words := range []string{key.RingKey, "alice", source.Where(), "restore", "weir keys show"} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("the message %q does not say %q", err, words)
			}
		}
	}
	if n := source.loads.Load(); n != 3 {
		t.Errorf("read the ring %d times, want once at the start and once for each try", n)
	}
	// Nobody else is in the way.
	opens(t, s, place("bob", "1"), sealed(t, s, place("bob", "1"), "x"), "x")
}

// asked counts how often the database was asked for a tenant's key.
type asked struct {
	seal.DataKeys
	tenant, byID int
}

func (a *asked) TenantDataKey(ctx context.Context, tenant domain.TenantID) (store.DataKey, error) {
	a.tenant++
	return a.DataKeys.TenantDataKey(ctx, tenant)
}

func (a *asked) DataKey(ctx context.Context, tenant domain.TenantID, id string) (store.DataKey, error) {
	a.byID++
	return a.DataKeys.DataKey(ctx, tenant, id)
}

// Data keys are kept in memory, but not sealed with for ever: the database has to
// know that they are in use.
func TestDataKeysAreKeptForAWhile(t *testing.T) {
	db, _ := newSQLite(t)
	source := newRingFile(t)
	keys := &asked{DataKeys: db}
	synctest.Test(t, func(t *testing.T) {
		s := newSealer(t, source, keys)
		v := sealed(t, s, place("alice", "1"), canary)
		for range 10 {
			sealed(t, s, place("alice", "1"), canary)
			opens(t, s, place("alice", "1"), v, canary)
		}
		if keys.tenant != 1 || keys.byID != 0 {
			t.Errorf("asked %d times for the tenant's key and %d times by id, want once and never", keys.tenant, keys.byID)
		}
		time.Sleep(time.Hour)
		sealed(t, s, place("alice", "1"), canary)
		if keys.tenant != 2 {
			t.Errorf("asked %d times for the tenant's key after an hour, want once more", keys.tenant)
		}
		s.Forget("alice")
		opens(t, s, place("alice", "1"), v, canary)
		if keys.byID != 1 {
			t.Errorf("asked %d times by id after Forget, want once", keys.byID)
		}
	})
	if seal.SweepAfter < 12*time.Hour {
		t.Error("keys may be swept while they are in use")
	}
}
