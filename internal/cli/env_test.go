// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

// canary is a credential that must be in no output.
const canary = "canary-7f3a91c2-never-print"

// targetKubeconfig writes a kubeconfig with one context, prod.
func targetKubeconfig(t testing.TB, user *clientcmdapi.AuthInfo, change ...func(*clientcmdapi.Cluster)) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["far"] = &clientcmdapi.Cluster{Server: "https://api.prod.example.com:6443", CertificateAuthorityData: []byte("the CA")}
	for _, c := range change {
		c(config.Clusters["far"])
	}
	config.AuthInfos["deployer"] = user
	config.AuthInfos["other"] = &clientcmdapi.AuthInfo{Token: "of somebody else"}
	config.Contexts["prod"] = &clientcmdapi.Context{Cluster: "far", AuthInfo: "deployer", Namespace: "shop"}
	file := filepath.Join(t.TempDir(), "target")
	must(t, clientcmd.WriteToFile(*config, file))
	return file
}

func withToken() *clientcmdapi.AuthInfo { return &clientcmdapi.AuthInfo{Token: canary} }

// environment waits for the resource that a command writes.
func (w *tenant) environment(name string) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	w.Helper()
	e := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
	w.await(e, name)
	return e
}

func (w *tenant) await(o client.Object, name string) {
	w.Helper()
	testkit.Eventually(w, name, func() string {
		if err := w.api.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o); err != nil {
			return err.Error()
		}
		return ""
	})
}

func connected(e *v1alpha1.GitOpsDeploymentManagedEnvironment, s metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	e.Status.ObservedGeneration = e.Generation
	e.Status.Conditions = []metav1.Condition{{
		Type: string(v1alpha1.ConditionConnectionInitializationSucceeded), Status: s, Reason: string(reason), Message: message, LastTransitionTime: metav1.Now(),
	}}
}

func TestEnvAdd(t *testing.T) {
	w := newTenant(t)
	file := targetKubeconfig(t, withToken())
	r := w.start("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--namespaces", "shop,jobs", "--cluster-resources", "--no-automated", "--create-service-account")
	e := w.environment("prod")
	r.says("Waiting for the service")
	connected(e, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "the cluster answered")
	w.setStatus(e)
	res := r.wait()
	res.want(t, 0, "Created Secret prod-access.", "Created environment prod.", "The environment works: the cluster answered.")
	if strings.Contains(res.out+res.err, canary) {
		t.Error("the token is in the output")
	}
	no := false
	if diff := cmp.Diff(v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{
		APIURL: "https://api.prod.example.com:6443", CredentialsSecret: "prod-access", CreateNewServiceAccount: true,
		AllowAutomatedDeployments: &no, Namespaces: []string{"shop", "jobs"}, ClusterResources: true,
	}, e.Spec); diff != "" {
		t.Error(diff)
	}
	w.checkKubeconfig("prod-access")

	// Again, with other flags and no token of old: the spec is what the flags say.
	r = w.start("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--api-url", "https://10.0.0.1:6443")
	testkit.Eventually(t, "update", func() string {
		if e = w.environment("prod"); e.Spec.APIURL != "https://10.0.0.1:6443" || len(e.Spec.Namespaces) > 0 || e.Spec.CreateNewServiceAccount {
			return e.Spec.APIURL
		}
		return ""
	})
	connected(e, metav1.ConditionFalse, v1alpha1.ReasonUnableToCreateClient, "no route to host: check apiURL")
	w.setStatus(e)
	r.wait().want(t, 1, "Updated Secret prod-access.", "Updated environment prod.", "cannot be used: UnableToCreateClient: no route to host: check apiURL")

	// Only the Secret changes: the old failure is not taken for the answer.
	r = w.start("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--api-url", "https://10.0.0.1:6443")
	r.says("Kept environment prod.")
	r.says("Waiting for the service")
	e = w.environment("prod")
	connected(e, metav1.ConditionTrue, v1alpha1.ReasonSucceeded, "")
	w.setStatus(e)
	r.wait().want(t, 0, "The environment works.")
}

// checkKubeconfig looks at what the service gets.
func (w *tenant) checkKubeconfig(secret string) {
	w.Helper()
	s := &corev1.Secret{}
	must(w, w.api.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: secret}, s))
	if s.Type != v1alpha1.ManagedEnvironmentSecretType || len(s.Data) != 1 {
		w.Errorf("type %s with keys %v", s.Type, slices.Collect(maps.Keys(s.Data)))
	}
	config, err := clientcmd.Load(s.Data["kubeconfig"])
	must(w, err)
	rest, err := clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
	must(w, err)
	if rest.Host != "https://api.prod.example.com:6443" || rest.BearerToken != canary || string(rest.CAData) != "the CA" || len(config.AuthInfos) != 1 || len(config.Clusters) != 1 {
		w.Errorf("kubeconfig with %d users and %d clusters for %s", len(config.AuthInfos), len(config.Clusters), rest.Host)
	}
}

func TestEnvAddWritesNothing(t *testing.T) {
	w := newTenant(t)
	file := targetKubeconfig(t, withToken())
	res := w.run("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--dry-run")
	res.want(t, 0, "kubeconfig: '[redacted]'", "credentialsSecret: prod-access", "type: managed-gitops.redhat.com/managed-environment")
	if strings.Contains(res.out+res.err, canary) {
		t.Error("the token is in the output")
	}
	w.run("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--api-url", "https://user@host").want(t, 1, "without")
	// What the API server refuses, it refuses before the Secret is written.
	w.run("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--namespaces", "Not_A_Name").want(t, 1, "refused: spec.namespaces")
	w.run("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--cluster-resources").want(t, 2, "--namespaces")
	secrets := &corev1.SecretList{}
	must(t, w.api.List(t.Context(), secrets, client.InNamespace(w.namespace)))
	if len(secrets.Items) != 0 {
		t.Errorf("%d Secrets were written", len(secrets.Items))
	}
}

func TestEnvAddTimesOutAndLeavesAForeignSecretAlone(t *testing.T) {
	w := newTenant(t)
	file := targetKubeconfig(t, withToken())
	add := []string{"env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--timeout", "300ms"}
	w.run(add...).want(t, 3, "has not said within 300ms", "see: weir describe environment prod")
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, StringData: map[string]string{"a": "b"}})
	w.run(append(add, "--secret", "mine")...).want(t, 1, `Secret "mine" of another type already`)
	mine := &corev1.Secret{}
	must(t, w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "mine"}, mine))
	if string(mine.Data["a"]) != "b" {
		t.Error("a foreign Secret was changed")
	}
}

func TestEnvListAndRemove(t *testing.T) {
	w := newTenant(t)
	file := targetKubeconfig(t, withToken())
	w.run("env", "add", "prod", "--context", "prod", "--from-kubeconfig", file, "--wait=false").want(t, 0, "See how it goes with: weir describe environment prod")
	w.create(testkit.Deployment("", "shop", testkit.WithDestination("prod", "shop")))
	w.run("env", "list").want(t, 0, "CONNECTED", "prod   -           https://api.prod.example.com:6443")
	w.run("env", "remove", "prod").want(t, 2, "still used by 1 deployment: shop.", "confirm with --yes")
	w.terminal, w.stdin = fakeTerminal{present: true}, strings.NewReader("n\n")
	w.run("env", "remove", "prod").want(t, 1, "Remove environment prod", "nothing was removed")
	w.stdin = strings.NewReader("yes\n")
	w.run("env", "remove", "prod").want(t, 0, "Removed environment prod.", "Removed Secret prod-access.")
	err := w.api.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "prod-access"}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is still there: %v", err)
	}
	w.run("env", "remove", "prod", "--yes").want(t, 1, "not found")
}

func TestEnvWithoutACommandShowsHelp(t *testing.T) {
	for args, code := range map[string]int{"env": 0, "env what": 2, "repo": 0, "repo add": 2, "env add prod": 2} {
		var out buffer
		root := newTestRoot("weir", fakeTerminal{}, time.Now)
		root.SetArgs(strings.Fields(args))
		root.SetOut(&out)
		if got := ExitCode(root.ExecuteContext(t.Context())); got != code {
			t.Errorf("%s: exit code %d, want %d", args, got, code)
		}
	}
}

func TestReadTarget(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	tokenFile, keyFile, certFile, caFile := write("token", canary+"\n"), write("key", canary), write("cert", "the certificate"), write("ca", "another CA")
	cluster := func(change func(*clientcmdapi.Cluster)) []func(*clientcmdapi.Cluster) {
		return []func(*clientcmdapi.Cluster){change}
	}
	for _, test := range []struct {
		name    string
		user    *clientcmdapi.AuthInfo
		cluster []func(*clientcmdapi.Cluster)
		context string
		refused string
		check   func(*target) bool
	}{
		{name: "token", user: withToken(), check: func(g *target) bool { return string(g.token) == canary && string(g.ca) == "the CA" }},
		{name: "token file", user: &clientcmdapi.AuthInfo{TokenFile: tokenFile, Token: "old"}, check: func(g *target) bool { return string(g.token) == canary }},
		{name: "certificate files", user: &clientcmdapi.AuthInfo{ClientCertificate: certFile, ClientKey: keyFile}, check: func(g *target) bool {
			return string(g.key) == canary && string(g.certificate) == "the certificate"
		}},
		{name: "CA file", user: withToken(), cluster: cluster(func(c *clientcmdapi.Cluster) { c.CertificateAuthorityData, c.CertificateAuthority = nil, caFile }), check: func(g *target) bool { return string(g.ca) == "another CA" }},
		{name: "exec", user: &clientcmdapi.AuthInfo{Exec: &clientcmdapi.ExecConfig{Command: "cloud-login", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: clientcmdapi.NeverExecInteractiveMode}}, refused: "--create-service-account"},
		{name: "auth provider", user: &clientcmdapi.AuthInfo{AuthProvider: &clientcmdapi.AuthProviderConfig{Name: "oidc"}}, refused: "auth-provider (oidc)"},
		{name: "password", user: &clientcmdapi.AuthInfo{Username: "u", Password: canary}, refused: "password"},
		{name: "impersonation", user: &clientcmdapi.AuthInfo{Token: canary, Impersonate: "root"}, refused: "impersonation"},
		{name: "nothing", user: &clientcmdapi.AuthInfo{}, refused: "neither a token nor a client certificate"},
		{name: "missing file", user: &clientcmdapi.AuthInfo{TokenFile: filepath.Join(folder, "none")}, refused: "tokenFile cannot be read"},
		{name: "proxy", user: withToken(), cluster: cluster(func(c *clientcmdapi.Cluster) { c.ProxyURL = "http://proxy:1" }), refused: "proxy-url"},
		{name: "server name", user: withToken(), cluster: cluster(func(c *clientcmdapi.Cluster) { c.TLSServerName = "x" }), refused: "tls-server-name"},
		{name: "unchecked certificate", user: withToken(), cluster: cluster(func(c *clientcmdapi.Cluster) { c.InsecureSkipTLSVerify, c.CertificateAuthorityData = true, nil }), refused: "--skip-tls-verify"},
		{name: "http", user: withToken(), cluster: cluster(func(c *clientcmdapi.Cluster) { c.Server = "http://api" }), refused: "https"},
		{name: "other context", user: withToken(), context: "stage", refused: `no context "stage": it has prod`},
	} {
		t.Run(test.name, func(t *testing.T) {
			config, err := clientcmd.LoadFromFile(targetKubeconfig(t, test.user, test.cluster...))
			must(t, err)
			got, err := readTarget(config, firstText(test.context, "prod"), "", false)
			switch {
			case test.refused == "" && (err != nil || !test.check(got)):
				t.Errorf("got error %v, or not what was wanted", err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("error %v, want it to say %q", err, test.refused)
			case err != nil && strings.Contains(err.Error(), canary):
				t.Error("the error shows the credential")
			}
		})
	}
}
