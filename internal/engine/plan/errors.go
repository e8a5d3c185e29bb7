// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
)

// ErrInvalid is what every error of this package wraps: the input cannot be
// planned, and trying again without changing it is of no use.
var ErrInvalid = errors.New("not a plan")

// FieldError is a field of an object that cannot be understood.
type FieldError struct {
	Key    Key
	Source string
	// Field is the path of the field, or the annotation.
	Field   string
	Problem string
}

// Error names the object, the field, the problem and the remedy.
func (e *FieldError) Error() string {
	where := ""
	if e.Source != "" {
		where = " (" + e.Source + ")"
	}
	return fmt.Sprintf("%s%s: %s: %s", e.Key, where, e.Field, e.Problem)
}

// Unwrap makes it an ErrInvalid.
func (e *FieldError) Unwrap() error { return ErrInvalid }

// DuplicateError is one object that was given twice.
type DuplicateError struct {
	Key Key
	// Sources are where the two were found, in alphabetical order.
	Sources [2]string
}

// Error names the object and both sources.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("%s is there twice, in %s and in %s: remove one of them", e.Key, e.Sources[0], e.Sources[1])
}

// Unwrap makes it an ErrInvalid.
func (e *DuplicateError) Unwrap() error { return ErrInvalid }

// OptionError is a sync option of the application that cannot be understood.
type OptionError struct {
	Option  string
	Problem string
}

// Error names the option and the problem.
func (e *OptionError) Error() string { return fmt.Sprintf("sync option %q: %s", e.Option, e.Problem) }

// Unwrap makes it an ErrInvalid.
func (e *OptionError) Unwrap() error { return ErrInvalid }
