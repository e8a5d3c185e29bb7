// SPDX-License-Identifier: Apache-2.0

package seal

import (
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/internal/domain"
)

var (
	// ErrNoRing says that there is no key ring where one should be. What matches it is
	// a *NoRingError.
	ErrNoRing = errors.New("no key ring")
	// ErrRingExists says that a ring is there already, and was left alone.
	ErrRingExists = errors.New("there is a key ring already")
	// ErrDamagedRing says that what should be a ring is none. The text is not quoted:
	// it may have keys in it.
	ErrDamagedRing = errors.New("not a key ring as `weir keys create` makes it")
	// ErrExposed says that others could read the file with the ring.
	ErrExposed = errors.New("others may read the key ring")
	// ErrUnknownKey says that a key which is needed is not there. What matches it is an
	// *UnknownKeyError.
	ErrUnknownKey = errors.New("unknown key")
	// ErrNotAuthentic says that a sealed text or a wrapped data key is not what was
	// written in this place: it was changed, or moved here from another place.
	ErrNotAuthentic = errors.New("changed since it was sealed, or sealed for another place")
	// ErrOldRing says that the database has retired the ring's primary: this ring is
	// older than the one that the database was last used with.
	ErrOldRing = errors.New("the key ring is older than the database")
	// ErrIncompletePlace says that a part of a Place is empty, which would let two
	// places look alike. It is a mistake in the program.
	ErrIncompletePlace = errors.New("tenant, table, row and column are all needed")
)

// NoRingError is ErrNoRing with where it was looked for and how to make one.
type NoRingError struct {
	// Where names the source, such as "file /etc/weir/ring.json".
	Where string
	// Create is the command that makes a ring there.
	Create string
}

// Error says what to run.
func (e *NoRingError) Error() string {
	return fmt.Sprintf("%v in %s: credentials cannot be sealed or opened without one; make it with %#q, or restore it from a backup if the database has sealed credentials already",
		ErrNoRing, e.Where, e.Create)
}

// Is matches ErrNoRing.
func (e *NoRingError) Is(target error) bool { return target == ErrNoRing }

// UnknownKeyError is ErrUnknownKey with the key's id and a remedy.
type UnknownKeyError struct {
	// Kind is KindRingKey or KindDataKey.
	Kind KeyKind
	ID   string
	// Tenant is whose credentials cannot be opened.
	Tenant domain.TenantID
	// Where names the ring's source, for a key of the ring.
	Where string
}

// KeyKind says which of the two layers a key belongs to.
type KeyKind string

// The two layers of keys.
const (
	KindRingKey KeyKind = "ring key"
	KindDataKey KeyKind = "data key"
)

// Error says what is missing and what to do about it.
func (e *UnknownKeyError) Error() string {
	if e.Kind == KindDataKey {
		return fmt.Sprintf("%v: %s %s of tenant %s is not in the database; what it sealed has to be sealed again from the tenant's Secret, or the database restored together with its table data_key",
			ErrUnknownKey, e.Kind, e.ID, e.Tenant)
	}
	return fmt.Sprintf("%v: the data key of tenant %s is wrapped by %s %s, which the key ring in %s does not have; restore a ring that has it (`weir keys show` lists the ids)",
		ErrUnknownKey, e.Tenant, e.Kind, e.ID, e.Where)
}

// Is matches ErrUnknownKey.
func (e *UnknownKeyError) Is(target error) bool { return target == ErrUnknownKey }
