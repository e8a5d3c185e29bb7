// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"net/url"
	"path"
	"strings"
	"unicode"

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
	if err := checkPath(src.Path); err != nil {
		return domain.ApplicationSpec{}, err
	}
	if err := checkRevision(src.TargetRevision); err != nil {
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
	if strings.ContainsFunc(repo, unprintable) {
		return refuse("contains a space or a control character", form)
	}
	// It becomes an entry of the tenant's project, where engines read patterns.
	if strings.ContainsAny(repo, globs) {
		return refuse("contains one of "+globs+", which stand for other characters in a list of repositories", "write it without them, percent-encoded where need be")
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

const globs = `*[]{}!\^`

// checkRevision refuses what git would take for an option or for two revisions.
func checkRevision(revision string) error {
	return checkRevisionOf("spec.source.targetRevision", revision)
}

func checkRevisionOf(field, revision string) error {
	if strings.HasPrefix(revision, "-") || strings.Contains(revision, "..") || strings.ContainsFunc(revision, unprintable) {
		return &domain.Refusal{Field: field, Problem: "is not the name of one revision", Remedy: "name a branch, a tag or a commit"}
	}
	return nil
}

func unprintable(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }

// checkPath accepts a path inside the repository. "." is the whole of it and
// has to be written out: an empty path or "/" has deployed more than was meant
// before.
func checkPath(p string) error {
	const field = "spec.source.path"
	const remedy = `name a folder inside the repository, such as "deploy" or, for all of it, "."`
	switch {
	case p == "":
		return &domain.Refusal{Field: field, Problem: "is empty", Remedy: remedy}
	case p == "/":
		return &domain.Refusal{Field: field, Problem: `is "/"`, Remedy: remedy}
	case strings.HasPrefix(p, "/"):
		return &domain.Refusal{Field: field, Problem: "is absolute", Remedy: remedy}
	case strings.HasPrefix(p, "-"):
		return &domain.Refusal{Field: field, Problem: `begins with "-"`, Remedy: remedy}
	case strings.ContainsFunc(p, unicode.IsControl), strings.Contains(p, `\`), strings.TrimSpace(p) != p:
		return &domain.Refusal{Field: field, Problem: "contains a backslash or a control character, or begins or ends with a space", Remedy: remedy}
	}
	for _, part := range strings.Split(p, "/") {
		if part == ".." {
			return &domain.Refusal{Field: field, Problem: `contains ".."`, Remedy: remedy}
		}
	}
	return nil
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
