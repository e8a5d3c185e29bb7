// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/store"
)

// progress says how far making things equal has come.
type progress int

const (
	equal progress = iota
	// awaiting means that the engine has to do its part first; the watch says
	// when it has.
	awaiting
	// removed means equal in that there is neither row nor object.
	removed
)

// application makes the engine's Application equal to the row.
func (s *Steps) application(ctx context.Context, id domain.ApplicationID, task store.Task) (progress, error) {
	name := domain.EngineApplicationName(id)
	if task.Application == nil {
		return s.removeApplication(ctx, name, task.Operation.Tenant)
	}
	row := *task.Application
	if err := checkRow(row); err != nil {
		return equal, err
	}
	want := RenderApplication(row, s.Instance)
	have, err := s.Engine.Application(ctx, name)
	switch {
	case err != nil:
		return equal, fmt.Errorf("read Application: %w", err)
	case have != nil && !have.DeletionTimestamp.IsZero():
		// It cannot be called back; once it is gone, it is created again.
		return awaiting, nil
	case have != nil && Follows(have, want):
		return equal, nil
	case have != nil && have.Spec.Destination != want.Spec.Destination:
		// An engine that finds its destination changed leaves behind what it deployed
		// to the old one. So the Application goes first, with all that it deployed.
		if gone, err := s.Engine.DeleteApplication(ctx, name); err != nil || !gone {
			return awaiting, err
		}
		have = nil
	}
	if err := s.Projects.Allow(ctx, row.Tenant, want); err != nil {
		return equal, err
	}
	if have == nil {
		if err := s.Engine.CreateApplication(ctx, want); err != nil {
			return equal, fmt.Errorf("create Application: %w", err)
		}
		return equal, nil
	}
	if err := s.Engine.UpdateApplication(ctx, have, want); err != nil {
		return equal, fmt.Errorf("update Application: %w", err)
	}
	if have.Spec.Source != nil && have.Spec.Source.RepoURL != want.Spec.Source.RepoURL {
		return equal, s.Projects.Refresh(ctx, row.Tenant)
	}
	return equal, nil
}

// removeApplication deletes even where the cache has no such Application: it
// may have been created a moment ago, and a miss costs one request.
func (s *Steps) removeApplication(ctx context.Context, name string, t domain.TenantID) (progress, error) {
	gone, err := s.Engine.DeleteApplication(ctx, name)
	if err != nil {
		return equal, fmt.Errorf("delete Application: %w", err)
	}
	if !gone {
		return awaiting, nil
	}
	return removed, s.Projects.Refresh(ctx, t)
}

// Follows says whether an Application is as it should be, as far as that is ours
// to say: spec and labels. Without its labels nobody would watch it.
func Follows(have, want *argov1alpha1.Application) bool {
	for label, value := range want.Labels {
		if have.Labels[label] != value {
			return false
		}
	}
	return equality.Semantic.DeepEqual(have.Spec, want.Spec)
}
