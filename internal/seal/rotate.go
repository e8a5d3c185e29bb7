// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// RotateOptions say how a rotation goes.
type RotateOptions struct {
	// Prune drops the ring's older keys at the end, as far as no data key needs them.
	Prune bool
	// Progress is called after each page of data keys; may be nil.
	Progress func(Progress)
}

// Progress is how far a rotation has come.
type Progress struct {
	// Primary is the ring key that data keys are being wrapped by.
	Primary string
	// Done of Total data keys have been looked at. Total is an estimate: tenants come
	// and go meanwhile.
	Done, Total int
}

// Rotation is what a rotation did.
type Rotation struct {
	Primary string
	// Resumed says that an earlier rotation had been left unfinished. It was
	// finished, and no further ring key was made.
	Resumed   bool
	Rewrapped int
	// Dropped are the older keys that left the ring; InUse are those that were to
	// leave it, but that something still needs.
	Dropped, InUse []string
}

const rewrapPage = 200

// Rotate gives the ring a new primary and wraps every data key by it, while others
// go on sealing and opening. It may be interrupted and run again: where data keys
// are left that an older key of the ring wraps, it finishes those first, and makes
// no new key.
//
// A data key that cannot be unwrapped does not hold up the others. It is named in
// the error, after everything else has been done; the ring keys that it needs are
// not dropped.
func Rotate(ctx context.Context, source Writable, keys DataKeys, o RotateOptions) (Rotation, error) {
	ring, err := source.Load(ctx)
	if err != nil {
		return Rotation{}, err
	}
	r := &rotation{source: source, keys: keys, options: o, lost: make(map[string]bool)}
	result := Rotation{Primary: ring.Primary()}
	var problems error
	result.Rewrapped, problems, err = r.rewrapAll(ctx, ring)
	if err != nil && !errors.Is(err, ErrOldRing) {
		return result, err
	}
	result.Resumed = err == nil && result.Rewrapped > 0
	if !result.Resumed {
		// The ring comes first: nobody may meet a data key whose ring key is not in the
		// source yet.
		if ring, err = source.Update(ctx, (*Ring).Rotated); err != nil {
			return result, err
		}
		result.Primary = ring.Primary()
		if result.Rewrapped, problems, err = r.rewrapAll(ctx, ring); err != nil {
			return result, err
		}
	}
	if o.Prune {
		if err := r.prune(ctx, ring, &result); err != nil {
			return result, errors.Join(problems, err)
		}
	}
	return result, problems
}

type rotation struct {
	source  Writable
	keys    DataKeys
	options RotateOptions
	// lost are the ring keys that have been looked for in vain.
	lost map[string]bool
}

// maxProblems bounds how many damaged data keys are named.
const maxProblems = 10

// rewrapAll wraps by the ring's primary what another key wraps. It gives how many
// it wrapped, what is the matter with those it could not, and why it had to stop.
func (r *rotation) rewrapAll(ctx context.Context, ring *Ring) (rewrapped int, problems, err error) {
	progress, err := r.begin(ctx, ring)
	if err != nil {
		return 0, nil, err
	}
	bad := 0
	for after := ""; ; {
		page, err := r.keys.DataKeysToRewrap(ctx, ring.Primary(), after, rewrapPage)
		if err != nil {
			return rewrapped, problems, err
		}
		if len(page) == 0 {
			return rewrapped, problems, nil
		}
		for _, row := range page {
			switch done, err := r.rewrap(ctx, ring, row); {
			case errors.Is(err, ErrUnknownKey), errors.Is(err, ErrNotAuthentic):
				if bad++; bad <= maxProblems {
					problems = errors.Join(problems, err)
				}
			case err != nil:
				return rewrapped, problems, err
			case done:
				rewrapped++
			}
		}
		after = page[len(page)-1].ID
		progress.Done += len(page)
		progress.Total = max(progress.Total, progress.Done)
		if r.options.Progress != nil {
			r.options.Progress(progress)
		}
	}
}

func (r *rotation) begin(ctx context.Context, ring *Ring) (Progress, error) {
	counts, err := r.keys.CountDataKeys(ctx)
	if err != nil {
		return Progress{}, err
	}
	p := Progress{Primary: ring.Primary()}
	for ringKey, n := range counts {
		if ringKey != ring.Primary() {
			p.Total += n
		}
	}
	return p, nil
}

// rewrap wraps one data key by the primary, and says whether it did: somebody else
// may have been faster.
func (r *rotation) rewrap(ctx context.Context, ring *Ring, row store.DataKey) (bool, error) {
	if !ring.Has(row.RingKey) {
		return false, r.newer(ctx, row)
	}
	plain, err := ring.unwrap(row)
	if err != nil {
		return false, err
	}
	defer plain.forget()
	next, err := ring.wrap(plain)
	if err != nil {
		return false, err
	}
	err = r.keys.RewrapDataKey(ctx, row, next.RingKey, next.Wrapped)
	switch {
	case errors.Is(err, domain.ErrConflict):
		// Wrapped by another rotation, or gone with its tenant.
		return false, nil
	case errors.Is(err, domain.ErrMissingParent):
		return false, fmt.Errorf("ring key %s is retired: %w; run the rotation again: %w", next.RingKey, ErrOldRing, err)
	}
	return err == nil, err
}

// newer sees whether a ring key that we do not know is another rotation's, which is
// at work at the same time: then the row is that one's. Otherwise the key is lost.
func (r *rotation) newer(ctx context.Context, row store.DataKey) error {
	if !r.lost[row.RingKey] {
		ring, err := r.source.Load(ctx)
		if err != nil || ring.Has(row.RingKey) {
			return err
		}
		r.lost[row.RingKey] = true
	}
	return &UnknownKeyError{Kind: KindRingKey, ID: row.RingKey, Tenant: row.Tenant, Where: r.source.Where()}
}

// prune drops the older keys that nothing needs. Each is retired in the database
// before it leaves the ring: see the migration that made ring_key. Interrupted in
// between, the ring has a key too many, and the next run drops it.
func (r *rotation) prune(ctx context.Context, ring *Ring, result *Rotation) error {
	for _, id := range ring.KeyIDs() {
		if id == ring.Primary() {
			continue
		}
		switch err := r.keys.RetireRingKey(ctx, id); {
		case errors.Is(err, domain.ErrConflict):
			result.InUse = append(result.InUse, id)
		case err != nil:
			return err
		default:
			result.Dropped = append(result.Dropped, id)
		}
	}
	if len(result.Dropped) == 0 {
		return nil
	}
	_, err := r.source.Update(ctx, func(now *Ring) (*Ring, error) { return now.Without(result.Dropped...) })
	if err != nil {
		result.Dropped = nil
	}
	return err
}
