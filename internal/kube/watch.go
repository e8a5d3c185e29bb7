// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WatchAll has a cache begin with all of these kinds when it starts. Left to the
// controllers, one kind would wait for the one before, and "the caches are read"
// would be true while some have not begun.
func WatchAll(ctx context.Context, c cache.Cache, kinds ...client.Object) error {
	for _, kind := range kinds {
		if _, err := c.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("watch %T: %w", kind, err)
		}
	}
	return nil
}
