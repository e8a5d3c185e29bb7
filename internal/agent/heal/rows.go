// SPDX-License-Identifier: Apache-2.0

// Package heal finds what the flow of Operations has missed on the agent's
// side. A sweep changes no engine object itself: it adds an operation for the row
// in question to the outbox, and the ordinary step carries it out.
package heal

import (
	"context"
	"fmt"
	"log/slog"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/agent/operate"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// Store is what the sweep reads and where it announces.
type Store interface {
	store.Inventory
	Apply(ctx context.Context, c store.Change) ([]store.Operation, error)
}

// Rows heals row → engine (table F of the specification): rows whose
// Application is missing or says something else.
type Rows struct {
	Store  Store
	Engine interface {
		Application(ctx context.Context, name string) (*argov1alpha1.Application, error)
	}
	Instance store.Instance
	NewID    func() domain.OperationID
	Log      *slog.Logger
}

const rowsPage = 1000

// Sweep walks all application rows of the instance once. It returns how many it
// announced.
func (r *Rows) Sweep(ctx context.Context) (int, error) {
	found := 0
	var after domain.ApplicationID
	for {
		page, err := r.Store.Applications(ctx, r.Instance.ID, after, rowsPage)
		if err != nil {
			return found, fmt.Errorf("sweep of application rows: %w", err)
		}
		for _, row := range page {
			after = row.ID
			app, err := r.Engine.Application(ctx, domain.EngineApplicationName(row.ID))
			if err != nil {
				return found, fmt.Errorf("sweep of application rows: %w", err)
			}
			if follows(app, row, r.Instance) {
				continue
			}
			found++
			r.Log.InfoContext(ctx, "self-healing: the engine does not follow an application row",
				"heal", "F", "tenant", row.Tenant, "uid", row.ID, "missing", app == nil)
			if err := r.announce(ctx, row); err != nil {
				return found, err
			}
		}
		if len(page) < rowsPage {
			return found, nil
		}
	}
}

func follows(app *argov1alpha1.Application, row store.Application, i store.Instance) bool {
	return app != nil && operate.Follows(app, operate.RenderApplication(row, i))
}

func (r *Rows) announce(ctx context.Context, row store.Application) error {
	_, err := r.Store.Apply(ctx, store.Change{Announce: []store.NewOperation{{
		ID: r.NewID(), Tenant: row.Tenant, Instance: row.Instance,
		ResourceType: domain.ResourceApplication, ResourceID: string(row.ID),
	}}})
	if err != nil {
		return fmt.Errorf("announce application %s: %w", row.ID, err)
	}
	return nil
}
