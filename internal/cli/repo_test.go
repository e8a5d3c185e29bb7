// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
)

const repository = "https://git.example.com/team/shop.git"

func validated(c *v1alpha1.GitOpsDeploymentRepositoryCredential, s metav1.ConditionStatus, reason v1alpha1.ConditionReason, message string) {
	c.Status.ObservedGeneration = c.Generation
	c.Status.Conditions = []metav1.Condition{{
		Type: string(v1alpha1.ConditionValidRepositoryCredential), Status: s, Reason: string(reason), Message: message, LastTransitionTime: metav1.Now(),
	}}
}

func (w *tenant) secretData(name string) map[string]string {
	w.Helper()
	s := &corev1.Secret{}
	must(w, w.api.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, s))
	if s.Type != v1alpha1.RepositoryCredentialSecretType {
		w.Errorf("the Secret's type is %s", s.Type)
	}
	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}
	return data
}

func TestRepoAdd(t *testing.T) {
	w := newTenant(t)
	w.stdin = strings.NewReader(canary + "\n")
	r := w.start("repo", "add", repository, "--token-stdin")
	c := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
	w.await(c, "shop")
	validated(c, metav1.ConditionTrue, v1alpha1.ReasonRepositoryCredentialUpToDate, "")
	w.setStatus(c)
	res := r.wait()
	res.want(t, 0, "Created Secret shop-git.", "Created credential shop.", "The credential works.")
	if strings.Contains(res.out+res.err, canary) {
		t.Error("the token is in the output")
	}
	if diff := cmp.Diff(map[string]string{"username": "git", "password": canary}, w.secretData("shop-git")); diff != "" {
		t.Error(diff)
	}

	w.terminal, w.stdin = fakeTerminal{present: true, password: canary + "2"}, strings.NewReader("")
	r = w.start("repo", "add", repository, "--username", "weir", "--wait=false")
	res = r.wait()
	res.want(t, 0, "Updated Secret shop-git.", "Kept credential shop.")
	if strings.Contains(res.out+res.err, canary) {
		t.Error("the password is in the output")
	}
	if diff := cmp.Diff(map[string]string{"username": "weir", "password": canary + "2"}, w.secretData("shop-git")); diff != "" {
		t.Error(diff)
	}
	w.terminal = fakeTerminal{}
	w.stdin = strings.NewReader("x")
	w.run("repo", "add", "https://git.example.com/other/shop", "--token-stdin").want(t, 1, `a credential "shop" already`, "--name")
}

func TestRepoAddWithAKeyReplacesThePassword(t *testing.T) {
	w := newTenant(t)
	w.stdin = strings.NewReader("a password")
	w.run("repo", "add", repository, "--username", "weir", "--password-stdin", "--wait=false").want(t, 0, "Created credential shop.")
	key := newKey(t)
	w.create(testkit.Deployment("", "site", testkit.WithRepo("ssh://git@git.example.com/team/site")))
	w.run("repo", "add", "ssh://git@git.example.com/team/site.git", "--ssh-key", key, "--secret", "shop-git", "--wait=false").want(t, 0, "Updated Secret shop-git.", "Created credential site.")
	text, err := os.ReadFile(key)
	must(t, err)
	if diff := cmp.Diff(map[string]string{"sshPrivateKey": string(text)}, w.secretData("shop-git")); diff != "" {
		t.Error(diff)
	}
	w.run("repo", "list", "-o", "wide").want(t, 0, "REPOSITORY", "shop-git")
	w.run("describe", "cred", "site").want(t, 0, "Used by", "deployment site")
	w.run("repo", "remove", "site", "--yes").want(t, 0, "still used by 1 deployment: site", "Removed credential site.", "Secret shop-git is left: credential shop uses it.")
	w.run("repo", "remove", "shop", "--yes").want(t, 0, "Removed credential shop.", "Removed Secret shop-git.")
}

func newKey(t *testing.T) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	file := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600))
	return file
}

func TestRepoAddRefuses(t *testing.T) {
	w := newTenant(t)
	for _, test := range []struct {
		args  []string
		stdin string
		code  int
		says  string
	}{
		{args: []string{"https://weir:" + canary + "@git.example.com/shop"}, code: 2, says: "contains credentials"},
		{args: []string{"ssh://git:" + canary + "@git.example.com/shop"}, code: 2, says: "contains credentials"},
		{args: []string{"http://git.example.com/shop"}, code: 2, says: "use https://"},
		{args: []string{"file:///etc/shop"}, code: 2, says: "not supported"},
		{args: []string{"shop"}, code: 2, says: "git@HOST:PATH"},
		{args: []string{repository}, code: 2, says: "--password-stdin or --token-stdin"},
		{args: []string{repository, "--password-stdin"}, stdin: canary, code: 2, says: "needs --username"},
		{args: []string{repository, "--token-stdin"}, code: 1, says: "empty"},
		{args: []string{repository, "--token-stdin"}, stdin: canary + "\n" + canary, code: 1, says: "more than one line"},
		{args: []string{repository, "--token-stdin", "--password-stdin"}, code: 2, says: "none of the others can be"},
		{args: []string{repository, "--ssh-key", "x"}, code: 2, says: "for ssh://"},
		{args: []string{"git@git.example.com:shop"}, code: 2, says: "--ssh-key"},
		{args: []string{"git@git.example.com:shop", "--ssh-key", "none"}, code: 1, says: "no such file"},
		{args: []string{"https://git.example.com/shop?" + "x=1", "--token-stdin"}, stdin: canary, code: 1, says: "must not contain '?'"},
	} {
		w.stdin = strings.NewReader(test.stdin)
		res := w.run(append([]string{"repo", "add"}, test.args...)...)
		res.want(t, test.code, test.says)
		if strings.Contains(res.out+res.err, canary) {
			t.Errorf("%v: the output shows the credential", test.says)
		}
	}
	w.stdin = strings.NewReader(canary)
	res := w.run("repo", "add", repository, "--token-stdin", "--dry-run")
	res.want(t, 0, "password: '[redacted]'", "repository: "+repository)
	if strings.Contains(res.out+res.err, canary) {
		t.Error("--dry-run shows the credential")
	}
}

func TestCheckKey(t *testing.T) {
	openssh := func(cipher string) []byte {
		body := append([]byte("openssh-key-v1\x00\x00\x00\x00"), byte(len(cipher)))
		return pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: append(body, cipher...)})
	}
	for name, test := range map[string]struct {
		text []byte
		want error
	}{
		"openssh":                {openssh("none"), nil},
		"openssh with a phrase":  {openssh("aes256-ctr"), errPassphrase},
		"openssh cut short":      {pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte("openssh-key-v1\x00\xff\xff\xff\xff")}), errPassphrase},
		"pkcs8 with a phrase":    {pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY"}), errPassphrase},
		"old RSA with a phrase":  {pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Headers: map[string]string{"Proc-Type": "4,ENCRYPTED"}}), errPassphrase},
		"old RSA":                {pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY"}), nil},
		"public":                 {[]byte("ssh-ed25519 AAAA me@here"), errNoPrivateKey},
		"nothing":                {nil, errNoPrivateKey},
		"more than a key can be": {make([]byte, maxCredential+1), errNoPrivateKey},
	} {
		if err := checkKey(test.text); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
}

func TestNamesOfRepositories(t *testing.T) {
	for url, want := range map[string]string{
		"https://git.example.com/team/shop.git":        "shop",
		"git@git.example.com:team/My_Shop.git":         "my-shop",
		"ssh://git@git.example.com:22/team/shop/":      "shop",
		"https://git.example.com/" + "---":             "",
		"https://git.example.com/" + long("a", 100):    long("a", 50),
		"https://git.example.com/team/shop.git.backup": "shop-git-backup",
	} {
		if got := nameOf(url); got != want {
			t.Errorf("%s gives %q, want %q", url, got, want)
		}
	}
}

func long(s string, n int) string { return strings.Repeat(s, n) }

func TestHiddenIsHidden(t *testing.T) {
	h := hidden(canary)
	asJSON, err := json.Marshal(map[string]any{"a": h, "b": struct{ H hidden }{h}})
	must(t, err)
	printed := fmt.Sprintf("%v %+v %#v %s %q %x %d %v %v", h, h, h, h, h, h, h, struct{ H hidden }{h}, []hidden{h}) + string(asJSON) + h.String() + h.GoString() + h.LogValue().String()
	if strings.Contains(printed, canary) || strings.Contains(printed, fmt.Sprintf("%x", canary)) || strings.Contains(printed, "99 97 110") {
		t.Errorf("shows it: %s", printed)
	}
}
