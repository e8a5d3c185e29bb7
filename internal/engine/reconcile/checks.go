// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"errors"
)

// Check is a question of a readiness probe.
type Check struct {
	Name  string
	Check func(context.Context) error
}

var errNotRead = errors.New("not read yet")

// Checks say what a readiness probe asks.
func (e *Engine) Checks() []Check {
	return []Check{{Name: "engine: caches", Check: func(context.Context) error {
		if !e.read.Load() {
			return errNotRead
		}
		return nil
	}}}
}
