// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"
	"fmt"
	"strings"
)

// What can be wrong, for errors.Is.
var (
	// ErrInvalid: the files cannot be rendered as they are.
	ErrInvalid = errors.New("manifests cannot be rendered")
	// ErrRemote: something outside the repository is asked for.
	ErrRemote = errors.New("outside of the repository")
	// ErrUnsupported: a thing that is switched off here.
	ErrUnsupported = errors.New("not supported")
	// ErrTooLarge: more bytes, files, objects or levels than allowed.
	ErrTooLarge = errors.New("too large to render")
	// ErrTime: rendering took too long, in time or in CPU time.
	ErrTime = errors.New("rendering took too long")
	// ErrMemory: rendering needs more memory than it may have.
	ErrMemory = errors.New("rendering needs too much memory")
	// ErrCrashed: the process that renders died.
	ErrCrashed = errors.New("rendering crashed")
)

// kinds names the sentinels on their way out of a child.
func kinds() map[string]error {
	return map[string]error{
		"invalid": ErrInvalid, "remote": ErrRemote, "unsupported": ErrUnsupported, "large": ErrTooLarge,
		"time": ErrTime, "memory": ErrMemory, "crashed": ErrCrashed,
	}
}

// Error says what is wrong with the files, for the person who wrote them.
type Error struct {
	// Kind is one of the sentinels.
	Kind error
	// File is the path from the repository's root; empty where it is not one file.
	File string
	// Index counts the documents of the file from 1; 0 where it is not one of them.
	Index           int
	Problem, Remedy string
}

// Error names the place, the problem and the remedy.
func (e *Error) Error() string {
	text := ""
	if e.File != "" {
		text = e.File
		if e.Index > 1 {
			text += fmt.Sprintf(" (document %d)", e.Index)
		}
		text += ": "
	}
	text += e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

func fault(kind error, file, remedy, problem string, args ...any) error {
	return &Error{Kind: kind, File: file, Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// foreign takes over the text of a library, cut to a length.
func foreign(file, prefix string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	return fault(ErrInvalid, file, "", "%s: %s", prefix, clipped(strings.TrimSpace(err.Error())))
}

// clipped keeps a message readable. The errors of templates that include each
// other are chains of which the two ends matter.
func clipped(s string) string {
	const most = 500
	if len(s) <= 2*most {
		return s
	}
	return strings.ToValidUTF8(s[:most]+" … "+s[len(s)-most:], "")
}
