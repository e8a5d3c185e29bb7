// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"errors"
	"fmt"
	"log/slog"
	"path"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ResourceFilter matches kinds. Both lists have to have a match; an empty list
// matches everything. An entry can have the wildcards of path.Match.
type ResourceFilter struct {
	APIGroups []string
	Kinds     []string
}

func (f ResourceFilter) matches(gk schema.GroupKind) bool {
	return anyMatch(f.APIGroups, gk.Group) && anyMatch(f.Kinds, gk.Kind)
}

func anyMatch(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool {
		// NewClusterCache has seen to it that all patterns are well formed.
		ok, _ := path.Match(p, text)
		return ok
	})
}

// ResourcesAPIFilter says which kinds are watched.
type ResourcesAPIFilter struct {
	// ResourceExclusions are kinds that are not watched. They win.
	ResourceExclusions []ResourceFilter
	// ResourceInclusions are the only kinds that are watched; empty is all.
	ResourceInclusions []ResourceFilter
}

func (f ResourcesAPIFilter) allows(gk schema.GroupKind) bool {
	matches := func(r ResourceFilter) bool { return r.matches(gk) }
	if slices.ContainsFunc(f.ResourceExclusions, matches) {
		return false
	}
	return len(f.ResourceInclusions) == 0 || slices.ContainsFunc(f.ResourceInclusions, matches)
}

func (f ResourcesAPIFilter) check() error {
	for _, filter := range slices.Concat(f.ResourceExclusions, f.ResourceInclusions) {
		for _, pattern := range slices.Concat(filter.APIGroups, filter.Kinds) {
			if _, err := path.Match(pattern, ""); err != nil {
				return fmt.Errorf("livestate: filter %q: %w", pattern, err)
			}
		}
	}
	return nil
}

// Noise gives exclusions for kinds that change all the time and that nobody
// deploys: events and leases.
func Noise() []ResourceFilter {
	return []ResourceFilter{
		{APIGroups: []string{"", "events.k8s.io"}, Kinds: []string{"Event"}},
		{APIGroups: []string{"coordination.k8s.io"}, Kinds: []string{"Lease"}},
	}
}

// ResourceEventHandlers are called when resources change; see the package
// documentation for the order. Objects have apiVersion, kind and metadata (without
// managedFields), nothing else, and belong to the handler.
type ResourceEventHandlers struct {
	OnCreated func(obj *unstructured.Unstructured)
	OnUpdated func(updated *unstructured.Unstructured)
	OnDeleted func(key ResourceID)
}

// Settings change what a cache holds and how.
type Settings struct {
	Filter        ResourcesAPIFilter
	EventHandlers ResourceEventHandlers
	// Namespaces, if there are any, are the only ones that are watched, each with
	// watches of its own; cluster-scoped resources are then ignored. It is for
	// credentials that may not see the whole cluster.
	Namespaces []string
	// ResyncPeriod is how often everything is listed again, whether or not a watch
	// says that it is needed. Zero is never.
	ResyncPeriod time.Duration

	// Labels and Annotations are the keys that are kept.
	Labels      []string
	Annotations []string
	// Logger is told of trouble with the API server; nil is nobody.
	Logger *slog.Logger
}

// ErrSettings is returned for settings that make no sense.
var ErrSettings = errors.New("livestate: settings")

// maxKept is how many keys fit the number that a node has for each.
const maxKept = 1 << 16

func (s Settings) check() error {
	switch {
	case slices.Contains(s.Namespaces, ""):
		return fmt.Errorf("%w: a namespace is empty; for the whole cluster give no namespaces", ErrSettings)
	case s.ResyncPeriod < 0:
		return fmt.Errorf("%w: the resync period is negative", ErrSettings)
	case len(s.Labels)+len(s.Annotations) > maxKept:
		return fmt.Errorf("%w: too many labels or annotations are kept", ErrSettings)
	}
	return s.Filter.check()
}

// withDefaults gives a copy that the caller cannot change.
func (s Settings) withDefaults() Settings {
	s.Namespaces = distinct(s.Namespaces)
	s.Labels = distinct(s.Labels)
	s.Annotations = distinct(s.Annotations)
	s.Filter.ResourceExclusions = slices.Clone(s.Filter.ResourceExclusions)
	s.Filter.ResourceInclusions = slices.Clone(s.Filter.ResourceInclusions)
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	return s
}

func distinct(texts []string) []string {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return slices.Compact(texts)
}
