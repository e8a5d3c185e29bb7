// SPDX-License-Identifier: Apache-2.0

package source

import (
	"errors"
	"fmt"
)

// What can go wrong, for errors.Is. What is wrong with a remote itself is one of
// the sentinels of internal/gitremote.
var (
	// ErrInvalidRevision: the revision cannot be one. Nothing was started.
	ErrInvalidRevision = errors.New("invalid revision")
	// ErrInvalidPath: the path does not stay inside the repository.
	ErrInvalidPath = errors.New("invalid path")
	// ErrRevisionNotFound: the repository has no such branch, tag or commit.
	ErrRevisionNotFound = errors.New("revision not found")
	// ErrPathNotFound: the commit has nothing at that path.
	ErrPathNotFound = errors.New("path not found")
	// ErrNotAFile: what is at that path is a folder, a symbolic link or a submodule.
	ErrNotAFile = errors.New("not a file")
	// ErrHostileTree: the commit has names in it that no git would write.
	ErrHostileTree = errors.New("malformed repository")
	// ErrRepositoryTooLarge: more bytes than a repository may have.
	ErrRepositoryTooLarge = errors.New("repository too large")
	// ErrTooManyFiles: more files and folders than a repository may have.
	ErrTooManyFiles = errors.New("too many files")
	// ErrFileTooLarge: a file has more bytes than one may have.
	ErrFileTooLarge = errors.New("file too large")
	// ErrReadTooLarge: the files asked for have more bytes together than may be
	// read at once.
	ErrReadTooLarge = errors.New("files too large together")
	// ErrTimeout: it took longer than it may.
	ErrTimeout = errors.New("out of time")
	// ErrUnreadable: the server answers, and git cannot read the repository. The
	// only one, with ErrTimeout, that is worth trying again.
	ErrUnreadable = errors.New("repository unreadable")
	// ErrInUse: another process has the cache's folder.
	ErrInUse = errors.New("folder is in use by another process")
	// ErrClosed: the cache was closed.
	ErrClosed = errors.New("cache is closed")
)

// Error says what went wrong, for the person whose repository it is.
type Error struct {
	// Kind is one of the sentinels.
	Kind error
	// Remote is the address in its canonical form; empty where there is none.
	Remote string
	// Problem and Remedy are sentences without a subject and without texts of
	// servers.
	Problem, Remedy string
	cause           error
}

// Error names the repository, the problem and the remedy.
func (e *Error) Error() string {
	text := "repository "
	if e.Remote != "" {
		text += e.Remote + " "
	}
	text += e.Problem
	if e.Remedy != "" {
		text += "; " + e.Remedy
	}
	return text
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.cause}
}

func (t target) fail(kind error, remedy, problem string, args ...any) error {
	return &Error{Kind: kind, Remote: t.remote.String(), Problem: fmt.Sprintf(problem, args...), Remedy: remedy}
}

// ProcessError is a git process that ended badly.
type ProcessError struct {
	// Verb is git's subcommand.
	Verb  string
	cause error
}

// Error names the subcommand and how it ended, and nothing that was printed.
func (e *ProcessError) Error() string { return fmt.Sprintf("git %s: %v", e.Verb, e.cause) }

// Unwrap gives the cause.
func (e *ProcessError) Unwrap() error { return e.cause }
