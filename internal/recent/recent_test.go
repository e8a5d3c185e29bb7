// SPDX-License-Identifier: Apache-2.0

package recent

import (
	"testing"

	"pgregory.net/rapid"
)

func TestKeepsTheLastAndNoMore(t *testing.T) {
	t.Parallel()
	var s Set[int]
	const made = 2*Size + 100
	for i := range made {
		if s.Has(i) {
			t.Fatalf("%d is known before it was added", i)
		}
		s.Add(i)
		if !s.Has(i) {
			t.Fatalf("%d is not known after it was added", i)
		}
	}
	for i := range made {
		if want := i >= made-Size; s.Has(i) != want {
			t.Fatalf("%d is known: %v", i, !want)
		}
	}
	if len(s.known) != Size || len(s.ring) != Size {
		t.Errorf("%d keys in a ring of %d", len(s.known), len(s.ring))
	}
}

// Whatever is added and forgotten, and added again: what was added last is
// known, what was forgotten last is not, and memory stays bounded.
func TestAgainstAMap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var s Set[int]
		want := map[int]bool{}
		for _, i := range rapid.SliceOf(rapid.IntRange(-20, 20)).Draw(t, "add the positive, forget the negative") {
			key := max(i, -i)
			if i >= 0 {
				s.Add(key)
			} else {
				s.Forget(key)
			}
			want[key] = i >= 0
		}
		for key, known := range want {
			if s.Has(key) != known {
				t.Fatalf("%d is known: %v", key, !known)
			}
		}
	})
}
