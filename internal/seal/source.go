// SPDX-License-Identifier: Apache-2.0

package seal

import "context"

// Source is where a process finds the key ring.
type Source interface {
	// Load reads the ring as it is now; ErrNoRing where there is none.
	Load(ctx context.Context) (*Ring, error)
	// Where names the source in messages.
	Where() string
}

// Writable is a Source that can be written, for those who manage the ring.
type Writable interface {
	Source
	// Create stores a ring where there is none; ErrRingExists where there is one. A
	// ring is never replaced by it: what the old one wraps would be lost.
	Create(ctx context.Context, r *Ring) error
	// Update replaces the ring by what change makes of it, and gives the new one.
	// Nobody else's change is lost: change may be called again, on a newer ring. Where
	// it gives the ring that it got, nothing is written.
	Update(ctx context.Context, change func(*Ring) (*Ring, error)) (*Ring, error)
}
