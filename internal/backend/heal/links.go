// SPDX-License-Identifier: Apache-2.0

// Package heal finds what the flow of events has missed on the backend's side.
// A sweep decides nothing by itself: it puts the name in question into the same
// queue that events go into, and the ordinary step looks at it, confirms against
// the API server and acts. So healing has no second way of doing things.
package heal

import (
	"context"
	"fmt"
	"log/slog"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Links heals link row → CR (table B of the specification): deployments that
// were deleted, or replaced by another of the same name, while nobody watched.
type Links struct {
	Store store.Inventory
	// Lookup reads the CR under a name from the cache, nil where there is none.
	Lookup  func(ctx context.Context, namespace, name string) (*v1alpha1.GitOpsDeployment, error)
	Enqueue func(namespace, name string)
	Log     *slog.Logger
}

const linksPage = 1000

// Sweep walks all link rows once and enqueues those whose CR is not there. It
// returns how many it found.
func (l *Links) Sweep(ctx context.Context) (int, error) {
	found := 0
	var after domain.ApplicationID
	for {
		page, err := l.Store.Links(ctx, after, linksPage)
		if err != nil {
			return found, fmt.Errorf("sweep of link rows: %w", err)
		}
		for _, link := range page {
			after = link.Application
			cr, err := l.Lookup(ctx, link.Namespace, link.Name)
			if err != nil {
				return found, fmt.Errorf("sweep of link rows: %w", err)
			}
			if cr != nil && domain.ApplicationID(cr.UID) == link.Application {
				continue
			}
			found++
			l.Log.InfoContext(ctx, "self-healing: a link row has no GitOpsDeployment",
				"heal", "B", "tenant", link.Tenant, "namespace", link.Namespace, "name", link.Name, "uid", link.Application)
			l.Enqueue(link.Namespace, link.Name)
		}
		if len(page) < linksPage {
			return found, nil
		}
	}
}
