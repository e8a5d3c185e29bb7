// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
)

// SecretEngine is what credentials need of an engine's namespace.
type SecretEngine interface {
	// Secret gives a Secret that is at least as new as our own last write to it,
	// nil where there is none.
	Secret(ctx context.Context, name string) (*corev1.Secret, error)
	PutSecret(ctx context.Context, have, want *corev1.Secret) error
	DeleteSecret(ctx context.Context, have *corev1.Secret) error
}

// Opener decrypts what the backend sealed.
type Opener interface {
	Open(ctx context.Context, p seal.Place, v seal.Sealed) ([]byte, error)
}

// environment makes the engine's cluster Secret equal to an environment's row.
func (s *Steps) environment(ctx context.Context, id domain.EnvironmentID, task store.Task) (progress, error) {
	name := domain.ClusterSecretName(id)
	if e := task.Environment; e == nil || e.Credentials == nil {
		how, err := s.removeSecret(ctx, name)
		if err != nil {
			return how, err
		}
		return how, s.Projects.Refresh(ctx, task.Operation.Tenant)
	}
	want, err := s.clusterSecret(ctx, *task.Environment)
	if err != nil {
		return equal, err
	}
	had, err := s.putSecret(ctx, want)
	if err != nil {
		return equal, err
	}
	if had != nil && bytes.Equal(had.Data[clusterResources], want.Data[clusterResources]) {
		// All that a project says of an environment is as it was.
		return equal, nil
	}
	return equal, s.Projects.Refresh(ctx, task.Environment.Tenant)
}

// clusterResources is the entry of a cluster Secret that the project depends on.
const clusterResources = "clusterResources"

// credential makes the engine's repository Secret equal to a credential's row.
func (s *Steps) credential(ctx context.Context, id domain.CredentialID, task store.Task) (progress, error) {
	if task.Credential == nil {
		return s.removeSecret(ctx, domain.RepositorySecretName(id))
	}
	want, err := s.repositorySecret(ctx, *task.Credential)
	if err != nil {
		return equal, err
	}
	_, err = s.putSecret(ctx, want)
	return equal, err
}

// putSecret makes a Secret as it should be, and gives the one that was there.
func (s *Steps) putSecret(ctx context.Context, want *corev1.Secret) (had *corev1.Secret, err error) {
	have, err := s.Engine.Secret(ctx, want.Name)
	if err != nil {
		return nil, fmt.Errorf("read Secret %s: %w", want.Name, err)
	}
	if have != nil && SecretFollows(have, want) {
		return have, nil
	}
	if err := s.Engine.PutSecret(ctx, have, want); err != nil {
		return have, fmt.Errorf("write Secret %s: %w", want.Name, err)
	}
	return have, nil
}

func (s *Steps) removeSecret(ctx context.Context, name string) (progress, error) {
	have, err := s.Engine.Secret(ctx, name)
	if err != nil {
		return equal, fmt.Errorf("read Secret %s: %w", name, err)
	}
	if have == nil {
		return removed, nil
	}
	if err := s.Engine.DeleteSecret(ctx, have); err != nil {
		return equal, fmt.Errorf("delete Secret %s: %w", name, err)
	}
	return removed, nil
}

// SecretFollows says whether a Secret is as it should be: contents, type and our
// labels.
func SecretFollows(have, want *corev1.Secret) bool {
	for label, value := range want.Labels {
		if have.Labels[label] != value {
			return false
		}
	}
	return maps.EqualFunc(have.Data, want.Data, bytes.Equal)
}

// errNoKey is for an agent that was started without a key ring.
var errNoKey = errors.New("this agent has no key ring, so it cannot read the credential: start it with --key-ring")

func (s *Steps) open(ctx context.Context, t domain.TenantID, table, row, column, keyID string, text []byte) ([]byte, error) {
	if s.Sealer == nil {
		return nil, errNoKey
	}
	return s.Sealer.Open(ctx, seal.Place{Tenant: t, Table: table, Row: row, Column: column}, seal.Sealed{KeyID: keyID, Text: text})
}

// clusterConfig is how Argo CD's cluster Secrets say as whom to connect.
type clusterConfig struct {
	BearerToken     string    `json:"bearerToken,omitempty"`
	TLSClientConfig tlsConfig `json:"tlsClientConfig"`
}

type tlsConfig struct {
	Insecure   bool   `json:"insecure"`
	ServerName string `json:"serverName,omitempty"`
	CAData     []byte `json:"caData,omitempty"`
	CertData   []byte `json:"certData,omitempty"`
	KeyData    []byte `json:"keyData,omitempty"`
}

func (s *Steps) clusterSecret(ctx context.Context, e store.Environment) (*corev1.Secret, error) {
	c := e.Credentials
	if err := checkNamespaces(c.Namespaces); err != nil {
		return nil, err
	}
	text, err := s.open(ctx, e.Tenant, "cluster_credentials", string(e.ID), "sealed_kubeconfig", c.KeyID, c.SealedAccess)
	if err != nil {
		return nil, err
	}
	access, err := kubeconfig.Decode(text)
	if err != nil {
		return nil, fmt.Errorf("credentials of environment %s: %w", e.ID, err)
	}
	config, err := json.Marshal(clusterConfig{
		BearerToken: access.Token,
		TLSClientConfig: tlsConfig{
			Insecure: access.Insecure, ServerName: access.TLSServerName, CAData: access.CAData, CertData: access.ClientCert, KeyData: access.ClientKey,
		},
	})
	if err != nil {
		return nil, err
	}
	secret := s.engineSecret(domain.ClusterSecretName(e.ID), argov1alpha1.SecretTypeCluster, e.Tenant)
	secret.Data = map[string][]byte{
		"name": []byte(secret.Name),
		// Engines tell clusters apart by their address. Two tenants may have the same
		// cluster, so the address carries the environment; API servers do not read it.
		"server":         []byte(access.Server + "?managedEnvironment=" + string(e.ID)),
		"config":         config,
		"project":        []byte(domain.EngineProjectName(e.Tenant)),
		clusterResources: fmt.Appendf(nil, "%t", c.ClusterResources),
	}
	if len(c.Namespaces) > 0 {
		secret.Data["namespaces"] = []byte(strings.Join(c.Namespaces, ","))
	}
	return secret, nil
}

func (s *Steps) repositorySecret(ctx context.Context, c store.RepositoryCredential) (*corev1.Secret, error) {
	if _, err := gitremote.Parse(c.Repository); err != nil {
		return nil, &damaged{"repository_credentials.repository_url", err}
	}
	secret := s.engineSecret(domain.RepositorySecretName(c.ID), argov1alpha1.SecretTypeRepository, c.Tenant)
	secret.Data = map[string][]byte{
		"type":    []byte("git"),
		"url":     []byte(c.Repository),
		"project": []byte(domain.EngineProjectName(c.Tenant)),
	}
	for _, part := range []struct {
		key, column string
		sealed      []byte
	}{
		{"username", "sealed_username", c.SealedUsername},
		{"password", "sealed_password", c.SealedPassword},
		{"sshPrivateKey", "sealed_ssh_key", c.SealedSSHKey},
	} {
		if part.sealed == nil {
			continue
		}
		text, err := s.open(ctx, c.Tenant, "repository_credentials", domain.SealedCredential(c.ID, c.Repository), part.column, c.KeyID, part.sealed)
		if err != nil {
			return nil, err
		}
		secret.Data[part.key] = text
	}
	return secret, nil
}

func (s *Steps) engineSecret(name, kind string, t domain.TenantID) *corev1.Secret {
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Instance.Namespace, Name: name,
			Labels: map[string]string{argov1alpha1.SecretTypeLabel: kind, argov1alpha1.TenantLabel: string(t)},
		},
	}
}
