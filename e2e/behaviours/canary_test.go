// SPDX-License-Identifier: Apache-2.0

package behaviours

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	operationv1alpha1 "github.com/weir-gitops/weir/api/operation/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/githttps"
	"github.com/weir-gitops/weir/internal/testkit/gitssh"
	"github.com/weir-gitops/weir/internal/testkit/service"
)

// aviary keeps the canaries: secrets that are planted, and must come up nowhere.
type aviary map[string]string

// plant makes a canary.
func (a aviary) plant(what string) string {
	a[what] = "canary-" + rand.Text()
	return a[what]
}

// found lists the canaries in a text, as they are and in the encodings in which
// secrets travel.
func (a aviary) found(text []byte) []string {
	var all []string
	for what, secret := range a {
		for _, form := range forms(secret) {
			if bytes.Contains(text, form) {
				all = append(all, what)
				break
			}
		}
	}
	slices.Sort(all)
	return all
}

func forms(secret string) [][]byte {
	quoted, _ := json.Marshal(secret)
	all := [][]byte{[]byte(secret), quoted[1 : len(quoted)-1], []byte(hex.EncodeToString([]byte(secret)))}
	// In base64 it depends on what stands before; what cannot differ is the middle.
	for shift := range 3 {
		coded := base64.RawStdEncoding.EncodeToString(append(make([]byte, shift), secret...))
		all = append(all, []byte(coded[4:len(coded)-4]))
	}
	return all
}

// log is a place for all that is logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes a line.
func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) all() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.text.Bytes())
}

// gossip is a server that tells everybody what it was told: in its headers, in
// its errors, as Git host and as Kubernetes API server.
func gossip(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		heard := user + " " + password + " " + r.Header.Get("Authorization")
		w.Header().Set("WWW-Authenticate", `Basic realm="`+heard+`"`)
		w.Header().Set("Content-Type", "application/json")
		code := http.StatusForbidden
		if strings.Contains(r.URL.Path, "info/refs") {
			code = http.StatusUnauthorized
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Reason: metav1.StatusReasonForbidden,
			Message: heard, Code: int32(code),
		})
	}))
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// plantEnvironments plants canaries in kubeconfigs, good and bad ones, and waits
// until each has been tried.
func (w *world) plantEnvironments(a aviary, ns, gossiping string) {
	w.Helper()
	good := w.account(ns, "me", "cluster-admin")
	a["token of a good kubeconfig"] = good
	w.environmentSecret(ns, "good", kubeconfigWith(w.T, good))
	e := w.environment(ns, "good", "good")
	w.awaitConnection(e, v1alpha1.ReasonSucceeded)
	own := w.environment(ns, "own-account", "good", func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) { s.CreateNewServiceAccount = true })
	w.awaitConnection(own, v1alpha1.ReasonSucceeded)
	a["token of the account that was made"] = w.awaitAccess(own).Token
	w.deployed(ns, "remote", to(e, "apps"))

	for name, change := range map[string]func(*clientcmdapi.Config){
		"wrong-token": func(c *clientcmdapi.Config) { c.AuthInfos["me"].Token = a.plant("wrong token") },
		"exec": func(c *clientcmdapi.Config) {
			c.AuthInfos["me"].Exec = &clientcmdapi.ExecConfig{
				APIVersion: "client.authentication.k8s.io/v1", Command: "true", Args: []string{a.plant("argument")},
				Env: []clientcmdapi.ExecEnvVar{{Name: "TOKEN", Value: a.plant("variable")}}, InteractiveMode: "Never",
			}
		},
		"password": func(c *clientcmdapi.Config) { c.AuthInfos["me"].Password = a.plant("password of a kubeconfig") },
		"provider": func(c *clientcmdapi.Config) {
			c.AuthInfos["me"].AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"refresh-token": a.plant("refresh token")}}
		},
		"certificate": func(c *clientcmdapi.Config) {
			c.AuthInfos["me"].Token = ""
			c.AuthInfos["me"].ClientCertificateData, c.AuthInfos["me"].ClientKeyData = []byte("x"), []byte(a.plant("client key"))
		},
		"gossip": func(c *clientcmdapi.Config) {
			c.AuthInfos["me"].Token, c.Clusters["remote"].Server = a.plant("token for a gossiping cluster"), gossiping
		},
	} {
		w.environmentSecret(ns, name, kubeconfigWith(w.T, good, change))
		w.triedEnvironment(ns, name, func(s *v1alpha1.GitOpsDeploymentManagedEnvironmentSpec) {
			if name == "gossip" {
				s.APIURL, s.AllowInsecureSkipTLSVerify = gossiping, true
			}
		})
	}
	for name, text := range map[string]string{
		"not-yaml":   "][ " + a.plant("text that is no YAML"),
		"wrong-type": "users: [{name: u, user: {token: [" + a.plant("token in a list") + "]}}]\nclusters: " + a.plant("clusters that are a text"),
		"twice":      "apiVersion: v1\ntoken: " + a.plant("first of two") + "\ntoken: " + a.plant("second of two"),
	} {
		w.environmentSecret(ns, name, []byte(text))
		w.triedEnvironment(ns, name)
	}
}

func (w *world) triedEnvironment(ns, name string, change ...func(*v1alpha1.GitOpsDeploymentManagedEnvironmentSpec)) {
	w.Helper()
	e := w.environment(ns, name, name, change...)
	testkit.Eventually(w.T, "environment "+name+" is refused", func() string {
		latest := &v1alpha1.GitOpsDeploymentManagedEnvironment{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(e), latest))
		for _, c := range latest.Status.Conditions {
			if c.Status == metav1.ConditionFalse {
				return ""
			}
		}
		return fmt.Sprintf("%+v", latest.Status)
	})
}

// plantCredentials does the same with passwords and keys.
func (w *world) plantCredentials(a aviary, ns string, git *githttps.Server, overSSH, gossiping string, key gitssh.Key) {
	w.Helper()
	login := githttps.Login{User: a.plant("good user"), Password: a.plant("good password")}
	git.Accept(login)
	w.login(ns, "login", login.User, login.Password)
	c := w.credential(ns, "login", git.URL("shop.git"), "login")
	w.awaitChecked(c, v1alpha1.ReasonRepositoryCredentialUpToDate)
	w.deployed(ns, "shop", testkit.WithRepo(git.URL("shop.git")))
	lines := strings.Split(key.Private, "\n")
	a["good key"] = lines[len(lines)/2]
	w.key(ns, "key", key)
	w.awaitChecked(w.credential(ns, "key", overSSH, "key"), v1alpha1.ReasonRepositoryCredentialUpToDate)

	broken := strings.Replace(key.Private, lines[len(lines)/2], lines[len(lines)/2][1:]+"A", 1)
	a["broken key"] = lines[len(lines)/2][1:] + "A"
	for name, try := range map[string]struct {
		repository string
		data       map[string]string
	}{
		"wrong":      {git.URL("shop.git"), map[string]string{"username": a.plant("wrong user"), "password": a.plant("wrong password")}},
		"gossip":     {gossiping + "/shop.git", map[string]string{"username": a.plant("user for a gossip"), "password": a.plant("password for a gossip")}},
		"broken":     {overSSH, map[string]string{"sshPrivateKey": broken}},
		"text":       {overSSH, map[string]string{"sshPrivateKey": a.plant("text in place of a key")}},
		"in-pem":     {overSSH, map[string]string{"sshPrivateKey": string(pem.EncodeToMemory(&pem.Block{Type: "OPENSSH PRIVATE KEY", Bytes: []byte(a.plant("bytes in place of a key"))}))}},
		"other-key":  {git.URL("shop.git"), map[string]string{"sshPrivateKey": a.plant("key for https")}},
		"other-keys": {overSSH, map[string]string{"token": a.plant("value under another key"), "password": a.plant("password for ssh")}},
		"line-break": {git.URL("shop.git"), map[string]string{"username": "me\r\n" + a.plant("user with a line break"), "password": a.plant("its password") + "\n"}},
	} {
		data := map[string][]byte{}
		for k, v := range try.data {
			data[k] = []byte(v)
		}
		w.secret(ns, name, v1alpha1.RepositoryCredentialSecretType, data)
		bad := w.credential(ns, name, try.repository, name)
		testkit.Eventually(w.T, "credential "+name+" is refused", func() string {
			latest := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
			w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(bad), latest))
			return mention(fmt.Sprintf("%+v", latest.Status.Conditions), "Type:ErrorOccurred Status:True")
		})
	}
	// What an agent cannot write, it says, too.
	w.StopAgent()
	stuck := w.credential(ns, "stuck", git.URL("shop.git"), "login")
	yes := true
	w.must(w.api.Create(w.ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.EngineNamespace, Name: domain.RepositorySecretName(domain.CredentialID(stuck.UID))},
		Immutable:  &yes,
	}))
	w.StartAgent()
	testkit.Eventually(w.T, "it is said that the engine did not get it", func() string {
		latest := &v1alpha1.GitOpsDeploymentRepositoryCredential{}
		w.must(w.api.Get(w.ctx, client.ObjectKeyFromObject(stuck), latest))
		return mention(fmt.Sprintf("%+v", latest.Status.Conditions), "Type:ErrorOccurred Status:True", "immutable")
	})
}

// emitted gathers everything that the service has shown to anybody.
func (w *world) emitted(l *log, metrics *prometheus.Registry) map[string][]byte {
	w.Helper()
	all := map[string][]byte{"the log": l.all(), "the metrics": nil}
	families, err := metrics.Gather()
	w.must(err)
	var text bytes.Buffer
	for _, f := range families {
		_, err := expfmt.MetricFamilyToText(&text, f)
		w.must(err)
	}
	all["the metrics"] = text.Bytes()
	for _, list := range []client.ObjectList{
		&v1alpha1.GitOpsDeploymentList{}, &v1alpha1.GitOpsDeploymentSyncRunList{}, &v1alpha1.GitOpsDeploymentManagedEnvironmentList{},
		&v1alpha1.GitOpsDeploymentRepositoryCredentialList{}, &operationv1alpha1.OperationList{}, &argov1alpha1.ApplicationList{},
		&argov1alpha1.AppProjectList{}, &corev1.EventList{}, &eventsv1.EventList{}, &corev1.ConfigMapList{}, &corev1.ServiceAccountList{}, &corev1.NamespaceList{},
	} {
		w.must(w.api.List(w.ctx, list))
		all[fmt.Sprintf("%T", list)] = encode(w.T, list)
	}
	maps.Copy(all, w.dump())
	return all
}

// dump reads every row of every table, and on SQLite the files as well.
func (w *world) dump() map[string][]byte {
	w.Helper()
	all := map[string][]byte{}
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	files := w.strings("SELECT file FROM pragma_database_list WHERE file <> ''")
	if files == nil {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
	}
	for _, file := range files {
		parts, err := filepath.Glob(file + "*")
		w.must(err)
		for _, part := range parts {
			text, err := os.ReadFile(part)
			w.must(err)
			all["file "+filepath.Base(part)] = text
		}
	}
	for _, table := range w.strings(tables) {
		all["table "+table] = w.rows(table)
	}
	return all
}

// strings reads a column, nil where the database does not know the question.
func (w *world) strings(query string) []string {
	w.Helper()
	rows, err := w.Raw.QueryContext(w.ctx, query)
	if err != nil {
		return nil
	}
	defer func() { _ = rows.Close() }()
	var all []string
	for rows.Next() {
		var s string
		w.must(rows.Scan(&s))
		all = append(all, s)
	}
	w.must(rows.Err())
	return all
}

func (w *world) rows(table string) []byte {
	w.Helper()
	rows, err := w.Raw.QueryContext(w.ctx, `SELECT * FROM "`+table+`"`)
	w.must(err)
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	w.must(err)
	var text bytes.Buffer
	for rows.Next() {
		values := make([]any, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		w.must(rows.Scan(into...))
		for _, v := range values {
			if raw, isBytes := v.([]byte); isBytes {
				text.Write(raw)
			} else {
				fmt.Fprint(&text, v)
			}
			text.WriteByte('\n')
		}
	}
	w.must(rows.Err())
	return text.Bytes()
}

func TestCanariesAreFoundNowhere(t *testing.T) {
	git := githttps.Start(t, "shop.git")
	key := gitssh.NewKey(t, "ed25519")
	_, overSSH := sshRepository(t, key)
	gossiping := gossip(t)
	defer libraries.lead(nil)
	var everything *log
	var metrics *prometheus.Registry
	eachWith(t, func() []service.Option {
		everything, metrics = &log{}, prometheus.NewRegistry()
		libraries.lead(everything)
		return []service.Option{service.WithGitAuthorities(git.Authorities), service.WithLog(everything), service.WithMetrics(metrics)}
	}, func(w *world) {
		a, ns := aviary{}, w.tenant()
		w.plantEnvironments(a, ns, gossiping.URL)
		w.plantCredentials(a, w.tenant(), git, overSSH, gossiping.URL, key)
		w.StopBackend()
		w.StartBackend()
		// A sign that the new backend has looked at everything.
		w.deployed(ns, "last")
		w.awaitOnlyFailedLeft()

		all := w.emitted(everything, metrics)
		for where, text := range all {
			if seen := a.found(text); len(seen) > 0 {
				t.Errorf("in %s: %s", where, strings.Join(seen, ", "))
			}
		}
		// The search would find them: they are where they belong.
		secrets := &corev1.SecretList{}
		w.must(w.api.List(w.ctx, secrets))
		var planted bytes.Buffer
		for _, s := range secrets.Items {
			for _, value := range s.Data {
				planted.Write(value)
			}
		}
		if seen := a.found(planted.Bytes()); len(seen) != len(a) {
			t.Errorf("%d of %d canaries are in the Secrets: %v", len(seen), len(a), seen)
		}
		for _, where := range []string{"the log", "the metrics", "*v1.EventList", "table cluster_credentials", "table repository_credentials"} {
			if len(all[where]) == 0 {
				t.Errorf("nothing was searched in %s", where)
			}
		}
	})
}

// awaitOnlyFailedLeft waits until no operation is on its way.
func (w *world) awaitOnlyFailedLeft() {
	w.Helper()
	testkit.Eventually(w.T, "no operation on its way", func() string {
		return zero(w.count("SELECT count(*) FROM operation WHERE state = 'Waiting'"))
	})
}
