// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// ClusterCache is the Cache of one cluster. It is filled while Run runs; after
// that it can still be read, and does not change any more.
type ClusterCache struct {
	settings  Settings
	store     *store
	http      *http.Client
	client    metadata.Interface
	discovery discovery.DiscoveryInterfaceWithContext
	lists     chan struct{}
	// stale has an entry when discovery should be asked again.
	stale chan struct{}
	ran   atomic.Bool

	mu     sync.Mutex
	served served
	failed []schema.GroupVersion
	asked  bool // discovery has answered
	states map[target]*state
	// news is closed at the next change of what is above.
	news chan struct{}
}

var _ Cache = (*ClusterCache)(nil)

// listsAtOnce is how many kinds are listed at the same time.
const listsAtOnce = 8

// NewClusterCache makes a cache for the cluster that config leads to. Nothing is
// asked of the cluster before Run.
func NewClusterCache(config *rest.Config, settings Settings) (*ClusterCache, error) {
	if err := settings.check(); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// Watches live long, and each request has a time limit of its own.
	config.Timeout = 0
	// What is asked at once is bounded by listsAtOnce; a limit on requests each
	// second would only delay the start, when there is one for each kind.
	config.QPS, config.RateLimiter = -1, nil
	if config.WarningHandler == nil && config.WarningHandlerWithContext == nil {
		// Every kind is watched; that some of them are old is nobody's mistake.
		config.WarningHandler = rest.NoWarnings{}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("livestate: %w", err)
	}
	objects, err := metadata.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("livestate: %w", err)
	}
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("livestate: %w", err)
	}
	settings = settings.withDefaults()
	return &ClusterCache{
		settings:  settings,
		store:     newStore(settings.Labels, settings.Annotations),
		http:      client,
		client:    objects,
		discovery: kinds,
		lists:     make(chan struct{}, listsAtOnce),
		stale:     make(chan struct{}, 1),
		served:    served{},
		states:    map[target]*state{},
		news:      make(chan struct{}),
	}, nil
}

// List returns the ids of resources that match, in no particular order.
func (c *ClusterCache) List(options ListOptions) ([]ResourceID, error) {
	return c.store.list(options)
}

// Get gives what is known of one object.
func (c *ClusterCache) Get(id ResourceID) (Resource, bool) {
	return c.store.get(id)
}

// GetResourceAPIMetadata says how the API serves a kind.
func (c *ClusterCache) GetResourceAPIMetadata(gk schema.GroupKind) (metav1.APIResource, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r, ok := c.served.find(gk)
	if !ok {
		return metav1.APIResource{}, fmt.Errorf("%w: %s", ErrUnknownKind, gk)
	}
	return r, nil
}

// IterateChildTree calls action for the roots and everything below, owners first.
func (c *ClusterCache) IterateChildTree(roots []ResourceID, action func(key ResourceID) error) error {
	// The lock is not held while action runs: it may call the cache.
	for _, id := range c.store.tree(roots) {
		if err := action(id); err != nil {
			return err
		}
	}
	return nil
}
