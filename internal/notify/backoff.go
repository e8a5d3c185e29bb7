// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"math/rand/v2"
	"time"
)

// backoff doubles from min to max. Each wait is drawn from the upper half, so
// that replicas cut off together do not come back together.
type backoff struct {
	min, max time.Duration
	last     time.Duration
}

func (o Options) backoff() backoff { return backoff{min: o.BackoffMin, max: o.BackoffMax} }

func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, b.min), b.max)
	return b.last/2 + rand.N(b.last/2+1)
}

func (b *backoff) reset() { b.last = 0 }

// pause waits, or returns early when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
