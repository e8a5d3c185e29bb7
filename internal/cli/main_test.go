// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/internal/kube"
	"github.com/weir-gitops/weir/internal/testkit"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// server is the control plane of this package, started by the first test that
// needs it.
var server struct {
	once    sync.Once
	cluster *controlplane.Cluster
	api     client.WithWatch
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if server.cluster != nil {
		if err := server.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func startServer() error {
	ctx := context.Background()
	var err error
	if server.cluster, err = controlplane.Start(ctx); err != nil {
		return err
	}
	if server.api, err = client.NewWithWatch(server.cluster.Config, client.Options{Scheme: kube.NewScheme()}); err != nil {
		return err
	}
	crds, err := crd.Tenant()
	if err != nil {
		return err
	}
	return kube.InstallCRDs(ctx, server.api, crds)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tenant is somebody with a namespace and a kubeconfig, and the test's own
// hand, which plays the service.
type tenant struct {
	*testing.T
	api        client.WithWatch
	namespace  string
	kubeconfig string
	terminal   fakeTerminal
	stdin      io.Reader
}

// newTenant has rights in one namespace only, those that docs/cli.md names.
func newTenant(t *testing.T) *tenant {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	server.once.Do(func() { server.err = startServer() })
	must(t, server.err)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cli-"}}
	must(t, server.api.Create(t.Context(), ns))
	w := &tenant{T: t, api: server.api, namespace: ns.Name}
	w.kubeconfig = w.writeKubeconfig("tenant", w.serviceAccount("tenant", tenantRules(t)))
	return w
}

// tenantRules are those of the documentation, so that what it promises is what
// the tests run with.
func tenantRules(t testing.TB) []rbacv1.PolicyRule {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "cli.md"))
	must(t, err)
	_, rest, found := strings.Cut(string(text), "```yaml\n")
	block, _, ended := strings.Cut(rest, "```")
	role := &rbacv1.Role{}
	must(t, yaml.UnmarshalStrict([]byte(block), role))
	if !found || !ended || len(role.Rules) == 0 {
		t.Fatal("docs/cli.md names no rules")
	}
	return role.Rules
}

// serviceAccount makes an account with rights in the namespace, and gives its token.
func (w *tenant) serviceAccount(name string, rules []rbacv1.PolicyRule) string {
	w.Helper()
	in := metav1.ObjectMeta{Namespace: w.namespace, Name: name}
	account := &corev1.ServiceAccount{ObjectMeta: in}
	must(w, w.api.Create(w.Context(), account))
	must(w, w.api.Create(w.Context(), &rbacv1.Role{ObjectMeta: in, Rules: rules}))
	must(w, w.api.Create(w.Context(), &rbacv1.RoleBinding{
		ObjectMeta: in,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: name, Namespace: w.namespace}},
	}))
	request := &authenticationv1.TokenRequest{}
	must(w, w.api.SubResource("token").Create(w.Context(), account, request))
	return request.Status.Token
}

// writeKubeconfig gives a file whose context says the tenant's namespace.
func (w *tenant) writeKubeconfig(name, token string) string {
	w.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["here"] = &clientcmdapi.Cluster{Server: server.cluster.Config.Host, CertificateAuthorityData: server.cluster.Config.CAData, CertificateAuthority: server.cluster.Config.CAFile}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: "here", AuthInfo: name, Namespace: w.namespace}
	config.CurrentContext = name
	file := filepath.Join(w.TempDir(), name)
	must(w, clientcmd.WriteToFile(*config, file))
	return file
}

// buffer can be read while a command still writes to it.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// running is a command under way.
type running struct {
	*testing.T
	out, err buffer
	cancel   context.CancelFunc
	done     chan struct{}
	failure  error
}

// start runs a command as the tenant.
func (w *tenant) start(args ...string) *running {
	w.Helper()
	ctx, cancel := context.WithCancel(w.Context())
	r := &running{T: w.T, cancel: cancel, done: make(chan struct{})}
	root := newTestRoot("weir", w.terminal, time.Now)
	root.SetArgs(append(args, "--kubeconfig", w.kubeconfig))
	root.SetOut(&r.out)
	root.SetErr(&r.err)
	if w.stdin != nil {
		root.SetIn(w.stdin)
	} else {
		root.SetIn(strings.NewReader(""))
	}
	go func() {
		defer close(r.done)
		r.failure = root.ExecuteContext(ctx)
	}()
	w.Cleanup(func() { cancel(); <-r.done })
	return r
}

func newTestRoot(program string, terminal terminal, now func() time.Time) *cobra.Command {
	root := &cobra.Command{Use: "weir", SilenceUsage: true, SilenceErrors: true}
	root.AddGroup(&cobra.Group{ID: GroupID, Title: "Tenants"})
	attach(root, &app{program: program, now: now, terminal: terminal})
	return root
}

// result is what a command left behind: what it printed, with the error as main
// prints it, and the exit code.
type result struct {
	out, err string
	code     int
}

func (r *running) wait() result {
	r.Helper()
	select {
	case <-r.done:
	case <-time.After(testkit.Patience):
		r.Fatalf("the command does not end; it printed %q and %q", r.out.String(), r.err.String())
	}
	res := result{out: r.out.String(), err: r.err.String(), code: ExitCode(r.failure)}
	if r.failure != nil {
		res.err += r.failure.Error()
	}
	return res
}

// says waits for a text in the output.
func (r *running) says(text string) {
	r.Helper()
	testkit.Eventually(r, "output "+text, func() string {
		if out := r.out.String(); !strings.Contains(out, text) {
			return "so far: " + out + r.err.String()
		}
		return ""
	})
}

func (w *tenant) run(args ...string) result {
	w.Helper()
	return w.start(args...).wait()
}

// want checks a result: the code, and texts that both streams together hold.
func (r result) want(t testing.TB, code int, texts ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d\n%s\n%s", r.code, code, r.out, r.err)
	}
	for _, text := range texts {
		if !strings.Contains(r.out+r.err, text) {
			t.Errorf("does not say %q:\n%s\n%s", text, r.out, r.err)
		}
	}
}

type fakeTerminal struct {
	present  bool
	password string
}

func (f fakeTerminal) Is(any) bool { return f.present }

func (f fakeTerminal) ReadPassword(context.Context, any) ([]byte, error) {
	return []byte(f.password), nil
}

func (w *tenant) create(o client.Object) {
	w.Helper()
	o.SetNamespace(w.namespace)
	must(w, w.api.Create(w.Context(), o))
}

// setStatus plays the service.
func (w *tenant) setStatus(o client.Object) {
	w.Helper()
	must(w, w.api.Status().Update(w.Context(), o))
}
