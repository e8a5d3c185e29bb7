// SPDX-License-Identifier: Apache-2.0

package crdtest

import "strings"

// subdomainRules are those of a field that holds the name of a resource.
func subdomainRules(field, remedy string) []rule {
	with := func(name any) change { return change{field: name} }
	return append(nameRules(field, remedy),
		rule{name: "with dots", change: with("my.one.x")},
		rule{name: "of the greatest length", change: with(strings.Repeat("a", 253))},
		rule{name: "too long", change: with(strings.Repeat("a", 254)), field: field, remedy: "may not be more than 253"},
		rule{name: "two dots", change: with("my..one"), field: field, remedy: remedy},
		rule{name: "ends with a dot", change: with("my."), field: field, remedy: remedy},
		rule{name: "dash before a dot", change: with("my-.one"), field: field, remedy: remedy},
	)
}

// labelRules are those of a field that holds the name of a namespace.
func labelRules(field, remedy string) []rule {
	with := func(name any) change { return change{field: name} }
	return append(nameRules(field, remedy),
		rule{name: "of the greatest length", change: with(strings.Repeat("a", 63))},
		rule{name: "too long", change: with(strings.Repeat("a", 64)), field: field, remedy: "may not be more than 63"},
		rule{name: "with dots", change: with("my.one"), field: field, remedy: remedy},
	)
}

func nameRules(field, remedy string) []rule {
	with := func(name any) change { return change{field: name} }
	return []rule{
		{name: "letters, digits and dashes", change: with("my-one-2")},
		{name: "one letter", change: with("a")},
		{name: "begins with a digit", change: with("2nd")},

		{name: "upper case", change: with("Mine"), field: field, remedy: remedy},
		{name: "underscore", change: with("my_one"), field: field, remedy: remedy},
		{name: "begins with a dash", change: with("-mine"), field: field, remedy: remedy},
		{name: "ends with a dash", change: with("mine-"), field: field, remedy: remedy},
		{name: "slash", change: with("other/one"), field: field, remedy: remedy},
		{name: "climbing out", change: with("../one"), field: field, remedy: remedy},
		{name: "space", change: with("my one"), field: field, remedy: remedy},
		{name: "trailing newline", change: with("mine\n"), field: field, remedy: remedy},
		{name: "letter beyond ASCII", change: with("größer"), field: field, remedy: remedy},
		{name: "not text", change: with(int64(1)), field: field, remedy: "must be of type string"},
	}
}

// optional adds that the field may be left out or empty.
func optional(rules []rule) []rule {
	field := fieldOf(rules)
	return append(rules,
		rule{name: "missing", change: change{field: nil}},
		rule{name: "empty", change: change{field: ""}},
	)
}

// required adds that the field may be neither left out nor empty.
func required(rules []rule, remedy string) []rule {
	field := fieldOf(rules)
	return append(rules,
		rule{name: "missing", change: change{field: nil}, field: field, remedy: "Required value"},
		rule{name: "empty", change: change{field: ""}, field: field, remedy: remedy},
	)
}

func fieldOf(rules []rule) string {
	for _, r := range rules {
		if r.field != "" {
			return r.field
		}
	}
	return ""
}
