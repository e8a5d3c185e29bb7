// SPDX-License-Identifier: Apache-2.0

package domain_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/domain"
)

func TestEngineApplicationNameRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		id := domain.ApplicationID(drawUUID(t))
		name := domain.EngineApplicationName(id)
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			t.Fatalf("%q cannot be the name of an object: %v", name, problems)
		}
		if back, ours := domain.ApplicationOfEngineName(name); !ours || back != id {
			t.Fatalf("ApplicationOfEngineName(%q) = %q, %v; want %q, true", name, back, ours, id)
		}
	})
}

func TestApplicationOfForeignName(t *testing.T) {
	t.Parallel()
	const id = "0b8d8b0e-6f4e-4d0f-9a53-2d6f7f0a9d11"
	for _, name := range []string{
		"",
		"gitopsdepl-",
		"gitopsdepl-guestbook",
		"gitopsdepl-" + id[:len(id)-1],
		"gitopsdepl-" + id + "0",
		"gitopsdepl-" + id + "-copy",
		"gitopsdepl-gitopsdepl-" + id,
		"gitopsdepl" + id,
		"GITOPSDEPL-" + id,
		"operation-" + id,
		"my-gitopsdepl-" + id,
		id,
	} {
		if got, ours := domain.ApplicationOfEngineName(name); ours || got != "" {
			t.Errorf("ApplicationOfEngineName(%q) = %q, %v; want a foreign name", name, got, ours)
		}
	}
}

// A name that is taken for ours leads back to itself: no two names stand for
// one application.
func TestApplicationOfEngineNameIsInjective(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.OneOf(
			rapid.StringMatching(`(gitopsdepl-|operation-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`),
			rapid.StringMatching(`gitopsdepl-[0-9a-f-]{30,40}`),
			rapid.String(),
		).Draw(t, "name")
		if id, ours := domain.ApplicationOfEngineName(name); ours && domain.EngineApplicationName(id) != name {
			t.Fatalf("%q is taken for %q, whose name is %q", name, id, domain.EngineApplicationName(id))
		}
	})
}

func TestNewOperationIDsSortInTheOrderTheyAreMade(t *testing.T) {
	t.Parallel()
	ids := make([]domain.OperationID, 10_000)
	for i := range ids {
		ids[i] = domain.NewOperationID()
	}
	if !slices.IsSorted(ids) {
		t.Error("an id made later sorts before one made earlier")
	}
	if n := len(slices.Compact(slices.Clone(ids))); n != len(ids) {
		t.Errorf("%d ids, of which %d differ", len(ids), n)
	}
	name := domain.OperationObjectName(ids[0])
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		t.Errorf("%q cannot be the name of an object: %v", name, problems)
	}
	if !strings.HasSuffix(name, string(ids[0])) {
		t.Errorf("%q does not name operation %s", name, ids[0])
	}
}

func TestLocalEnvironmentIsTheTenantsOwn(t *testing.T) {
	t.Parallel()
	if a, b := domain.LocalEnvironment("a"), domain.LocalEnvironment("b"); a == b || a != "a" {
		t.Errorf("local environments of tenants a and b: %q and %q", a, b)
	}
}

func TestFinalOperationStates(t *testing.T) {
	t.Parallel()
	want := map[domain.OperationState]bool{
		domain.OperationWaiting:    false,
		domain.OperationInProgress: false,
		domain.OperationCompleted:  true,
		domain.OperationFailed:     true,
		"":                         false,
	}
	for state, final := range want {
		if state.Final() != final {
			t.Errorf("%q.Final() = %v", state, !final)
		}
	}
}

func drawUUID(t *rapid.T) string {
	var raw uuid.UUID
	copy(raw[:], rapid.SliceOfN(rapid.Byte(), len(raw), len(raw)).Draw(t, "uuid"))
	return raw.String()
}
