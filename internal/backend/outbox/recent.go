// SPDX-License-Identifier: Apache-2.0

package outbox

import (
	"errors"
	"sync"

	"github.com/weir-gitops/weir/internal/domain"
)

// recent remembers the operations announced last, so that the notification
// about a row that this process wrote and announced itself costs nothing.
// Forgetting one is harmless: it is looked up.
type recent struct {
	mu    sync.Mutex
	known map[domain.OperationID]struct{}
	order []domain.OperationID
	next  int
}

const recentSize = 8192

func (r *recent) has(id domain.OperationID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[id]
	return ok
}

func (r *recent) add(id domain.OperationID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = make(map[domain.OperationID]struct{})
	}
	if _, ok := r.known[id]; ok {
		return
	}
	if len(r.order) < recentSize {
		r.order = append(r.order, id)
	} else {
		delete(r.known, r.order[r.next])
		r.order[r.next] = id
		r.next = (r.next + 1) % recentSize
	}
	r.known[id] = struct{}{}
}

func ignoreGone(err error) error {
	if errors.Is(err, domain.ErrNotFound) {
		return nil
	}
	return err
}
