// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/domain"
)

// write writes a status where it says something else than the one that is there.
// domain.ErrConflict means that the CR is not what it was when it was read. Once
// written, keep makes it the caller's copy, which is then the newest there is.
func write(ctx context.Context, to client.SubResourceWriter, cr, shown client.Object, before, after any, keep func()) error {
	if equality.Semantic.DeepEqual(before, after) {
		return nil
	}
	switch err := to.Update(ctx, shown); {
	case apierrors.IsConflict(err):
		return fmt.Errorf("write status: %w", domain.ErrConflict)
	case apierrors.IsNotFound(err):
		// Gone in the meantime: there is nobody left to show it to.
		return nil
	case err != nil:
		return fmt.Errorf("write status of %s: %w", cr.GetName(), err)
	}
	keep()
	return nil
}
