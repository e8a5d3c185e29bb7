// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceID is a unique resource identifier.
type ResourceID struct {
	// Namespace is empty for cluster-scoped resources.
	Namespace string
	Name      string
	Group     string
	Kind      string
}

// String is for people: Deployment.apps shop/web.
func (id ResourceID) String() string {
	name := id.Name
	if id.Namespace != "" {
		name = id.Namespace + "/" + id.Name
	}
	return schema.GroupKind{Group: id.Group, Kind: id.Kind}.String() + " " + name
}

// ListOptions narrow down what List returns. All of them have to hold.
type ListOptions struct {
	// Selector restricts by labels. It can name only labels that Settings.Labels
	// names, as no others are kept; with another one List fails.
	Selector metav1.LabelSelector
	// Namespaces restricts by namespace. If it is not empty, no cluster-scoped
	// resource is returned.
	Namespaces []string
	// NamespacedOnly leaves out cluster-scoped resources.
	NamespacedOnly bool
	// ClusterLevelOnly leaves out namespaced resources.
	ClusterLevelOnly bool
	// TopLevelOnly leaves out resources that have an owner, whether the cache has
	// the owner or not.
	TopLevelOnly bool
}

// Cache gives access to the state of a cluster. All methods can be called at the
// same time.
type Cache interface {
	// List returns the ids of resources that match, in no particular order.
	List(options ListOptions) ([]ResourceID, error)
	// GetResourceAPIMetadata says how the API serves a kind: its resource name,
	// its preferred version, whether it has namespaces. It knows all kinds of the
	// cluster, also those that are not watched.
	GetResourceAPIMetadata(gk schema.GroupKind) (metav1.APIResource, error)
	// IterateChildTree calls action once for each of the roots and everything they
	// own, directly or not, owners first. Roots that are not in the cache are
	// passed over. The first error of action ends it and is returned. The picture
	// is of one moment; action may call the cache.
	IterateChildTree(roots []ResourceID, action func(key ResourceID) error) error
}

// Resource is what the cache knows of an object.
type Resource struct {
	ID              ResourceID
	UID             string
	ResourceVersion string
	// Labels and Annotations that the settings name and the object has.
	Labels      map[string]string
	Annotations map[string]string
}

// Errors of this package.
var (
	// ErrUnknownKind is returned for a kind that the cluster does not serve, or has
	// not said that it does yet.
	ErrUnknownKind = errors.New("livestate: the cluster does not serve this kind")
	// ErrLabelNotKept is returned for a selector over a label that is not kept.
	ErrLabelNotKept = errors.New("livestate: the label is not kept")
	// ErrAlreadyRun is returned by the second Run.
	ErrAlreadyRun = errors.New("livestate: a cache runs once")
	// ErrNotSynced is what a NotSyncedError is.
	ErrNotSynced = errors.New("livestate: not synced")
)

// NotSyncedError says what WaitForSync still waited for.
type NotSyncedError struct {
	// Kinds that have not been listed; empty if discovery has not answered.
	Kinds []schema.GroupKind
	// Cause is why waiting ended.
	Cause error
}

// Error names at most five kinds.
func (e *NotSyncedError) Error() string {
	what := "discovery has not answered"
	if len(e.Kinds) > 0 {
		var names []string
		for _, gk := range e.Kinds[:min(len(e.Kinds), 5)] {
			names = append(names, gk.String())
		}
		what = fmt.Sprintf("%d kinds are not listed yet, such as %s", len(e.Kinds), strings.Join(names, ", "))
	}
	return fmt.Sprintf("%v: %s: %v", ErrNotSynced, what, e.Cause)
}

// Unwrap gives ErrNotSynced and the cause.
func (e *NotSyncedError) Unwrap() []error { return []error{ErrNotSynced, e.Cause} }
