// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// DataKeys is where wrapped data keys are kept.
type DataKeys = store.DataKeys

const (
	// cacheSize bounds the data keys in memory, at under 2 KiB each.
	cacheSize = 8192
	// sealFor is how long a data key seals before the database is asked whether it
	// still is the tenant's.
	sealFor = time.Hour
	// SweepAfter is how long the key of a tenant without a row has to be unused before
	// it may be swept (store.DataKeys.SweepDataKeys): much longer than sealFor and the
	// time from sealing a value to writing it, taken together, so that no value can
	// be written that was sealed with a swept key.
	SweepAfter = 24 * time.Hour
	// freshRing is how old the copy of the ring may be that wraps a new data key: after
	// a rotation, new tenants' keys are soon wrapped by the new primary.
	freshRing = time.Minute
)

// Sealer seals and opens values. It is safe for use by many at once.
type Sealer struct {
	keys  DataKeys
	ring  *current
	cache *cache
}

// NewSealer reads the ring, so that a process without one ends at its start
// (ErrNoRing) and not at the first credential.
func NewSealer(ctx context.Context, source Source, keys DataKeys) (*Sealer, error) {
	s := &Sealer{keys: keys, ring: newCurrent(source), cache: newCache(cacheSize)}
	if _, err := s.ring.since(ctx, time.Time{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Seal encrypts a value for its place. The tenant's data key is made where it has
// none yet.
func (s *Sealer) Seal(ctx context.Context, p Place, plaintext []byte) (Sealed, error) {
	if err := p.check(); err != nil {
		return Sealed{}, err
	}
	key, err := s.keyToSeal(ctx, p.Tenant)
	if err != nil {
		return Sealed{}, err
	}
	return key.seal(p, plaintext)
}

// Open decrypts the value of a place. ErrNotAuthentic where it is not what was
// sealed there, ErrUnknownKey where a key is missing.
func (s *Sealer) Open(ctx context.Context, p Place, v Sealed) ([]byte, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	key, err := s.keyToOpen(ctx, p.Tenant, v.KeyID)
	if err != nil {
		return nil, err
	}
	return key.open(p, v.Text)
}

// Forget drops a tenant's data key from memory; the next use asks the database.
func (s *Sealer) Forget(tenant domain.TenantID) { s.cache.forget(tenant) }

func (s *Sealer) keyToSeal(ctx context.Context, tenant domain.TenantID) (dataKey, error) {
	now := time.Now()
	if h, ok := s.cache.get(tenant); ok && now.Before(h.sealUntil) {
		return h.key, nil
	}
	row, err := s.keys.TenantDataKey(ctx, tenant)
	if errors.Is(err, domain.ErrNotFound) {
		row, err = s.addKey(ctx, tenant)
	}
	if err != nil {
		return dataKey{}, err
	}
	key, err := s.unwrap(ctx, row)
	if err != nil {
		return dataKey{}, err
	}
	// Counted from before the database noted the use.
	s.cache.put(held{tenant: tenant, key: key, sealUntil: now.Add(sealFor)})
	return key, nil
}

func (s *Sealer) keyToOpen(ctx context.Context, tenant domain.TenantID, id string) (dataKey, error) {
	if h, ok := s.cache.get(tenant); ok && h.key.id == id {
		return h.key, nil
	}
	row, err := s.keys.DataKey(ctx, tenant, id)
	if errors.Is(err, domain.ErrNotFound) {
		return dataKey{}, &UnknownKeyError{Kind: KindDataKey, ID: id, Tenant: tenant}
	}
	if err != nil {
		return dataKey{}, err
	}
	key, err := s.unwrap(ctx, row)
	if err != nil {
		return dataKey{}, err
	}
	s.cache.put(held{tenant: tenant, key: key})
	return key, nil
}

// addKey gives a tenant its first data key, or the one that somebody else has given
// it meanwhile. The database refuses a ring key that was retired since our copy of
// the ring was read. Before it was retired, the source had another primary, so a
// ring that is read after the refusal and still has the same one is an old one that
// somebody has put back.
func (s *Sealer) addKey(ctx context.Context, tenant domain.TenantID) (store.DataKey, error) {
	refused := ""
	for earliest := time.Now().Add(-freshRing); ; earliest = time.Now() {
		// A ring that cannot be read may have been lost; a data key that only our copy
		// could unwrap would be lost with this process.
		ring, err := s.ring.since(ctx, earliest)
		if err != nil {
			return store.DataKey{}, err
		}
		if ring.Primary() == refused {
			return store.DataKey{}, fmt.Errorf("%w: ring key %s in %s is retired; restore the newest ring, or make a new primary with `weir keys rotate`",
				ErrOldRing, refused, s.ring.source.Where())
		}
		row, err := s.addKeyBy(ctx, ring, tenant)
		if !errors.Is(err, domain.ErrMissingParent) {
			return row, err
		}
		refused = ring.Primary()
	}
}

func (s *Sealer) addKeyBy(ctx context.Context, ring *Ring, tenant domain.TenantID) (store.DataKey, error) {
	plain := newPlainKey(tenant)
	defer plain.forget()
	row, err := ring.wrap(plain)
	if err != nil {
		return store.DataKey{}, err
	}
	return s.keys.AddDataKey(ctx, row)
}

// unwrap makes a row ready for use.
func (s *Sealer) unwrap(ctx context.Context, row store.DataKey) (dataKey, error) {
	ring, row, err := s.ringFor(ctx, row)
	if err != nil {
		return dataKey{}, err
	}
	plain, err := ring.unwrap(row)
	if err != nil {
		return dataKey{}, err
	}
	defer plain.forget()
	return plain.ready()
}

// ringFor gives a ring that has the key that wraps a row, and the row as that key
// wraps it. Where our ring does not have it, the ring is read again. A rotation may
// have gone past the row between the two readings, and dropped the key that the row
// was wrapped by; then the row has changed, and is looked at again. A row that has
// not changed was wrapped by that key all the time, so that it cannot have been
// dropped by a rotation: the key is lost.
func (s *Sealer) ringFor(ctx context.Context, row store.DataKey) (*Ring, store.DataKey, error) {
	ring, _ := s.ring.get()
	for !ring.Has(row.RingKey) {
		var err error
		if ring, err = s.ring.since(ctx, time.Now()); err != nil {
			return nil, row, fmt.Errorf("look for ring key %s: %w", row.RingKey, err)
		}
		if ring.Has(row.RingKey) {
			break
		}
		now, err := s.keys.DataKey(ctx, row.Tenant, row.ID)
		if errors.Is(err, domain.ErrNotFound) {
			return nil, row, &UnknownKeyError{Kind: KindDataKey, ID: row.ID, Tenant: row.Tenant}
		}
		if err != nil {
			return nil, row, err
		}
		if now.RingKey == row.RingKey {
			return nil, row, &UnknownKeyError{Kind: KindRingKey, ID: row.RingKey, Tenant: row.Tenant, Where: s.ring.source.Where()}
		}
		row = now
	}
	return ring, row, nil
}

// String says what it works with, without keys.
func (s *Sealer) String() string {
	if s == nil {
		return "no sealer"
	}
	ring, _ := s.ring.get()
	return fmt.Sprintf("sealer with %v from %s", ring, s.ring.source.Where())
}

// Format has every verb print the same: none may reach the keys.
func (s *Sealer) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// GoString is for those who call it themselves.
func (s *Sealer) GoString() string { return s.String() }

// LogValue is slog's.
func (s *Sealer) LogValue() slog.Value { return slog.StringValue(s.String()) }
