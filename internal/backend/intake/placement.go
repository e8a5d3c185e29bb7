// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"sync"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// placements remembers where tenants have been settled, so that a deployment of
// a known tenant costs no statement for it. Being wrong is harmless: the
// database has a foreign key from each application to its tenant's access, and
// a write that it refuses makes the step forget and ask.
type placements struct {
	known sync.Map // domain.TenantID → store.Placement
}

func (p *placements) get(t domain.TenantID) (store.Placement, bool) {
	v, ok := p.known.Load(t)
	if !ok {
		return store.Placement{}, false
	}
	return v.(store.Placement), true
}

func (p *placements) settle(t domain.TenantID, at store.Placement) {
	at.Settled = true
	p.known.Store(t, at)
}

func (p *placements) forget(t domain.TenantID) { p.known.Delete(t) }
