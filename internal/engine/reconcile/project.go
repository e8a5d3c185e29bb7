// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/gitremote"
)

// checkProject says why a project does not let an Application be, or nothing. It
// is pure. Entries are compared as they are: nothing in them stands for anything
// else, but for a "*" alone.
func checkProject(p *argo.AppProject, app *argo.Application) string {
	switch {
	case !slices.ContainsFunc(p.Spec.SourceRepos, func(r string) bool { return r == "*" || sameRepository(r, app.Spec.Source.RepoURL) }):
		return fmt.Sprintf("repository %s is not permitted in project %s", app.Spec.Source.RepoURL, p.Name)
	case !slices.ContainsFunc(p.Spec.Destinations, func(d argo.ApplicationDestination) bool { return permits(d, app.Spec.Destination) }):
		d := app.Spec.Destination
		return fmt.Sprintf("destination %s%s, namespace %s, is not permitted in project %s", d.Server, d.Name, d.Namespace, p.Name)
	default:
		return ""
	}
}

func sameRepository(a, b string) bool {
	if a == b {
		return true
	}
	left, err := gitremote.Parse(a, gitremote.PlainHTTP)
	if err != nil {
		return false
	}
	right, err := gitremote.Parse(b, gitremote.PlainHTTP)
	return err == nil && left.Key() == right.Key()
}

func permits(allowed, wanted argo.ApplicationDestination) bool {
	same := func(allowed, wanted string) bool { return allowed == "*" || allowed == wanted }
	if wanted.Name != "" {
		return same(allowed.Name, wanted.Name) && same(allowed.Namespace, wanted.Namespace)
	}
	return same(allowed.Server, wanted.Server) && same(allowed.Namespace, wanted.Namespace)
}

// checkObject says why a project does not let an object be deployed, or nothing.
// It is pure.
func checkObject(p *argo.AppProject, destination, namespace, name string, kind schema.GroupKind, namespaced bool) string {
	if !namespaced {
		listed := func(r argo.ClusterResource) bool {
			return matches(r.Group, kind.Group) && matches(r.Kind, kind.Kind) && (r.Name == "" || matches(r.Name, name))
		}
		if slices.ContainsFunc(p.Spec.ClusterResourceBlacklist, listed) || !slices.ContainsFunc(p.Spec.ClusterResourceWhitelist, listed) {
			return fmt.Sprintf("%s %s has no namespace, and project %s does not permit it", kind, name, p.Name)
		}
		return ""
	}
	if namespace != destination {
		return fmt.Sprintf("%s %s is in namespace %s, and the destination is %s", kind, name, namespace, destination)
	}
	listed := func(k metav1.GroupKind) bool { return matches(k.Group, kind.Group) && matches(k.Kind, kind.Kind) }
	if slices.ContainsFunc(p.Spec.NamespaceResourceBlacklist, listed) ||
		len(p.Spec.NamespaceResourceWhitelist) > 0 && !slices.ContainsFunc(p.Spec.NamespaceResourceWhitelist, listed) {
		return fmt.Sprintf("%s %s is of a kind that project %s does not permit", kind, name, p.Name)
	}
	return ""
}

func matches(pattern, value string) bool { return pattern == "*" || pattern == value }

// deployer gives the service account that a project names for a destination, as a
// user to impersonate; empty where it names none.
func deployer(p *argo.AppProject, server, namespace string) string {
	for _, a := range p.Spec.DestinationServiceAccounts {
		if !matches(a.Server, server) || a.Namespace != "" && !matches(a.Namespace, namespace) {
			continue
		}
		in, name, qualified := strings.Cut(a.DefaultServiceAccount, ":")
		if !qualified {
			in, name = namespace, a.DefaultServiceAccount
		}
		return "system:serviceaccount:" + in + ":" + name
	}
	return ""
}
