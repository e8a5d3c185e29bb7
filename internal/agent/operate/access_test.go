// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/seal"
	"github.com/weir-gitops/weir/internal/store"
)

const (
	environmentRow = "77c5d2d4-4f0c-4a3e-8d6b-3c7a1f0b9e21"
	credentialRow  = "93b1e6aa-1a3a-4d85-a8de-0a6f5e1c7d32"
	canary         = "canary-4b7e92"
)

func withEnvironment(access kubeconfig.Access, options ...func(*store.Environment)) worldOption {
	return func(w *world) {
		text, err := access.Encode()
		if err != nil {
			panic(err)
		}
		row := store.Environment{ID: environmentRow, Tenant: "tenant-a", Name: "prod", Credentials: &store.ClusterCredentials{Host: access.Server, SealedAccess: text, KeyID: "key"}}
		for _, o := range options {
			o(&row)
		}
		w.store.environments[environmentRow] = row
	}
}

func withCredential(c store.RepositoryCredential) worldOption {
	return func(w *world) {
		c.ID, c.Tenant, c.Repository = credentialRow, "tenant-a", "https://git.example.com/shop"
		w.store.credentials[credentialRow] = c
	}
}

func (w *world) stepOn(t *testing.T, kind domain.ResourceType, resource string) {
	t.Helper()
	if err := w.Step(t.Context(), kind, resource); err != nil {
		t.Fatal(err)
	}
}

func TestClusterSecret(t *testing.T) {
	t.Parallel()
	token := kubeconfig.Access{Server: "https://api.example.com:6443", Token: canary, TLSServerName: "api"}
	w := newWorld(t, withEnvironment(token, func(e *store.Environment) {
		e.Credentials.Namespaces, e.Credentials.ClusterResources = []string{"db", "shop"}, true
	}), announcedOn(domain.ResourceManagedEnvironment, environmentRow, "1"))
	w.stepOn(t, domain.ResourceManagedEnvironment, environmentRow)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "argocd", Name: "managed-env-" + environmentRow,
			Labels: map[string]string{"argocd.argoproj.io/secret-type": "cluster", "managedgitops.io/tenant": "tenant-a"},
		},
		Data: map[string][]byte{
			"name":             []byte("managed-env-" + environmentRow),
			"server":           []byte("https://api.example.com:6443?managedEnvironment=" + environmentRow),
			"config":           []byte(`{"bearerToken":"` + canary + `","tlsClientConfig":{"insecure":false,"serverName":"api"}}`),
			"project":          []byte("tenant-tenant-a"),
			"namespaces":       []byte("db,shop"),
			"clusterResources": []byte("true"),
		},
	}
	expect(t, "secret", want, w.engine.secrets[want.Name])
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
	if strings.Contains(w.log.String(), canary) {
		t.Errorf("the log holds the token:\n%s", w.log)
	}

	announcedOn(domain.ResourceManagedEnvironment, environmentRow, "2")(w)
	w.stepOn(t, domain.ResourceManagedEnvironment, environmentRow)
	expect(t, "written once", []string{"create " + want.Name, "remove Operation 1", "remove Operation 2"}, w.engine.log)

	// What somebody else changed is put right again.
	w.engine.secrets[want.Name].Data["server"] = []byte("https://elsewhere")
	announcedOn(domain.ResourceManagedEnvironment, environmentRow, "3")(w)
	w.stepOn(t, domain.ResourceManagedEnvironment, environmentRow)
	expect(t, "secret", want, w.engine.secrets[want.Name])
}

func TestClusterSecretSaysAsWhomToConnect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		access kubeconfig.Access
		config string
	}{
		"a token":       {kubeconfig.Access{Server: "https://a", Token: "t"}, `{"bearerToken":"t","tlsClientConfig":{"insecure":false}}`},
		"unchecked":     {kubeconfig.Access{Server: "https://a", Token: "t", Insecure: true}, `{"bearerToken":"t","tlsClientConfig":{"insecure":true}}`},
		"a server name": {kubeconfig.Access{Server: "https://a", Token: "t", TLSServerName: "b"}, `{"bearerToken":"t","tlsClientConfig":{"insecure":false,"serverName":"b"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withEnvironment(c.access))
			secret, err := w.clusterSecret(t.Context(), w.store.environments[environmentRow])
			if err != nil {
				t.Fatal(err)
			}
			expect(t, "config", c.config, string(secret.Data["config"]))
			if _, has := secret.Data["namespaces"]; has {
				t.Error("an environment of all namespaces is limited to some")
			}
			expect(t, "cluster resources", "false", string(secret.Data["clusterResources"]))
			if !json.Valid(secret.Data["config"]) {
				t.Error("the config is no JSON")
			}
		})
	}
}

func TestRepositorySecret(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		row  store.RepositoryCredential
		want map[string]string
	}{
		"a login": {store.RepositoryCredential{SealedUsername: []byte("robot"), SealedPassword: []byte(canary)}, map[string]string{"username": "robot", "password": canary}},
		"a token": {store.RepositoryCredential{SealedPassword: []byte(canary)}, map[string]string{"password": canary}},
		"a key":   {store.RepositoryCredential{SealedSSHKey: []byte(canary)}, map[string]string{"sshPrivateKey": canary}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, withCredential(c.row), announcedOn(domain.ResourceRepositoryCredential, credentialRow, "1"))
			w.stepOn(t, domain.ResourceRepositoryCredential, credentialRow)
			want := map[string]string{"type": "git", "url": "https://git.example.com/shop", "project": "tenant-tenant-a"}
			for k, v := range c.want {
				want[k] = v
			}
			got := map[string]string{}
			secret := w.engine.secrets["repo-cred-"+credentialRow]
			for k, v := range secret.Data {
				got[k] = string(v)
			}
			expect(t, "contents", want, got)
			expect(t, "labels", map[string]string{"argocd.argoproj.io/secret-type": "repository", "managedgitops.io/tenant": "tenant-a"}, secret.Labels)
			if strings.Contains(w.log.String(), canary) {
				t.Errorf("the log holds the credential:\n%s", w.log)
			}
		})
	}
}

func TestSecretsGoWithTheirRows(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind           domain.ResourceType
		row, secret    string
		andCredentials bool
	}{
		"environment":                     {domain.ResourceManagedEnvironment, environmentRow, "managed-env-" + environmentRow, false},
		"environment without credentials": {domain.ResourceManagedEnvironment, environmentRow, "managed-env-" + environmentRow, true},
		"credential":                      {domain.ResourceRepositoryCredential, credentialRow, "repo-cred-" + credentialRow, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, announcedOn(c.kind, c.row, "1"))
			w.engine.secrets[c.secret] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: c.secret}}
			w.engine.secrets["another"] = &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "another"}}
			if c.andCredentials {
				w.store.environments[c.row] = store.Environment{ID: environmentRow, Tenant: "tenant-a"}
			}
			w.stepOn(t, c.kind, c.row)
			expect(t, "left", 1, len(w.engine.secrets))
			expect(t, "recorded", []string{"Completed: removed"}, w.store.log)
			// Once more, where there is nothing: that is done as well.
			announcedOn(c.kind, c.row, "2")(w)
			w.stepOn(t, c.kind, c.row)
			expect(t, "state", domain.OperationCompleted, w.store.operations["2"].State)
		})
	}
}

func TestWithoutAKeyRingCredentialsFailAndSayWhy(t *testing.T) {
	t.Parallel()
	for kind, row := range map[domain.ResourceType]string{domain.ResourceManagedEnvironment: environmentRow, domain.ResourceRepositoryCredential: credentialRow} {
		w := newWorld(t, withEnvironment(kubeconfig.Access{Server: "https://a", Token: canary}),
			withCredential(store.RepositoryCredential{SealedPassword: []byte(canary)}), announcedOn(kind, row, "1"))
		w.Sealer = nil
		w.stepOn(t, kind, row)
		expect(t, "recorded", []string{"Failed: this agent has no key ring, so it cannot read the credential: start it with --key-ring"}, w.store.log)
		expect(t, "secrets", 0, len(w.engine.secrets))
		expect(t, "Operations", 0, len(w.engine.operations))
	}
}

func TestAKeyRingThatIsAwayIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, withCredential(store.RepositoryCredential{SealedPassword: []byte(canary)}), announcedOn(domain.ResourceRepositoryCredential, credentialRow, "1"))
	w.Sealer = locked{}
	if err := w.Step(t.Context(), domain.ResourceRepositoryCredential, credentialRow); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	expect(t, "state", domain.OperationInProgress, w.store.operations["1"].State)
	expect(t, "secrets", 0, len(w.engine.secrets))
	w.Sealer = plain{}
	w.stepOn(t, domain.ResourceRepositoryCredential, credentialRow)
	expect(t, "state", domain.OperationCompleted, w.store.operations["1"].State)
}

var errAway = errors.New("key ring is away")

// locked opens nothing.
type locked struct{}

func (locked) Open(context.Context, seal.Place, seal.Sealed) ([]byte, error) { return nil, errAway }
