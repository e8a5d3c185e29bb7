// SPDX-License-Identifier: Apache-2.0

package project

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/internal/domain"
)

func TestSeveralEngineConditionsOfOneTypeAreAllShown(t *testing.T) {
	t.Parallel()
	c := chain(reporting(domain.EngineCondition{Type: "RepeatedResourceWarning", Message: "a"}, domain.EngineCondition{Type: "RepeatedResourceWarning", Message: "b"}))
	got, err := composeDeployment(deployment(), c, nil, tuesday)
	if err != nil {
		t.Fatal(err)
	}
	if m := got.Conditions[0].Message; !strings.Contains(m, "a") || !strings.Contains(m, "b") {
		t.Errorf("shows only %q", m)
	}
}
