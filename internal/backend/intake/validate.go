// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net/url"
	"path"
	"strings"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

// Policy is what the operator of the service allows beyond the defaults.
type Policy struct {
	// AllowPlainHTTP accepts http:// repositories: for a laptop, where the Git
	// server is on the same machine. Never for a service with strangers.
	AllowPlainHTTP bool
}

// desiredApplication turns a CR into the application it asks for, or into a
// *domain.Refusal that names the field. The schema has seen the CR before; what
// is checked here is what the schema cannot say, or what deserves a condition.
func desiredApplication(cr *v1alpha1.GitOpsDeployment, p Policy) (domain.ApplicationSpec, error) {
	src := cr.Spec.Source
	if err := checkRepository(src.RepoURL, p); err != nil {
		return domain.ApplicationSpec{}, err
	}
	if err := domain.CheckPath("spec.source.path", src.Path); err != nil {
		return domain.ApplicationSpec{}, err
	}
	if err := domain.CheckRevision("spec.source.targetRevision", src.TargetRevision); err != nil {
		return domain.ApplicationSpec{}, err
	}
	namespace, err := destinationNamespace(cr)
	if err != nil {
		return domain.ApplicationSpec{}, err
	}
	spec := domain.ApplicationSpec{
		RepoURL:        src.RepoURL,
		Path:           path.Clean(src.Path),
		TargetRevision: src.TargetRevision,
		Namespace:      namespace,
		Environment:    cr.Spec.Destination.Environment,
		Automated:      cr.Spec.Type == v1alpha1.DeploymentTypeAutomated,
	}
	if cr.Spec.SyncPolicy != nil {
		for _, o := range cr.Spec.SyncPolicy.SyncOptions {
			spec.SyncOptions = append(spec.SyncOptions, string(o))
		}
	}
	return spec, nil
}

// checkRepository accepts what can only be a host and a path. The schema says
// the same; it is said again here because what follows is given to a program with
// options of its own.
func checkRepository(repo string, p Policy) error {
	const field = "spec.source.repoURL"
	refuse := func(problem, remedy string) error {
		return &domain.Refusal{Field: field, Problem: problem, Remedy: remedy}
	}
	const form = "write it as https://host/path, ssh://git@host/path or git@host:path"
	if repo == "" {
		return refuse("is empty", "set it to the https:// or ssh:// URL of a Git repository")
	}
	if strings.ContainsFunc(repo, domain.Unprintable) {
		return refuse("contains a space or a control character", form)
	}
	// It becomes an entry of the tenant's project, where engines read patterns.
	if strings.ContainsAny(repo, domain.Globs) {
		return refuse("contains one of "+domain.Globs+", which stand for other characters in a list of repositories", "write it without them, percent-encoded where need be")
	}
	if user, at, isSCP := strings.Cut(repo, "@"); isSCP && !strings.Contains(repo, "://") {
		host, path, _ := strings.Cut(at, ":")
		if host == "" || path == "" || strings.HasPrefix(user, "-") || strings.HasPrefix(host, "-") || strings.HasPrefix(path, "-") {
			return refuse("is not a host and a path", form)
		}
		return nil
	}
	u, err := url.Parse(repo)
	if err != nil || u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-") {
		return refuse("is not a URL with a host", form)
	}
	if _, password := u.User.Password(); password || (u.User != nil && u.Scheme != "ssh") || strings.HasPrefix(u.User.Username(), "-") {
		return refuse("carries credentials", "put them in a GitOpsDeploymentRepositoryCredential")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return refuse("has a query or a fragment", form)
	}
	switch {
	case u.Scheme == "https", u.Scheme == "ssh", u.Scheme == "http" && p.AllowPlainHTTP:
		return nil
	case u.Scheme == "http":
		return refuse("uses http, which anybody on the way can change", "use https:// or ssh://")
	default:
		return refuse("does not begin with https:// or ssh://", "use one of the two")
	}
}

// destinationNamespace keeps a deployment without an environment inside the
// tenant's own namespace: on the service's cluster no other is theirs.
func destinationNamespace(cr *v1alpha1.GitOpsDeployment) (string, error) {
	d := cr.Spec.Destination
	if d.Environment != "" {
		if d.Namespace == "" {
			return "", &domain.Refusal{
				Field: "spec.destination.namespace", Problem: "is empty although spec.destination.environment is set",
				Remedy: "name the namespace on that environment's cluster",
			}
		}
		return d.Namespace, nil
	}
	if d.Namespace != "" && d.Namespace != cr.Namespace {
		return "", &domain.Refusal{
			Field: "spec.destination.namespace", Problem: "is not the namespace of this GitOpsDeployment although spec.destination.environment is empty",
			Remedy: "leave it empty, or name a GitOpsDeploymentManagedEnvironment in spec.destination.environment",
		}
	}
	return cr.Namespace, nil
}
