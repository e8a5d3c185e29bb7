// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"net/url"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// usersOf lists the deployments that need an environment or a credential.
func (s *session) usersOf(ctx context.Context, o client.Object) ([]*v1alpha1.GitOpsDeployment, error) {
	items, err := s.all(ctx, deployments())
	if err != nil {
		return nil, err
	}
	var users []*v1alpha1.GitOpsDeployment
	for _, item := range items {
		if d, ok := item.(*v1alpha1.GitOpsDeployment); ok && uses(d, o) {
			users = append(users, d)
		}
	}
	return users, nil
}

func uses(d *v1alpha1.GitOpsDeployment, o client.Object) bool {
	switch o := o.(type) {
	case *v1alpha1.GitOpsDeploymentManagedEnvironment:
		return d.Spec.Destination.Environment == o.Name
	case *v1alpha1.GitOpsDeploymentRepositoryCredential:
		return repositoryKey(d.Spec.Source.RepoURL) == repositoryKey(o.Spec.Repository)
	default:
		return false
	}
}

// repositoryKey makes the usual spellings of one repository equal: a host in
// any case, and with or without .git and / at the end.
func repositoryKey(repository string) string {
	repository = strings.TrimSuffix(strings.TrimRight(repository, "/"), ".git")
	address, err := url.Parse(repository)
	if err != nil || address.Host == "" {
		return repository
	}
	address.Host = strings.ToLower(address.Host)
	return address.String()
}
