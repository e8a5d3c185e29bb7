// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/domain"
)

func drawPlace(t *rapid.T, name string) Place {
	// A small alphabet, so that neighbouring parts often differ only in where one ends
	// and the next begins.
	part := rapid.StringMatching(`[a-b\x00]{1,4}`)
	return Place{
		Tenant: domain.TenantID(part.Draw(t, name+" tenant")), Table: part.Draw(t, name+" table"),
		Row: part.Draw(t, name+" row"), Column: part.Draw(t, name+" column"),
	}
}

func newDataKey(t interface{ Fatal(...any) }, tenant domain.TenantID) dataKey {
	plain := newPlainKey(tenant)
	key, err := plain.ready()
	if err != nil {
		t.Fatal(err)
	}
	plain.forget() // must not disturb the key that was made of it
	return key
}

// Here the data key is the same for all places, so that nothing but the place
// keeps them apart.
func TestValueOpensInItsPlaceOnly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		here, there := drawPlace(t, "here"), drawPlace(t, "there")
		value := rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "value")
		key := newDataKey(t, here.Tenant)
		v, err := key.seal(here, value)
		if err != nil {
			t.Fatal(err)
		}
		got, err := key.open(here, v.Text)
		if err != nil || !bytes.Equal(got, value) {
			t.Fatalf("opened to %x, %v; want %x", got, err, value)
		}
		got, err = key.open(there, v.Text)
		if moved := here != there; moved && (!errors.Is(err, ErrNotAuthentic) || got != nil) {
			t.Fatalf("a value of %v opened in %v: %v", here, there, err)
		}
	})
}

func TestAnyOnePartMatters(t *testing.T) {
	here := Place{Tenant: "alice", Table: "repository_credentials", Row: "1", Column: "sealed_password"}
	key := newDataKey(t, here.Tenant)
	v, err := key.seal(here, []byte("value"))
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*Place){
		"tenant":            func(p *Place) { p.Tenant = "bob" },
		"table":             func(p *Place) { p.Table = "cluster_credentials" },
		"row":               func(p *Place) { p.Row = "2" },
		"column":            func(p *Place) { p.Column = "sealed_username" },
		"where a part ends": func(p *Place) { p.Table += p.Row[:1]; p.Row = p.Row[1:] + "x" },
	} {
		there := here
		change(&there)
		if _, err := key.open(there, v.Text); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("with another %s: %v, want %v", name, err, ErrNotAuthentic)
		}
	}
	if _, err := newDataKey(t, here.Tenant).open(here, v.Text); !errors.Is(err, ErrNotAuthentic) {
		t.Errorf("with another data key: %v, want %v", err, ErrNotAuthentic)
	}
}

// Every byte of a sealed text is authenticated, and so is its length.
func TestChangedTextDoesNotOpen(t *testing.T) {
	here := Place{Tenant: "alice", Table: "t", Row: "r", Column: "c"}
	key := newDataKey(t, here.Tenant)
	rapid.Check(t, func(t *rapid.T) {
		v, err := key.seal(here, rapid.SliceOfN(rapid.Byte(), 0, 64).Draw(t, "value"))
		if err != nil {
			t.Fatal(err)
		}
		flip := rapid.ByteRange(1, 255).Draw(t, "flip")
		for i := range v.Text {
			changed := bytes.Clone(v.Text)
			changed[i] ^= flip
			if _, err := key.open(here, changed); !errors.Is(err, ErrNotAuthentic) {
				t.Fatalf("byte %d flipped by %x: %v", i, flip, err)
			}
			if _, err := key.open(here, v.Text[:i]); !errors.Is(err, ErrNotAuthentic) {
				t.Fatalf("cut to %d bytes: %v", i, err)
			}
		}
		if _, err := key.open(here, append(bytes.Clone(v.Text), flip)); !errors.Is(err, ErrNotAuthentic) {
			t.Fatalf("with a byte more: %v", err)
		}
	})
}

// A wrapped data key is bound to its tenant and its id.
func TestWrappedKeyBelongsToItsRow(t *testing.T) {
	ring, err := NewRing()
	if err != nil {
		t.Fatal(err)
	}
	row, err := ring.wrap(newPlainKey("alice"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ring.unwrap(row); err != nil {
		t.Fatal(err)
	}
	stolen := row
	stolen.Tenant = "bob"
	renamed := row
	renamed.ID = "another"
	flipped := row
	flipped.Wrapped = bytes.Clone(row.Wrapped)
	flipped.Wrapped[len(flipped.Wrapped)-1] ^= 1
	for name, changed := range map[string]func() error{
		"another tenant's": func() error { _, err := ring.unwrap(stolen); return err },
		"under another id": func() error { _, err := ring.unwrap(renamed); return err },
		"changed":          func() error { _, err := ring.unwrap(flipped); return err },
	} {
		if err := changed(); !errors.Is(err, ErrNotAuthentic) {
			t.Errorf("%s: %v, want %v", name, err, ErrNotAuthentic)
		}
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(3)
	for _, tenant := range []domain.TenantID{"a", "b", "c"} {
		c.put(held{tenant: tenant, key: dataKey{id: "key-" + string(tenant)}})
	}
	if _, ok := c.get("a"); !ok { // used last from now on
		t.Fatal("a is gone")
	}
	c.put(held{tenant: "d"})
	if _, ok := c.get("b"); ok || c.len() != 3 {
		t.Errorf("%d keys, and the one not used for longest is kept: %v", c.len(), ok)
	}
	if h, ok := c.get("a"); !ok || h.key.id != "key-a" {
		t.Error("the one used last is gone")
	}
	c.forget("a")
	if _, ok := c.get("a"); ok || c.len() != 2 {
		t.Error("forgetting did nothing")
	}
}
