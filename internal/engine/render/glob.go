// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strings"
)

const (
	maxPattern      = 1024
	maxAlternatives = 256
)

// glob is a pattern for paths as Argo CD has them: * is any text, slashes too, ?
// any character, [a-z] one of a set, {a,b} one of several patterns.
type glob []string

func parseGlob(pattern string) (glob, bool) {
	if len(pattern) > maxPattern {
		return nil, false
	}
	all, ok := expand(pattern, 0)
	if !ok {
		return nil, false
	}
	for _, one := range all {
		// Tells a set that does not end.
		if _, err := path.Match(one, ""); err != nil {
			return nil, false
		}
	}
	return all, true
}

// expand writes out the first {} that has no other in it, and then the rest.
func expand(pattern string, made int) ([]string, bool) {
	end := strings.IndexByte(pattern, '}')
	start := strings.LastIndexByte(pattern[:max(end, 0)], '{')
	if end < 0 && !strings.Contains(pattern, "{") {
		return []string{pattern}, true
	}
	if end < 0 || start < 0 {
		return nil, false
	}
	var out []string
	for part := range strings.SplitSeq(pattern[start+1:end], ",") {
		more, ok := expand(pattern[:start]+part+pattern[end+1:], made+len(out))
		if !ok {
			return nil, false
		}
		if out = append(out, more...); made+len(out) > maxAlternatives {
			return nil, false
		}
	}
	return out, true
}

func (g glob) matches(name string) bool {
	// To the library a * ends at a slash; here it does not.
	plain := strings.ReplaceAll(name, "/", "\x00")
	for _, one := range g {
		if ok, err := path.Match(strings.ReplaceAll(one, "/", "\x00"), plain); ok && err == nil {
			return true
		}
	}
	return false
}
