// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/aead/aesgcm"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/weir-gitops/weir/internal/store"
)

// Ring is a set of keys, one of them primary. The primary wraps; all unwrap. A
// ring does not change: Rotated and Without make another one.
type Ring struct {
	// A pointer, so that whoever prints a struct with a Ring in it, past the methods
	// below, gets an address.
	keys *ringKeys
}

type ringKeys struct {
	handle  *keyset.Handle
	aead    tink.AEAD
	ids     []string // primary first, then newest first
	primary string
}

// NewRing makes a ring with one new key.
func NewRing() (*Ring, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	return ringOf(handle)
}

// ParseRing reads what Encode wrote.
func ParseRing(text []byte) (*Ring, error) {
	// Tink's and the JSON decoder's errors may quote what they read, so none of them
	// is passed on.
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(text)))
	if err != nil {
		return nil, ErrDamagedRing
	}
	return ringOf(handle)
}

// ringOf accepts only keys as NewRing makes them: a ring of weaker keys, or of
// keys that leave no id in what they wrap, is nothing we have written.
func ringOf(handle *keyset.Handle) (*Ring, error) {
	k := &ringKeys{handle: handle}
	for i := range handle.Len() {
		entry, err := handle.Entry(i)
		if err != nil {
			return nil, ErrDamagedRing
		}
		p, ok := entry.Key().Parameters().(*aesgcm.Parameters)
		if !ok || p.KeySizeInBytes() != dataKeySize || p.Variant() != aesgcm.VariantTink || entry.KeyStatus() != keyset.Enabled {
			return nil, fmt.Errorf("%w: key %s is not an enabled AES-256-GCM key", ErrDamagedRing, keyID(entry))
		}
		if entry.IsPrimary() {
			k.primary = keyID(entry)
			continue
		}
		k.ids = append(k.ids, keyID(entry))
	}
	slices.Reverse(k.ids)
	k.ids = slices.Insert(k.ids, 0, k.primary)
	var err error
	if k.aead, err = aead.New(handle); err != nil || k.primary == "" {
		return nil, ErrDamagedRing
	}
	return &Ring{keys: k}, nil
}

func keyID(e *keyset.Entry) string { return fmt.Sprintf("%08x", e.KeyID()) }

// Encode gives the ring as JSON, keys in clear text: for a file that only its
// owner can read, or a Kubernetes Secret, and nowhere else.
func (r *Ring) Encode() ([]byte, error) {
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(r.keys.handle, keyset.NewJSONWriter(&text)); err != nil {
		return nil, fmt.Errorf("encode the key ring: %w", err)
	}
	return text.Bytes(), nil
}

// Primary is the id of the key that wraps.
func (r *Ring) Primary() string { return r.keys.primary }

// KeyIDs lists the ids of all keys, the primary first, then the newest first.
func (r *Ring) KeyIDs() []string { return slices.Clone(r.keys.ids) }

// Has says whether the ring has a key.
func (r *Ring) Has(id string) bool { return slices.Contains(r.keys.ids, id) }

// Rotated is the ring with a new primary. The older keys still unwrap.
func (r *Ring) Rotated() (*Ring, error) {
	m := keyset.NewManagerFromHandle(r.keys.handle)
	id, err := m.Add(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	if err := m.SetPrimary(id); err != nil {
		return nil, fmt.Errorf("make key %08x primary: %w", id, err)
	}
	return fromManager(m)
}

var errPrimaryStays = errors.New("the primary key cannot be dropped")

// Without is the ring without some of its older keys. It says nothing about
// whether a data key still needs them; see Rotate.
func (r *Ring) Without(ids ...string) (*Ring, error) {
	m := keyset.NewManagerFromHandle(r.keys.handle)
	for i := range r.keys.handle.Len() {
		entry, err := r.keys.handle.Entry(i)
		if err != nil {
			return nil, ErrDamagedRing
		}
		if !slices.Contains(ids, keyID(entry)) {
			continue
		}
		if entry.IsPrimary() {
			return nil, fmt.Errorf("key %s: %w", keyID(entry), errPrimaryStays)
		}
		if err := m.Delete(entry.KeyID()); err != nil {
			return nil, fmt.Errorf("drop key %s: %w", keyID(entry), err)
		}
	}
	return fromManager(m)
}

func fromManager(m *keyset.Manager) (*Ring, error) {
	handle, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("make the key ring: %w", err)
	}
	return ringOf(handle)
}

// wrap encrypts a data key by the primary, and gives its row.
func (r *Ring) wrap(k plainKey) (store.DataKey, error) {
	wrapped, err := r.keys.aead.Encrypt(k.bytes, k.associated())
	if err != nil {
		return store.DataKey{}, fmt.Errorf("wrap data key %s: %w", k.id, err)
	}
	return store.DataKey{ID: k.id, Tenant: k.tenant, RingKey: r.keys.primary, Wrapped: wrapped}, nil
}

// unwrap decrypts a data key that one of the ring's keys wraps.
func (r *Ring) unwrap(row store.DataKey) (plainKey, error) {
	k := plainKey{id: row.ID, tenant: row.Tenant}
	raw, err := r.keys.aead.Decrypt(row.Wrapped, k.associated())
	if err != nil || len(raw) != dataKeySize {
		return plainKey{}, fmt.Errorf("data key %s of tenant %s: %w", row.ID, row.Tenant, ErrNotAuthentic)
	}
	k.bytes = raw
	return k, nil
}

// String names the keys, without what is in them.
func (r Ring) String() string {
	if r.keys == nil {
		return "key ring (empty)"
	}
	return fmt.Sprintf("key ring (primary %s, %d keys)", r.keys.primary, len(r.keys.ids))
}

// Format has every verb print the same: none may reach the keys.
func (r Ring) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, r.String()) }

// GoString is for those who call it themselves.
func (r Ring) GoString() string { return r.String() }

// LogValue is slog's.
func (r Ring) LogValue() slog.Value { return slog.StringValue(r.String()) }
