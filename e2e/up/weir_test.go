// SPDX-License-Identifier: Apache-2.0

package up

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// machine is a folder of its own with the programs in bin/ and nothing else on
// the PATH but git: in particular no kubectl.
type machine struct {
	t    *testing.T
	home string
	path string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := &machine{t: t, home: home, path: filepath.Join(home, "path")}
	for _, name := range []string{"weir", "localkube"} {
		built, err := filepath.Abs(filepath.Join("..", "..", "bin", name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(built); err != nil {
			t.Fatalf("%v; build it with: make build", err)
		}
		m.link(built, filepath.Join(home, "bin", name))
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	m.link(git, filepath.Join(m.path, "git"))
	t.Cleanup(func() {
		// Whatever failed, nothing may be left behind.
		_, _ = m.runWith(context.WithoutCancel(t.Context()), "bin/weir", "down", "--timeout=20s")
		if left := m.processes(); len(left) > 0 {
			t.Errorf("processes are left: %v", left)
		}
	})
	return m
}

func (m *machine) link(from, to string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(from, to); err != nil {
		m.t.Fatal(err)
	}
}

// run runs a command in the machine's folder and gives its output.
func (m *machine) run(command ...string) (string, error) {
	m.t.Helper()
	return m.runWith(m.t.Context(), command...)
}

func (m *machine) runWith(ctx context.Context, command ...string) (string, error) {
	var out bytes.Buffer
	program := command[0]
	if !filepath.IsAbs(program) {
		program = filepath.Join(m.home, program)
	}
	cmd := exec.CommandContext(ctx, program, command[1:]...)
	cmd.Dir = m.home
	cmd.Env = []string{"PATH=" + m.path, "HOME=" + m.home}
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (m *machine) mustRun(command ...string) string {
	m.t.Helper()
	began := time.Now()
	out, err := m.run(command...)
	if err != nil {
		m.t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
	}
	m.t.Logf("%s: %s", strings.Join(command, " "), time.Since(began).Round(time.Millisecond))
	return out
}

// mustFail runs a command that has to end with exit code 1.
func (m *machine) mustFail(command ...string) string {
	m.t.Helper()
	out, err := m.run(command...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		m.t.Fatalf("%s: %v, want exit code 1\n%s", strings.Join(command, " "), err, out)
	}
	return out
}

func (m *machine) api() client.WithWatch {
	m.t.Helper()
	config, err := kube.LoadConfig(filepath.Join(m.home, ".weir", "kubeconfig"))
	if err != nil {
		m.t.Fatal(err)
	}
	api, err := client.NewWithWatch(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		m.t.Fatal(err)
	}
	return api
}

// processes are the command lines that speak of the machine's folder, or that
// run in it. Linux tells; elsewhere nothing is found.
func (m *machine) processes() []string {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	var found []string
	for _, folder := range folders {
		line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
		if err != nil || len(line) == 0 {
			continue
		}
		in, _ := os.Readlink(filepath.Join(folder, "cwd"))
		if bytes.Contains(line, []byte(m.home)) || strings.HasPrefix(in, m.home) {
			found = append(found, string(bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
		}
	}
	return found
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, ask func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for !ask() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-ticker.C
	}
}
