// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"slices"
	"sync"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/recent"
)

// notices are operations that the database's notification told of before their
// CR arrived. The CR is how an operation reaches an agent for certain; the
// notification is how it arrives sooner, by one write to the API server and one
// watch. Either alone is enough, and both together carry it out once:
//
//   - notice, then CR: that the operation is finished is remembered until the CR
//     comes, which is then removed without asking the database again;
//   - CR, then notice: the same, the other way round;
//   - notice lost, or the agent restarted: the CR is there.
//
// What is remembered answers for one arrival only. So an operation that
// somebody puts back to waiting is carried out again.
type notices struct {
	mu      sync.Mutex
	waiting map[resource][]domain.OperationID

	// finished by the one, and the other is still to come.
	byNotice, byCR recent.Set[domain.OperationID]
}

type resource struct {
	kind domain.ResourceType
	id   string
}

// Notice tells of an operation that waits.
func (s *Steps) Notice(t domain.ResourceType, id string, op domain.OperationID) {
	n := &s.notices
	if n.byCR.Has(op) {
		n.byCR.Forget(op)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting == nil {
		n.waiting = make(map[resource][]domain.OperationID)
	}
	r := resource{t, id}
	if !slices.Contains(n.waiting[r], op) {
		n.waiting[r] = append(n.waiting[r], op)
	}
}

// noticed lists the operations on a resource that were told of, oldest first.
func (n *notices) noticed(t domain.ResourceType, id string) []domain.OperationID {
	n.mu.Lock()
	defer n.mu.Unlock()
	ops := slices.Clone(n.waiting[resource{t, id}])
	slices.Sort(ops)
	return ops
}

// over forgets a notice: the operation has ended, or its CR has arrived and
// stands for it from now on. It says whether there was one.
func (n *notices) over(t domain.ResourceType, id string, op domain.OperationID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	r := resource{t, id}
	had := len(n.waiting[r])
	left := slices.DeleteFunc(n.waiting[r], func(o domain.OperationID) bool { return o == op })
	if len(left) == 0 {
		delete(n.waiting, r)
	} else {
		n.waiting[r] = left
	}
	return len(left) < had
}
