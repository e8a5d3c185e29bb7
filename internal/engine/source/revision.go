// SPDX-License-Identifier: Apache-2.0

package source

import (
	"fmt"
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	head = "HEAD"
	// idLength is that of an object id.
	idLength = 40
	// minShort is how many digits of a commit's id a revision has at least. Fewer
	// are more often a name than an id.
	minShort    = 7
	maxRevision = 255
)

// CheckRevision says whether a text can be a branch, a tag, a reference or a
// commit, by git's rules for the names of references. What passes has no meaning
// to git beyond being a name: no option, no range, no expression, no pattern. The
// error is an *Error.
func CheckRevision(revision string) error {
	problem := ""
	switch {
	case revision == "" || revision == head:
		return nil
	case len(revision) > maxRevision:
		problem = fmt.Sprintf("is longer than %d bytes", maxRevision)
	case strings.HasPrefix(revision, "-"):
		problem = `begins with "-"`
	case !utf8.ValidString(revision) || strings.ContainsFunc(revision, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		problem = "contains a space or a control character"
	case strings.ContainsAny(revision, `~^:?*[\`):
		problem = "contains one of ~ ^ : ? * [ \\"
	case strings.Contains(revision, "..") || strings.Contains(revision, "@{") || revision == "@":
		problem = `contains ".." or "@{"`
	case badParts(revision):
		problem = `has an empty part, or one that begins with "." or ends with "." or ".lock"`
	}
	if problem == "" {
		return nil
	}
	return &Error{
		Kind: ErrInvalidRevision, Problem: fmt.Sprintf("cannot be read at %q: the revision %s", clipped(revision), problem),
		Remedy: "use the name of a branch or a tag, or the id of a commit",
	}
}

func badParts(revision string) bool {
	for part := range strings.SplitSeq(revision, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".") || strings.HasSuffix(part, ".lock") {
			return true
		}
	}
	return false
}

// isID says whether a text is the whole id of an object.
func isID(s string) bool { return len(s) == idLength && isHex(s) }

// isShort says whether a text can be the beginning of an id.
func isShort(s string) bool { return len(s) >= minShort && len(s) < idLength && isHex(s) }

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// CleanPath gives a path inside a repository in the form in which entries have
// it: without a slash at either end, and "." for the repository itself. The error
// is an *Error.
func CleanPath(path string) (string, error) {
	cleaned := strings.TrimSuffix(strings.TrimPrefix(path, "./"), "/")
	if cleaned == "" {
		cleaned = "."
	}
	if !fs.ValidPath(cleaned) || strings.HasPrefix(path, "/") || strings.ContainsFunc(cleaned, unicode.IsControl) {
		return "", &Error{
			Kind: ErrInvalidPath, Problem: fmt.Sprintf("cannot be read at the path %q", clipped(path)),
			Remedy: `write a path inside the repository, without ".." and without "/" at its beginning`,
		}
	}
	return cleaned, nil
}

// clipped keeps a message readable whatever was written.
func clipped(s string) string {
	const most = 100
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
