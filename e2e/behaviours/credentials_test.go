// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/githttps"
	"github.com/weir-gitops/weir/internal/testkit/gitssh"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

// login puts a user and a password into a tenant's Secret; token and key likewise.
func (w *world) login(namespace, name, user, password string) {
	w.Helper()
	w.secret(namespace, name, v1alpha1.RepositoryCredentialSecretType, map[string][]byte{"username": []byte(user), "password": []byte(password)})
}

func (w *world) key(namespace, name string, key gitssh.Key) {
	w.Helper()
	w.secret(namespace, name, v1alpha1.RepositoryCredentialSecretType, map[string][]byte{"sshPrivateKey": []byte(key.Private)})
}

func (w *world) removeSecret(namespace, name string) {
	w.Helper()
	w.must(w.api.Delete(w.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}))
}

func (w *world) credential(namespace, name, repository, secret string) *v1alpha1.GitOpsDeploymentRepositoryCredential {
	w.Helper()
	c := &v1alpha1.GitOpsDeploymentRepositoryCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: repository, Secret: secret},
	}
	w.must(w.api.Create(w.ctx, c))
	return c
}

// awaitChecked waits until a credential's conditions say one thing: that it is good,
// or why it is not.
func (w *world) awaitChecked(c *v1alpha1.GitOpsDeploymentRepositoryCredential, reason v1alpha1.ConditionReason, words ...string) {
	w.Helper()
	good := reason == v1alpha1.ReasonRepositoryCredentialUpToDate
	testkit.Eventually(w.T, "credential "+c.Name+" says "+string(reason), func() string {
		latest := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(c), latest))
		wrong := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionErrorOccurred))
		valid := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionValidRepositoryCredential))
		url := meta.FindStatusCondition(latest.Status.Conditions, string(v1alpha1.ConditionValidRepositoryURL))
		if wrong == nil || valid == nil || url == nil {
			return fmt.Sprintf("%+v", latest.Status.Conditions)
		}
		if (wrong.Status == metav1.ConditionTrue) == good || (valid.Status == metav1.ConditionTrue) != good || valid.Reason != string(reason) {
			return fmt.Sprintf("%+v", latest.Status.Conditions)
		}
		if (url.Status == metav1.ConditionTrue) != (reason != v1alpha1.ReasonInvalidRepositoryURL) {
			return fmt.Sprintf("%+v", url)
		}
		return mention(wrong.Message, words...)
	})
}

// repositorySecret reads the engine's Secret for a credential, nil where there is
// none.
func (w *world) repositorySecret(c *v1alpha1.GitOpsDeploymentRepositoryCredential) *corev1.Secret {
	w.Helper()
	return w.engineSecret(domain.RepositorySecretName(domain.CredentialID(c.UID)))
}

// awaitRepositorySecret waits until the engine's Secret holds just this.
func (w *world) awaitRepositorySecret(c *v1alpha1.GitOpsDeploymentRepositoryCredential, want map[string]string) *corev1.Secret {
	w.Helper()
	var s *corev1.Secret
	testkit.Eventually(w.T, "the engine's Secret for "+c.Name, func() string {
		if s = w.repositorySecret(c); s == nil {
			return "none"
		}
		for _, key := range []string{"username", "password", "sshPrivateKey"} {
			if string(s.Data[key]) != want[key] {
				return "another " + key
			}
		}
		return ""
	})
	if string(s.Data["url"]) != c.Spec.Repository || string(s.Data["type"]) != "git" ||
		string(s.Data["project"]) != domain.EngineProjectName(domain.TenantID(w.namespaceUID(c.Namespace))) {
		w.Errorf("the engine's Secret is for %s in project %s", s.Data["url"], s.Data["project"])
	}
	return s
}

// opens says whether a repository answers to what an engine's Secret holds.
func (w *world) opens(s *corev1.Secret, git *githttps.Server) error {
	w.Helper()
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{AllowLoopback: true})
	w.must(err)
	return gitremote.Check(w.ctx, string(s.Data["url"]), gitremote.Credential{
		Username: string(s.Data["username"]), Password: string(s.Data["password"]), SSHPrivateKey: string(s.Data["sshPrivateKey"]),
	}, gitremote.Options{Dialer: dialer, RootCAs: git.Authorities, AcceptAnyHostKey: true})
}

// sshRepository is a repository behind SSH.
func sshRepository(t *testing.T, accepts ...gitssh.Key) (server *gitssh.Server, url string) {
	t.Helper()
	folder := t.TempDir()
	_, err := gitserve.Create(t.Context(), filepath.Join(folder, "shop.git"), gitserve.Commit{Message: "x", Files: map[string]string{"deploy/a.yaml": "{}"}})
	must(t, err)
	server = gitssh.Start(t, folder, accepts...)
	return server, server.URL("shop.git")
}

func Test39_PrivateRepositoriesByPasswordTokenAndKey(t *testing.T) {
	git := githttps.Start(t, "password.git", "token.git")
	git.Accept(githttps.Login{User: "me", Password: "correct horse"}, githttps.Login{Password: "token-1234", Token: true})
	key := gitssh.NewKey(t, "ed25519")
	_, overSSH := sshRepository(t, key)
	each(t, func(w *world) {
		ns := w.tenant()
		w.login(ns, "password", "me", "correct horse")
		w.secret(ns, "token", v1alpha1.RepositoryCredentialSecretType, map[string][]byte{"password": []byte("token-1234")})
		w.key(ns, "key", key)
		for name, repository := range map[string]string{"password": git.URL("password.git"), "token": git.URL("token.git"), "key": overSSH} {
			c := w.credential(ns, name, repository, name)
			w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)
			want := map[string]map[string]string{
				"password": {"username": "me", "password": "correct horse"}, "token": {"password": "token-1234"}, "key": {"sshPrivateKey": key.Private},
			}[name]
			if err := w.opens(w.awaitRepositorySecret(c, want), git); err != nil {
				t.Errorf("%s: the engine cannot read the repository: %v", name, err)
			}
			d := w.deployed(ns, name, testkit.WithRepo(repository))
			app := w.application(d)
			if app.Spec.Source.RepoURL != repository || !slices.Contains(w.project(ns).Spec.SourceRepos, repository) {
				t.Errorf("%s: %+v", name, app.Spec)
			}
		}
		w.awaitQuiet()
	}, service.WithGitAuthorities(git.Authorities))
}

func Test40_ConditionsFollowTheSecretEachTime(t *testing.T) {
	git := githttps.Start(t, "shop.git", "other.git")
	git.Accept(githttps.Login{User: "me", Password: "good"})
	each(t, func(w *world) {
		ns := w.tenant()
		c := w.credential(ns, "shop", git.URL("shop.git"), "login")
		want := map[string]string{"username": "me", "password": "good"}
		w.awaitChecked(c, v1alpha1.ReasonSecretNotFound, "spec.secret", "login", "create it")
		w.secret(ns, "login", "Opaque", map[string][]byte{"password": []byte("good")})
		w.awaitChecked(c, v1alpha1.ReasonSecretInvalidType, v1alpha1.RepositoryCredentialSecretType)
		w.removeSecret(ns, "login")
		w.secret(ns, "login", v1alpha1.RepositoryCredentialSecretType, map[string][]byte{"user": []byte("me")})
		w.awaitChecked(c, v1alpha1.ReasonInvalidCredentials, "password", "sshPrivateKey")
		w.login(ns, "login", "me", "bad")
		w.awaitChecked(c, v1alpha1.ReasonInvalidCredentials, git.URL("shop.git"))
		if w.repositorySecret(c) != nil {
			t.Error("the engine has a credential that never was good")
		}

		w.login(ns, "login", "me", "good")
		w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)
		w.awaitRepositorySecret(c, want)

		w.login(ns, "login", "me", "bad")
		w.awaitChecked(c, v1alpha1.ReasonInvalidCredentials)
		w.awaitRepositorySecret(c, want)
		w.login(ns, "login", "me", "good")
		w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)
		// Away and back as it was: the row has not changed, the condition has.
		w.removeSecret(ns, "login")
		w.awaitChecked(c, v1alpha1.ReasonSecretNotFound)
		w.login(ns, "login", "me", "good")
		w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)

		for repository, reason := range map[string]v1alpha1.ConditionReason{
			git.URL("missing.git"): v1alpha1.ReasonInvalidRepositoryURL,
			git.URL("other.git"):   v1alpha1.ReasonRepositoryCredentialUpToDate,
		} {
			w.must(w.api.Patch(w.ctx, c, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"repository":%q}}`, repository))))
			w.awaitChecked(c, reason)
		}
		w.must(w.api.Delete(w.ctx, c))
		testkit.Eventually(w.T, "the engine's Secret goes", func() string {
			if w.repositorySecret(c) != nil {
				return "it is there"
			}
			return zero(w.count("SELECT count(*) FROM repository_credentials") + w.count("SELECT count(*) FROM api_cr_to_database_mapping"))
		})
		w.awaitQuiet()
	}, service.WithGitAuthorities(git.Authorities))
}

func Test41_RotatedPasswordsAndLongKeysReachTheEngine(t *testing.T) {
	git := githttps.Start(t, "shop.git")
	git.Accept(githttps.Login{User: "me", Password: "old"}, githttps.Login{User: "me", Password: "new"})
	first, long := gitssh.NewKey(t, "ed25519"), gitssh.NewKey(t, "rsa4096")
	_, overSSH := sshRepository(t, first, long)
	each(t, func(w *world) {
		ns := w.tenant()
		w.login(ns, "login", "me", "old")
		c := w.credential(ns, "shop", git.URL("shop.git"), "login")
		w.awaitRepositorySecret(c, map[string]string{"username": "me", "password": "old"})
		w.login(ns, "login", "me", "new")
		w.awaitRepositorySecret(c, map[string]string{"username": "me", "password": "new"})
		w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)

		w.key(ns, "key", first)
		k := w.credential(ns, "key", overSSH, "key")
		w.awaitRepositorySecret(k, map[string]string{"sshPrivateKey": first.Private})
		w.key(ns, "key", long)
		if err := w.opens(w.awaitRepositorySecret(k, map[string]string{"sshPrivateKey": long.Private}), git); err != nil {
			t.Errorf("the engine cannot use the key: %v", err)
		}
		w.awaitQuiet()
	}, service.WithGitAuthorities(git.Authorities))
}

func Test42_TwoTenantsOfOneRepositoryUseTheirOwnCredentials(t *testing.T) {
	git := githttps.Start(t, "shop.git")
	git.Accept(githttps.Login{User: "a", Password: "of a"}, githttps.Login{User: "b", Password: "of b"})
	repository := git.URL("shop.git")
	each(t, func(w *world) {
		a, b := w.tenant(), w.tenant()
		w.login(a, "login", "a", "of a")
		w.login(b, "login", "b", "of b")
		ofA, ofB := w.credential(a, "shop", repository, "login"), w.credential(b, "shop", repository, "login")
		// Each Secret is for its tenant's project, and engines use it for no other.
		secretOfA := w.awaitRepositorySecret(ofA, map[string]string{"username": "a", "password": "of a"})
		secretOfB := w.awaitRepositorySecret(ofB, map[string]string{"username": "b", "password": "of b"})
		if string(secretOfA.Data["project"]) == string(secretOfB.Data["project"]) {
			t.Error("both are for one project")
		}
		inA, inB := w.deployed(a, "shop", testkit.WithRepo(repository)), w.deployed(b, "shop", testkit.WithRepo(repository))
		if w.application(inA).Spec.Project != string(secretOfA.Data["project"]) || w.application(inB).Spec.Project != string(secretOfB.Data["project"]) {
			t.Error("the Applications are not in their tenants' projects")
		}
		w.awaitQuiet()

		w.must(w.api.Delete(w.ctx, ofA))
		testkit.Eventually(w.T, "the revoked one goes", func() string {
			if w.repositorySecret(ofA) != nil {
				return "it is there"
			}
			return ""
		})
		w.awaitQuiet()
		if after := w.repositorySecret(ofB); after == nil || after.ResourceVersion != secretOfB.ResourceVersion {
			t.Error("revoking one touched the other")
		}
		w.awaitChecked(ofB, v1alpha1.ReasonRepositoryCredentialUpToDate)
		if n := w.count("SELECT count(*) FROM repository_credentials"); n != 1 {
			t.Errorf("%d rows", n)
		}
	}, service.WithGitAuthorities(git.Authorities))
}

func Test43_OfTwoDeploymentsOfOneRepositoryTheOtherKeepsWorking(t *testing.T) {
	git := githttps.Start(t, "shop.git")
	git.Accept(githttps.Login{User: "me", Password: "good"})
	repository := git.URL("shop.git")
	each(t, func(w *world) {
		ns := w.tenant()
		w.login(ns, "login", "me", "good")
		c := w.credential(ns, "shop", repository, "login")
		secret := w.awaitRepositorySecret(c, map[string]string{"username": "me", "password": "good"})
		one := w.deployed(ns, "one", testkit.WithRepo(repository))
		other := w.deployed(ns, "other", testkit.WithRepo(repository))
		w.awaitQuiet()
		app, project := w.application(other), w.project(ns)

		w.delete(one)
		w.awaitGone(one)
		w.awaitQuiet()
		if after := w.repositorySecret(c); after == nil || after.ResourceVersion != secret.ResourceVersion {
			t.Error("the Secret was touched")
		}
		if after := w.project(ns); after == nil || after.ResourceVersion != project.ResourceVersion {
			t.Error("the project was touched")
		}
		if after := w.application(other); after == nil || after.ResourceVersion != app.ResourceVersion {
			t.Error("the other's Application was touched")
		}
		sync := w.syncRun(ns, "now", "other", "")
		w.requested(other, sync)

		w.delete(other)
		w.awaitGone(other)
		testkit.Eventually(w.T, "the project goes with the last", func() string {
			if w.project(ns) != nil {
				return "it is there"
			}
			return ""
		})
		if w.repositorySecret(c) == nil {
			t.Error("the credential went with the deployments")
		}
		again := w.deployed(ns, "again", testkit.WithRepo(repository))
		if !slices.Contains(w.project(ns).Spec.SourceRepos, w.application(again).Spec.Source.RepoURL) {
			t.Error("the project that came back does not allow the repository")
		}
	}, service.WithGitAuthorities(git.Authorities))
}

func TestDeniedAddressesOfRepositoriesGetNoPacket(t *testing.T) {
	key := gitssh.NewKey(t, "ed25519")
	each(t, func(w *world) {
		ns := w.tenant()
		deaf := newDeafListener(t)
		w.login(ns, "login", "me", "good")
		w.key(ns, "key", key)
		for i, repository := range []string{
			"https://" + deaf.Addr().String() + "/shop.git", "ssh://git@" + deaf.Addr().String() + "/shop.git",
			"https://internal.example.com:" + port(deaf) + "/shop.git", "ssh://git@internal.example.com:" + port(deaf) + "/shop.git",
			"https://169.254.169.254/latest", "git@127.0.0.1:shop.git",
		} {
			secret := map[bool]string{true: "login", false: "key"}[strings.HasPrefix(repository, "https")]
			w.awaitChecked(w.credential(ns, fmt.Sprintf("denied-%d", i), repository, secret), v1alpha1.ReasonInvalidRepositoryURL, "not allowed")
		}
		if n := deaf.connections(); n != 0 {
			t.Errorf("%d connections", n)
		}
		w.ownsNothing(ns)
	}, service.WithNetwork(tenantnet.Policy{ConnectTimeout: 2 * time.Second, Resolver: names{"internal.example.com": {netip.MustParseAddr("127.0.0.1")}}}))
}
