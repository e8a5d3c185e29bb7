// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"strings"
	"unicode"
)

// CheckRevision refuses what git would take for an option or for two revisions.
func CheckRevision(field, revision string) error {
	if strings.HasPrefix(revision, "-") || strings.Contains(revision, "..") || strings.ContainsFunc(revision, Unprintable) {
		return &Refusal{Field: field, Problem: "is not the name of one revision", Remedy: "name a branch, a tag or a commit"}
	}
	return nil
}

// Unprintable says whether a character has no business in an address or a name.
func Unprintable(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// CheckPath accepts a path inside the repository. "." is the whole of it and
// has to be written out: an empty path or "/" has deployed more than was meant
// before.
func CheckPath(field, p string) error {
	const remedy = `name a folder inside the repository, such as "deploy" or, for all of it, "."`
	switch {
	case p == "":
		return &Refusal{Field: field, Problem: "is empty", Remedy: remedy}
	case p == "/":
		return &Refusal{Field: field, Problem: `is "/"`, Remedy: remedy}
	case strings.HasPrefix(p, "/"):
		return &Refusal{Field: field, Problem: "is absolute", Remedy: remedy}
	case strings.HasPrefix(p, "-"):
		return &Refusal{Field: field, Problem: `begins with "-"`, Remedy: remedy}
	case strings.ContainsFunc(p, unicode.IsControl), strings.Contains(p, `\`), strings.TrimSpace(p) != p:
		return &Refusal{Field: field, Problem: "contains a backslash or a control character, or begins or ends with a space", Remedy: remedy}
	}
	for _, part := range strings.Split(p, "/") {
		if part == ".." {
			return &Refusal{Field: field, Problem: `contains ".."`, Remedy: remedy}
		}
	}
	return nil
}

// Globs are the characters that stand for others in an engine's list of
// repositories.
const Globs = `*[]{}!\^`
