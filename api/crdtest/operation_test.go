// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"strings"
	"testing"
)

func TestOperationID(t *testing.T) {
	with := func(id any) change { return change{"spec.operationID": id} }
	const field = "spec.operationID"
	const remedy = "must be the id of an operation row: lower-case letters, digits and '-'"
	checkRules(t, operation, []rule{
		{name: "UUID", change: with("6f1c4c5e-0a0b-4a55-9c3d-0d6c3f1f2a11")},
		{name: "number", change: with("42")},
		{name: "of the greatest length", change: with(strings.Repeat("a", 64))},

		{name: "missing", change: with(nil), field: field, remedy: "Required value"},
		{name: "empty", change: with(""), field: field, remedy: remedy},
		{name: "too long", change: with(strings.Repeat("a", 65)), field: field, remedy: "may not be more than 64"},
		{name: "upper case", change: with("A"), field: field, remedy: remedy},
		{name: "slash", change: with("a/b"), field: field, remedy: remedy},
		{name: "quote", change: with("a'b"), field: field, remedy: remedy},
		{name: "begins with a dash", change: with("-a"), field: field, remedy: remedy},
		{name: "trailing newline", change: with("a\n"), field: field, remedy: remedy},
		{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"},
	})
}

func TestOperationSpecIsImmutable(t *testing.T) {
	u := create(t, operation(t, nil))
	checkRefused(t, update(t, u, change{"spec.operationID": "other"}), "spec", "create another Operation instead")
	if err := update(t, u, change{"metadata.labels": map[string]any{"a": "b"}}); err != nil {
		t.Errorf("a changed label is refused: %v", err)
	}
}
