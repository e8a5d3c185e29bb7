// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
)

func TestOtherSpellingsOfAUUIDAreForeign(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"gitopsdepl-0b8d8b0e6f4e4d0f9a532d6f7f0a9d11", "gitopsdepl-0B8D8B0E-6F4E-4D0F-9A53-2D6F7F0A9D11", "gitopsdepl-{0b8d8b0e-6f4e-4d0f-9a53-2d6f7f0a9d11}"} {
		if _, ours := domain.ApplicationOfEngineName(name); ours {
			t.Errorf("%s is taken for ours", name)
		}
	}
}

func TestASpecThatSaysNothingIsDamaged(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`null`, `{}`} {
		if s, err := domain.DecodeApplicationSpec(text); err == nil {
			t.Errorf("%s decodes to %+v", text, s)
		}
	}
}
