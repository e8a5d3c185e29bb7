// SPDX-License-Identifier: Apache-2.0

package heal

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/weir-gitops/weir/internal/store"
)

// CRLinks heals link row → CR for the tenant kinds besides GitOpsDeployment: runs,
// environments and credentials that went, or were replaced by another of the same
// name, while nobody watched.
type CRLinks struct {
	Store store.Inventory
	// UID gives the UID of the CR under a name as the cache has it, empty where
	// there is none.
	UID     func(ctx context.Context, kind store.CRKind, namespace, name string) (string, error)
	Enqueue func(kind store.CRKind, namespace, name string)
	Log     *slog.Logger
}

// Sweep walks all link rows once and enqueues those whose CR is not there. It
// returns how many it found.
func (l *CRLinks) Sweep(ctx context.Context) (int, error) {
	found := 0
	var after store.CRLink
	for {
		page, err := l.Store.CRLinks(ctx, after, linksPage)
		if err != nil {
			return found, fmt.Errorf("sweep of link rows: %w", err)
		}
		for _, link := range page {
			after = link
			uid, err := l.UID(ctx, link.Kind, link.Namespace, link.Name)
			if err != nil {
				return found, fmt.Errorf("sweep of link rows: %w", err)
			}
			if uid == link.UID {
				continue
			}
			found++
			l.Log.InfoContext(ctx, "self-healing: a link row has no resource",
				"heal", "B", "kind", link.Kind, "tenant", link.Tenant, "namespace", link.Namespace, "name", link.Name, "uid", link.UID)
			l.Enqueue(link.Kind, link.Namespace, link.Name)
		}
		if len(page) < linksPage {
			return found, nil
		}
	}
}
