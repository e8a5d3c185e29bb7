// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
)

func TestOutcomeMessages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&domain.Refusal{Field: "spec.source.path", Problem: "is empty", Remedy: "name a folder"}, "spec.source.path is empty; name a folder"},
		{&domain.Refusal{Field: "spec.type", Problem: "is unknown"}, "spec.type is unknown"},
		{&domain.Waiting{For: "the engine"}, "waiting for the engine"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%T says %q, want %q", c.err, got, c.want)
		}
	}
}

// Outcomes are told apart by type or identity, also behind a wrapping.
func TestOutcomesAreFoundBehindWrapping(t *testing.T) {
	t.Parallel()
	var refusal *domain.Refusal
	if !errors.As(fmt.Errorf("take in: %w", &domain.Refusal{Field: "f"}), &refusal) || refusal.Field != "f" {
		t.Error("a wrapped Refusal is not found")
	}
	var waiting *domain.Waiting
	if !errors.As(fmt.Errorf("take in: %w", &domain.Waiting{For: "w"}), &waiting) || waiting.For != "w" {
		t.Error("a wrapped Waiting is not found")
	}
	sentinels := []error{domain.ErrConflict, domain.ErrMissingParent, domain.ErrNotFound, domain.ErrUnavailable}
	for i, a := range sentinels {
		for j, b := range sentinels {
			if got := errors.Is(fmt.Errorf("write: %w", a), b); got != (i == j) {
				t.Errorf("errors.Is(%v, %v) = %v", a, b, got)
			}
		}
	}
}
