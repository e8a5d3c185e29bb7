// SPDX-License-Identifier: Apache-2.0

package livestate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

// sameObjects gives the kind under which the objects of gk are served too, if it
// is one of those that show other kinds' objects a second time.
func sameObjects(gk schema.GroupKind) (schema.GroupKind, bool) {
	var to string
	switch gk.Group {
	case "extensions":
		switch gk.Kind {
		case "DaemonSet", "Deployment", "ReplicaSet":
			to = "apps"
		case "Ingress", "NetworkPolicy":
			to = "networking.k8s.io"
		case "PodSecurityPolicy":
			to = "policy"
		default:
			return gk, false
		}
	case "authorization.openshift.io":
		switch gk.Kind {
		case "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
			to = "rbac.authorization.k8s.io"
		default:
			return gk, false
		}
	case "project.openshift.io":
		return schema.GroupKind{Kind: "Namespace"}, gk.Kind == "Project"
	case "events.k8s.io":
		return schema.GroupKind{Kind: gk.Kind}, gk.Kind == "Event"
	default:
		return gk, false
	}
	return schema.GroupKind{Group: to, Kind: gk.Kind}, true
}

// definesKinds says whether a change to an object of the kind can change what
// discovery answers.
func definesKinds(gk schema.GroupKind) bool {
	switch gk {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
		schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return true
	}
	return false
}

// served is what a cluster serves: one version of each kind.
type served map[schema.GroupKind]metav1.APIResource

// errNoCore: a server without its core group is one that does not tell us. To
// believe it would be to drop every object.
var errNoCore = errors.New("livestate: discovery does not name the core group")

// discover asks for all kinds. Groups that do not answer are in failed, and what
// was known of them before stays.
func discover(ctx context.Context, client discovery.DiscoveryInterfaceWithContext, before served) (_ served, failed []schema.GroupVersion, _ error) {
	lists, err := client.ServerPreferredResourcesWithContext(ctx)
	var partly *discovery.ErrGroupDiscoveryFailed
	switch {
	case errors.As(err, &partly):
		for gv := range partly.Groups {
			failed = append(failed, gv)
		}
		slices.SortFunc(failed, func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) })
	case err != nil:
		return nil, nil, fmt.Errorf("livestate: discovery: %w", err)
	}
	now := served{}
	core := false
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue // a server that names no version serves nothing under it
		}
		core = core || gv.Group == ""
		for _, r := range list.APIResources {
			now.add(gv, r)
		}
	}
	for gk, r := range before {
		// The version that was served before does not answer: neither that it is gone
		// nor that another one is preferred now is known.
		if slices.Contains(failed, schema.GroupVersion{Group: r.Group, Version: r.Version}) {
			now[gk] = r
			core = core || gk.Group == ""
		}
	}
	if !core {
		return nil, failed, errNoCore
	}
	return now, failed, nil
}

// add takes a resource, unless it is a part of another one or its kind is there
// already and can be watched.
func (s served) add(gv schema.GroupVersion, r metav1.APIResource) {
	if strings.Contains(r.Name, "/") || r.Kind == "" {
		return
	}
	if r.Group == "" {
		r.Group = gv.Group
	}
	if r.Version == "" {
		r.Version = gv.Version
	}
	gk := schema.GroupKind{Group: r.Group, Kind: r.Kind}
	if old, ok := s[gk]; ok && (watchable(old) || !watchable(r)) {
		return
	}
	s[gk] = r
}

func watchable(r metav1.APIResource) bool {
	return slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch")
}

// find gives a kind, or the one that shows the same objects.
func (s served) find(gk schema.GroupKind) (metav1.APIResource, bool) {
	if r, ok := s[gk]; ok {
		return r, true
	}
	same, ok := sameObjects(gk)
	if !ok {
		return metav1.APIResource{}, false
	}
	r, ok := s[same]
	return r, ok
}

// target is one thing to watch.
type target struct {
	gk        schema.GroupKind
	namespace string
}

// plan is how a target is watched.
type plan struct {
	resource   schema.GroupVersionResource
	namespaced bool
	// stored is false for a target that is watched only for what it says about
	// other kinds.
	stored bool
}

// targets decides what is watched.
func (s served) targets(settings Settings) map[target]plan {
	all := map[target]plan{}
	for gk, r := range s {
		if !watchable(r) {
			continue
		}
		if same, ok := sameObjects(gk); ok && watchable(s[same]) {
			continue
		}
		p := plan{
			resource:   schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Name},
			namespaced: r.Namespaced, stored: settings.Filter.allows(gk),
		}
		switch {
		case len(settings.Namespaces) > 0 && r.Namespaced && p.stored:
			for _, ns := range settings.Namespaces {
				all[target{gk, ns}] = p
			}
		case definesKinds(gk):
			p.stored = p.stored && len(settings.Namespaces) == 0
			all[target{gk: gk}] = p
		case len(settings.Namespaces) == 0 && p.stored:
			all[target{gk: gk}] = p
		}
	}
	return all
}
