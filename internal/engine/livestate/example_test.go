// SPDX-License-Identifier: Apache-2.0

package livestate_test

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/engine/livestate"
)

// Show everything that belongs to a Deployment.
func ExampleClusterCache() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := rest.InClusterConfig()
	if err != nil {
		fmt.Println("not in a cluster")
		return
	}
	cache, err := livestate.NewClusterCache(config, livestate.Settings{
		Filter:       livestate.ResourcesAPIFilter{ResourceExclusions: livestate.Noise()},
		Labels:       []string{"app.kubernetes.io/instance"},
		ResyncPeriod: 12 * time.Hour,
		EventHandlers: livestate.ResourceEventHandlers{
			OnDeleted: func(key livestate.ResourceID) { fmt.Println("gone:", key) },
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error, 1)
	go func() { done <- cache.Run(ctx) }()
	if err := cache.WaitForSync(ctx); err != nil {
		fmt.Println(err)
		return
	}
	web := livestate.ResourceID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}
	err = cache.IterateChildTree([]livestate.ResourceID{web}, func(key livestate.ResourceID) error {
		fmt.Println(key)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	cancel()
	<-done
	// Output: not in a cluster
}

func ExampleResourceID_String() {
	fmt.Println(livestate.ResourceID{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"})
	// Output: Deployment.apps shop/web
}
