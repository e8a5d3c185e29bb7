// SPDX-License-Identifier: Apache-2.0

package domain

import (
	"errors"
	"fmt"
	"time"
)

// Sentinel errors of the layers below a step. They are matched with errors.Is,
// never by their text.
var (
	// ErrConflict: somebody else changed the row or object since it was read.
	// Reading again and deciding again is the remedy.
	ErrConflict = errors.New("changed since it was read")
	// ErrMissingParent: a row refers to one that is not there (any more), or is
	// another tenant's, which is deliberately the same answer.
	ErrMissingParent = errors.New("refers to a row that does not exist")
	// ErrNotFound: nothing under that id.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the dependency is away. It can come back.
	ErrUnavailable = errors.New("unavailable")
)

// Refusal says why what a tenant asked for cannot be done until the tenant
// changes it. It is shown to the tenant, and not retried.
type Refusal struct {
	// Field is the path of the field at fault, such as spec.source.path.
	Field string
	// Problem says what is wrong with it, Remedy what to write instead.
	Problem string
	Remedy  string
}

// Error gives the sentence that the tenant reads.
func (r *Refusal) Error() string {
	if r.Remedy == "" {
		return fmt.Sprintf("%s %s", r.Field, r.Problem)
	}
	return fmt.Sprintf("%s %s; %s", r.Field, r.Problem, r.Remedy)
}

// Waiting says that something a tenant's object needs is not there yet. It is
// shown to the tenant; the thing's arrival, not a timer, starts the next try.
type Waiting struct {
	For string
}

// Error gives the sentence that the tenant reads.
func (w *Waiting) Error() string { return "waiting for " + w.For }

// Later asks for another look after a while. It is no error: nothing is wrong.
type Later struct {
	After time.Duration
}

// Error is for the error interface only; nobody reads it.
func (l *Later) Error() string { return "look again in " + l.After.String() }

// Ended says that something a tenant asked for is over without having been done,
// for good. It is shown to the tenant.
type Ended struct {
	Why string
}

// Error gives the sentence that the tenant reads.
func (e *Ended) Error() string { return e.Why }
