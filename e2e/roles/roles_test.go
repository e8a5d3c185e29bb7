// SPDX-License-Identifier: Apache-2.0

// Package roles runs the weir binary as an operator does: each role a process
// of its own against a real control plane and PostgreSQL, started with good and
// with bad settings, and through an outage of the database.
package roles

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/telemetry"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
	"github.com/weir-gitops/weir/internal/testkit/pg"
)

var (
	cluster *controlplane.Cluster
	weir    string
	keyRing string
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("needs servers; skipped with -short")
		return
	}
	code := 1
	func() {
		var err error
		if weir, err = controlplane.Binary("weir"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		if cluster, err = controlplane.Start(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer func() { _ = cluster.Stop() }()
		folder, err := os.MkdirTemp("", "weir-roles-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
		defer func() { _ = os.RemoveAll(folder) }()
		keyRing = filepath.Join(folder, "keyring.json")
		if out, err := exec.Command(weir, "keys", "create", "--key-ring="+keyRing).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "weir keys create: %v\n%s", err, out)
			return
		}
		code = pg.Run(m)
	}()
	os.Exit(code)
}

// refuse runs weir and expects exit code 1 and a message with all the words.
func refuse(t *testing.T, words []string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, weir, args...)
	c.Env = append(os.Environ(), "WEIR_DATABASE=", "KUBECONFIG=", "WEIR_KEY_RING="+keyRing)
	out, err := c.CombinedOutput()
	var exit *exec.ExitError
	if err == nil || !asExit(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("weir %s: %v, wanted exit code 1\n%s", strings.Join(args, " "), err, out)
	}
	for _, w := range words {
		if !strings.Contains(string(out), w) {
			t.Errorf("weir %s does not say %q:\n%s", strings.Join(args, " "), w, out)
		}
	}
	if strings.Contains(string(out), "canary-password") {
		t.Errorf("a password was printed:\n%s", out)
	}
}

func asExit(err error, to **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError) //nolint:errorlint // What exec returns, unwrapped.
	*to = e
	return ok
}

// TestBadSettings runs before the resource definitions are installed.
func TestBadSettings(t *testing.T) {
	k := "--kubeconfig=" + cluster.Kubeconfig
	t.Run("missing resource definitions are named, with the remedy", func(t *testing.T) {
		refuse(t, []string{"gitopsdeployments.managed-gitops.redhat.com", "weir crds install"}, "backend", k, "--database=postgres://u@127.0.0.1:1/weir")
		refuse(t, []string{"applications.argoproj.io", "weir crds install"}, "agent", k, "--database=postgres://u@127.0.0.1:1/weir")
	})
	if out, err := exec.Command(weir, "crds", "install", k).CombinedOutput(); err != nil {
		t.Fatalf("crds install: %v\n%s", err, out)
	}
	t.Run("no kubeconfig", func(t *testing.T) {
		refuse(t, []string{"--kubeconfig"}, "backend")
		refuse(t, []string{"/no/such/file"}, "backend", "--kubeconfig=/no/such/file")
	})
	t.Run("no database", func(t *testing.T) {
		refuse(t, []string{"--database", "WEIR_DATABASE", "postgres://"}, "backend", k)
	})
	t.Run("database of an unknown kind", func(t *testing.T) {
		refuse(t, []string{"postgres://"}, "backend", k, "--database=mysql://root:canary-password@localhost")
	})
	t.Run("unreachable database is tried again, then named", func(t *testing.T) {
		refuse(t, []string{"does not answer yet, trying again", "--database"}, "backend", k, "--wait-for-database=5s",
			"--database=postgres://u:canary-password@127.0.0.1:1/weir")
	})
	t.Run("refused login is not tried again", func(t *testing.T) {
		dsn := strings.Replace(pg.Shared(t).NewDatabase(t), "://", "://nobody:canary-password@", 1)
		dsn = dsn[:strings.Index(dsn, "@")] + dsn[strings.LastIndex(dsn, "@"):]
		refuse(t, []string{"refused"}, "backend", k, "--database="+dsn)
	})
	t.Run("no key ring", func(t *testing.T) {
		dsn := pg.Shared(t).NewDatabase(t)
		refuse(t, []string{"/no/such/ring", "weir keys create"}, "backend", k, "--key-ring=/no/such/ring", "--database="+dsn)
		refuse(t, []string{"key ring", "--key-ring"}, "agent", k, "--key-ring=", "--database="+dsn)
	})
	t.Run("isolation half configured", func(t *testing.T) {
		dsn := pg.Shared(t).NewDatabase(t)
		refuse(t, []string{"isolation is half configured", "nosuchrole", "--deployer-role"}, "backend", k, "--deployer-role=nosuchrole", "--database="+dsn)
		refuse(t, []string{"isolation is half configured", "change roles"}, "backend", k, "--deployer-role=cluster-admin", "--database="+dsn)
		refuse(t, []string{"isolation is half configured", "argocd-cm", "impersonation"}, "agent", k, "--engine=argocd", "--engine-namespace=default", "--database="+dsn)
	})
	t.Run("no such database", func(t *testing.T) {
		dsn := pg.Shared(t).DSN("nosuchdatabase")
		refuse(t, []string{"nosuchdatabase"}, "backend", k, "--database="+dsn)
	})
	t.Run("no engine namespace", func(t *testing.T) {
		refuse(t, []string{"nosuchnamespace", "--engine-namespace"}, "agent", k, "--engine-namespace=nosuchnamespace", "--database="+pg.Shared(t).NewDatabase(t))
	})
	t.Run("unknown engine, log format, log level", func(t *testing.T) {
		refuse(t, []string{"--engine", "argocd"}, "agent", k, "--engine=flux")
		refuse(t, []string{"--log-format", "json"}, "backend", k, "--log-format=xml")
		refuse(t, []string{"--log-level", "debug"}, "backend", k, "--log-level=loud")
	})
}

// role starts a role's process and gives the address of its probes.
func role(t *testing.T, dsn string, args ...string) string {
	t.Helper()
	address := "127.0.0.1:" + freePort(t)
	args = append(args, "--kubeconfig="+cluster.Kubeconfig, "--probe-address="+address, "--log-level=warn", "--log-format=text")
	c := exec.Command(weir, args...)
	c.Env = append(os.Environ(), "WEIR_DATABASE="+dsn, "WEIR_KEY_RING="+keyRing)
	c.Stdout, c.Stderr = t.Output(), t.Output()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err != nil {
			t.Errorf("weir %s did not stop cleanly: %v", args[0], err)
		}
	})
	testkit.Eventually(t, args[0]+" is ready", func() string { return readiness(address, nil) })
	return address
}

// readiness asks /readyz; "" is ready.
func readiness(address string, into *telemetry.Readiness) string {
	res, err := http.Get("http://" + address + "/readyz")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = res.Body.Close() }()
	var r telemetry.Readiness
	if err := json.NewDecoder(res.Body).Decode(&r); err != nil {
		return err.Error()
	}
	if into != nil {
		*into = r
	}
	if !r.Ready || res.StatusCode != http.StatusOK {
		return fmt.Sprintf("%d %v", res.StatusCode, r.Dependencies)
	}
	return ""
}

func TestRolesApartAndThroughAnOutageOfTheDatabase(t *testing.T) {
	server := pg.New(t, pg.Options{})
	dsn := server.NewDatabase(t)
	api, err := client.New(cluster.Config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range []string{"argocd", "tenant"} {
		if err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}); err != nil {
			t.Fatal(err)
		}
	}
	agent := role(t, dsn, "agent", "--engine=none")
	backend := role(t, dsn, "backend")

	first := create(t, api, "first")
	awaitApplication(t, api, first)

	if err := server.Halt(); err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"backend: database": backend, "agent: database": agent} {
		testkit.Eventually(t, "/readyz names the "+name, func() string {
			var r telemetry.Readiness
			if readiness(address, &r) == "" || r.Dependencies[name] == "ok" {
				return fmt.Sprint(r)
			}
			return ""
		})
	}
	second := create(t, api, "second")
	testkit.Eventually(t, "the tenant is told", func() string {
		d := &v1alpha1.GitOpsDeployment{}
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(second), d); err != nil {
			return err.Error()
		}
		for _, c := range d.Status.Conditions {
			if c.Status == metav1.ConditionTrue && strings.Contains(c.Message, "waiting for the service's database") {
				return ""
			}
		}
		return fmt.Sprint(d.Status.Conditions)
	})
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Nobody does anything: recovery is the roles' own.
	testkit.EventuallyWithin(t, 90*time.Second, "recovered", func() string {
		if a := readiness(agent, nil); a != "" {
			return a
		}
		return readiness(backend, nil)
	})
	awaitApplication(t, api, second)
}

func create(t *testing.T, api client.Client, name string) *v1alpha1.GitOpsDeployment {
	t.Helper()
	d := testkit.Deployment("tenant", name)
	if err := api.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return d
}

func awaitApplication(t *testing.T, api client.Client, d *v1alpha1.GitOpsDeployment) {
	t.Helper()
	testkit.EventuallyWithin(t, 90*time.Second, "Application of "+d.Name, func() string {
		err := api.Get(t.Context(), client.ObjectKey{Namespace: "argocd", Name: "gitopsdepl-" + string(d.UID)}, &argov1alpha1.Application{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
