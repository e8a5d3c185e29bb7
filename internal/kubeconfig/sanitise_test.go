// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kubeconfig"
)

const (
	apiURL = "https://api.example.com:6443"
	canary = "canary-8f3a1c"
)

// config writes a kubeconfig with one cluster, user and context; the two extra
// texts are further lines of the cluster and of the user.
func config(cluster, user string) string {
	indent := func(s string) string {
		if s == "" {
			return ""
		}
		return "    " + strings.ReplaceAll(s, "\n", "\n    ") + "\n"
	}
	return "apiVersion: v1\nkind: Config\ncurrent-context: ctx\n" +
		"clusters:\n- name: prod\n  cluster:\n    server: " + apiURL + "\n" + indent(cluster) +
		"users:\n- name: admin\n  user:\n    token: " + canary + "\n" + indent(user) +
		"contexts:\n- name: ctx\n  context: {cluster: prod, user: admin, namespace: ignored}\n"
}

func reasonOf(t *testing.T, err error) v1alpha1.ConditionReason {
	t.Helper()
	var e *kubeconfig.Error
	var refusal *domain.Refusal
	if !errors.As(err, &e) || !errors.As(err, &refusal) {
		t.Fatalf("%v is not an *Error with a refusal", err)
	}
	if refusal.Field == "" || refusal.Problem == "" || refusal.Remedy == "" {
		t.Errorf("%#v leaves something unsaid", refusal)
	}
	return e.Reason
}

func TestRejectedFields(t *testing.T) {
	for _, c := range []struct{ cluster, user, path string }{
		{user: "exec: {command: /bin/" + canary + "}", path: "users[admin].user.exec"},
		{user: "auth-provider: {name: oidc, config: {id-token: " + canary + "}}", path: "users[admin].user.auth-provider"},
		{user: "tokenFile: /" + canary, path: "users[admin].user.tokenFile"},
		{user: "client-certificate: /" + canary, path: "users[admin].user.client-certificate"},
		{user: "client-key: /" + canary, path: "users[admin].user.client-key"},
		{user: "as: " + canary, path: "users[admin].user.as"},
		{user: "as-uid: " + canary, path: "users[admin].user.as-uid"},
		{user: "as-groups: [" + canary + "]", path: "users[admin].user.as-groups"},
		{user: "as-user-extra: {a: [" + canary + "]}", path: "users[admin].user.as-user-extra"},
		{user: "username: " + canary, path: "users[admin].user.username"},
		{user: "password: " + canary, path: "users[admin].user.password"},
		{user: "Exec: {command: " + canary + "}", path: "users[admin].user.Exec"},
		{user: "invented: " + canary, path: "users[admin].user.invented"},
		{cluster: "certificate-authority: /" + canary, path: "clusters[prod].cluster.certificate-authority"},
		{cluster: "proxy-url: http://" + canary, path: "clusters[prod].cluster.proxy-url"},
		{cluster: "insecure-skip-tls-verify: true", path: "clusters[prod].cluster.insecure-skip-tls-verify"},
		{cluster: "invented: " + canary, path: "clusters[prod].cluster.invented"},
	} {
		access, err := kubeconfig.Sanitise([]byte(config(c.cluster, c.user)), apiURL, kubeconfig.Options{})
		if reason := reasonOf(t, err); reason != v1alpha1.ReasonUnableToRetrieveRestConfig {
			t.Errorf("%s: reason %s", c.path, reason)
		}
		if !strings.HasPrefix(err.Error(), "kubeconfig "+c.path+" ") || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v", c.path, err)
		}
		if diff := cmp.Diff(kubeconfig.Access{}, access); diff != "" {
			t.Errorf("%s: something was carried on: %s", c.path, access)
		}
	}
}

func TestFieldsWithoutAValueAreAbsent(t *testing.T) {
	data := config("insecure-skip-tls-verify: false\nproxy-url: ''\nextensions: [{name: a, extension: {exec: b}}]\ndisable-compression: true",
		"exec: null\nas-groups: []\nas-user-extra: {}\nusername: ''\nextensions: [{name: a}]")
	access, err := kubeconfig.Sanitise([]byte(data), apiURL, kubeconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if access.Token != canary || access.Server != apiURL || access.Insecure {
		t.Errorf("got %v", access)
	}
}

func TestOnlyTheEnvironmentSkipsTLS(t *testing.T) {
	ca := "certificate-authority-data: " + base64.StdEncoding.EncodeToString(certificate(t).cert)
	access, err := kubeconfig.Sanitise([]byte(config("insecure-skip-tls-verify: true\n"+ca, "")), apiURL, kubeconfig.Options{Insecure: true})
	if err != nil || !access.Insecure || access.CAData != nil {
		t.Errorf("got %v, %v", access, err)
	}
	access, err = kubeconfig.Sanitise([]byte(config(ca, "")), apiURL, kubeconfig.Options{})
	if err != nil || access.Insecure || access.CAData == nil {
		t.Errorf("got %v, %v", access, err)
	}
}

func TestReasons(t *testing.T) {
	pair := certificate(t)
	b64 := base64.StdEncoding.EncodeToString
	noToken := strings.Replace(config("", ""), "    token: "+canary+"\n", "", 1)
	withUser := func(lines string) string {
		return strings.Replace(config("", ""), "    token: "+canary+"\n", "    "+lines+"\n", 1)
	}
	for name, c := range map[string]struct {
		data string
		want v1alpha1.ConditionReason
	}{
		"empty":               {"", v1alpha1.ReasonUnableToParseKubeconfigData},
		"a text":              {canary, v1alpha1.ReasonUnableToParseKubeconfigData},
		"a list":              {"- " + canary, v1alpha1.ReasonUnableToParseKubeconfigData},
		"broken YAML":         {"a: [" + canary, v1alpha1.ReasonUnableToParseKubeconfigData},
		"binary":              {"\x00\xff" + canary, v1alpha1.ReasonUnableToParseKubeconfigData},
		"too large":           {config("", "") + strings.Repeat("#", 1<<20), v1alpha1.ReasonUnableToParseKubeconfigData},
		"key twice":           {config("", "token: "+canary), v1alpha1.ReasonUnableToParseKubeconfigData},
		"clusters no list":    {"clusters: " + canary, v1alpha1.ReasonUnableToParseKubeconfigData},
		"entry without name":  {"users: [{user: {token: " + canary + "}}]", v1alpha1.ReasonUnableToParseKubeconfigData},
		"user no mapping":     {"users: [{name: a, user: " + canary + "}]", v1alpha1.ReasonUnableToParseKubeconfigData},
		"name twice":          {"users: [{name: a}, {name: a}]", v1alpha1.ReasonUnableToParseKubeconfigData},
		"current no text":     {"current-context: [" + canary + "]", v1alpha1.ReasonUnableToParseKubeconfigData},
		"token no text":       {withUser("token: [" + canary + "]"), v1alpha1.ReasonUnableToParseKubeconfigData},
		"token a number":      {withUser("token: 12345"), v1alpha1.ReasonUnableToParseKubeconfigData},
		"certificate no text": {withUser("client-certificate-data: " + canary + "!"), v1alpha1.ReasonUnableToParseKubeconfigData},
		"no cluster":          {"users: []\nkind: Config", v1alpha1.ReasonUnableToLocateContext},
		"another server":      {strings.Replace(config("", ""), ":6443", ":6444", 1), v1alpha1.ReasonUnableToLocateContext},
		"http server":         {strings.Replace(config("", ""), "https:", "http:", 1), v1alpha1.ReasonUnableToLocateContext},
		"no context":          {strings.Replace(config("", ""), "{cluster: prod,", "{cluster: other,", 1), v1alpha1.ReasonUnableToLocateContext},
		"no such user":        {strings.Replace(config("", ""), "user: admin", "user: other", 1), v1alpha1.ReasonUnableToLocateContext},
		"no credentials":      {noToken, v1alpha1.ReasonUnableToRetrieveRestConfig},
		"empty token":         {withUser("token: ''"), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"blank token":         {withUser("token: '  '"), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"token of two lines":  {withUser(`token: "` + canary + `\nX-Injected: 1"`), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"certificate alone":   {withUser("client-certificate-data: " + b64(pair.cert)), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"key alone":           {withUser("client-key-data: " + b64(pair.key)), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"another's key":       {withUser("client-certificate-data: " + b64(pair.cert) + "\n    client-key-data: " + b64(certificate(t).key)), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"no PEM":              {withUser("client-certificate-data: " + b64([]byte(canary)) + "\n    client-key-data: " + b64([]byte(canary))), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"CA no PEM":           {config("certificate-authority-data: "+b64([]byte(canary)), ""), v1alpha1.ReasonUnableToRetrieveRestConfig},
		"TLS name no name":    {config("tls-server-name: '"+canary+" x'", ""), v1alpha1.ReasonUnableToRetrieveRestConfig},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := kubeconfig.Sanitise([]byte(c.data), apiURL, kubeconfig.Options{})
			if got := reasonOf(t, err); got != c.want {
				t.Errorf("reason %s, want %s (%v)", got, c.want, err)
			}
			if text := fmt.Sprintf("%v %+v %s", err, err, errors.Unwrap(err)); strings.Contains(text, canary) || strings.Contains(text, b64([]byte(canary))) {
				t.Errorf("the text holds the secret: %s", text)
			}
		})
	}
}

func TestAPIURL(t *testing.T) {
	for _, refused := range []string{
		"", "api.example.com", "http://api.example.com", "ftp://api.example.com", "https://", "https://user:" + canary + "@api.example.com", "https://api.example.com?a=b", "https://api.example.com#a",
		"https://api.example.com:0", "https://api.example.com:65536", "https://api.example.com/a/../b", "https://api.example.com//a", "https://api example.com", "https://127.1", "https://0x7f000001",
		"https:api.example.com", "https://-a.example.com", "https://[fe80::1%25eth0", "https://" + strings.Repeat("a", 3000), "https://api.example.com/\x00",
	} {
		_, err := kubeconfig.Sanitise([]byte(config("", "")), refused, kubeconfig.Options{})
		if got := reasonOf(t, err); got != v1alpha1.ReasonUnsupportedAPIURL || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %s, %v", refused, got, err)
		}
	}
	for _, c := range []struct{ api, server, want string }{
		{"https://api.example.com", "https://api.example.com:443/", "https://api.example.com"},
		{"https://API.Example.com:443", "https://api.example.com", "https://api.example.com"},
		{"https://api.example.com/k8s/clusters/c-1/", "https://api.example.com:443/k8s/clusters/c-1", "https://api.example.com/k8s/clusters/c-1"},
		{"https://[2001:DB8:0::1]:443", "https://[2001:db8::1]", "https://[2001:db8::1]"},
		{"HTTPS://10.0.0.1:06443", "https://10.0.0.1:6443", "https://10.0.0.1:6443"},
	} {
		data := strings.Replace(config("", ""), apiURL, c.server, 1)
		access, err := kubeconfig.Sanitise([]byte(data), c.api, kubeconfig.Options{})
		if err != nil || access.Server != c.want {
			t.Errorf("%+v: %q, %v", c, access.Server, err)
		}
	}
	data := strings.Replace(config("", ""), apiURL, "https://api.example.com/a", 1)
	if _, err := kubeconfig.Sanitise([]byte(data), "https://api.example.com/A", kubeconfig.Options{}); err == nil {
		t.Error("paths are compared without case")
	}
}

// The everyday kubeconfig: several clusters, users with exec that are not meant.
func TestChoice(t *testing.T) {
	everyday := func(current string) string {
		return "current-context: " + current + `
clusters:
- {name: cloud, cluster: {server: "https://cloud.example.com", certificate-authority: /home/me/ca.crt, proxy-url: "http://proxy"}}
- {name: one, cluster: {server: "https://api.example.com:6443/"}}
- {name: two, cluster: {server: "https://API.example.com:6443"}}
users:
- {name: cloud, user: {exec: {command: aws}}}
- {name: b, user: {token: token-b}}
- {name: c, user: {token: token-c}}
- {name: z, user: {token: token-z}}
contexts:
- {name: z, context: {cluster: one, user: z}}
- {name: c, context: {cluster: two, user: c}}
- {name: b, context: {cluster: one, user: b}}
- {name: a, context: {cluster: cloud, user: cloud}}
`
	}
	for current, want := range map[string]string{"z": "token-z", "c": "token-c", "a": "token-b", "missing": "token-b", "''": "token-b"} {
		access, err := kubeconfig.Sanitise([]byte(everyday(current)), apiURL, kubeconfig.Options{})
		if err != nil || access.Token != want {
			t.Errorf("current-context %s: took %q, want %q (%v)", current, access.Token, want, err)
		}
	}
	// Not passed over for the next: that may be somebody else.
	data := strings.Replace(everyday("c"), "token: token-c", "exec: {command: aws}", 1)
	if _, err := kubeconfig.Sanitise([]byte(data), apiURL, kubeconfig.Options{}); err == nil || !strings.Contains(err.Error(), "users[c].user.exec") {
		t.Errorf("got %v", err)
	}
}

func FuzzSanitise(f *testing.F) {
	f.Add([]byte(config("", "")))
	f.Add([]byte(config("tls-server-name: a", "exec: {}")))
	f.Add([]byte("a: &a [*a]"))
	f.Add([]byte("clusters: [{name: a, cluster: {server: 'https://api.example.com:6443'}}]\ncontexts: [{name: a, context: {cluster: a}}]\nusers: [{name: ''}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		access, err := kubeconfig.Sanitise(data, apiURL, kubeconfig.Options{})
		if err != nil {
			reasonOf(t, err)
			return
		}
		if access.Server != apiURL || access.Insecure || access.Token == "" && access.ClientCert == nil {
			t.Errorf("took %v", access)
		}
		encoded, err := access.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := kubeconfig.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := again.Encode(); err != nil || string(twice) != string(encoded) {
			t.Errorf("not canonical (%v)", err)
		}
	})
}
