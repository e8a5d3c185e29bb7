// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/store"
)

// endless is a log that has one more key each time it is asked.
type endless struct{}

func (endless) Now(context.Context) (store.Cursor, error) { return 0, nil }

func (endless) ChangesSince(_ context.Context, after store.Cursor) ([]store.Event, store.Cursor, error) {
	sequence := int64(after) + 1
	return []store.Event{operation(sequence, fmt.Sprint(sequence))}, after + 1, nil
}

func (endless) TrimChanges(context.Context, time.Time) (int, error) { return 0, nil }

func TestInProcessGuardStaysSmall(t *testing.T) {
	const limit = 10
	n := NewInProcess(endless{}, func(func()) {}, Options{Keys: limit})
	for range 1000 {
		if err := n.step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if size := len(n.guard.keys); size != limit {
		t.Errorf("%d keys are kept, want %d", size, limit)
	}
}
