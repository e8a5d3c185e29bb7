// SPDX-License-Identifier: Apache-2.0

package up

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Words is how things are called on this machine, in the present folder and
// with this program: what a user can type.
type Words struct {
	// Weir and Kubectl are commands.
	Weir, Kubectl string
	// Short gives a path as one would type it.
	Short func(path string) string
}

// NewWords looks around.
func NewWords(s State) Words {
	w := Words{Weir: "weir", Kubectl: "kubectl", Short: Short}
	if self, err := os.Executable(); err == nil {
		if found, err := exec.LookPath("weir"); err != nil || !sameFile(found, self) {
			w.Weir = Short(self)
		}
	}
	if _, err := exec.LookPath(w.Kubectl); err != nil {
		program := s.Cluster.Localkube
		if program == "" {
			program, _ = FindLocalkube("")
		}
		if program != "" {
			w.Kubectl = Short(program) + " kubectl"
		}
	}
	return w
}

// Short gives a path relative to the present folder where it is inside it.
func Short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	rel, err := filepath.Rel(here, path)
	if err != nil || !filepath.IsLocal(rel) {
		return path
	}
	return rel
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// Down is the command that stops what runs in a folder.
func (w Words) Down(f Folder) string {
	if short := w.Short(f.Path()); short != DefaultFolder {
		return w.Weir + " down --dir " + short
	}
	return w.Weir + " down"
}

// Summary tells in plain words what runs, where things are, and what to try.
func Summary(f Folder, s State, w Words) string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "  %-25s %s\n", what, fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "Weir runs: process %d, version %s.\n\n", s.PID, s.Version)
	line(RoleWords(s.Engine), "in this one process, database %s (SQLite)", w.Short(f.Database()))
	if s.Cluster.Given == "" {
		line("Kubernetes", "%s with simulated nodes, at %s", s.Cluster.Version, s.Cluster.Server)
	} else {
		line("Kubernetes", "%s at %s, from %s", s.Cluster.Version, s.Cluster.Server, w.Short(s.Cluster.Given))
	}
	line("kubeconfig", "%s", w.Short(f.Kubeconfig()))
	line("sample tenant", "namespace %s", SampleTenant)
	line("sample repository", "%s", s.GitURL())
	line("", "(read only; push to %s)", w.Short(f.repository()))
	line("probes and metrics", "%s/healthz, /readyz and /metrics", s.ProbeURL())
	line("log", "%s", w.Short(f.Log()))
	fmt.Fprintf(&b, "\n%s\n\nTry:\n", engineWords(s.Engine))
	kubectl := w.Kubectl + " --kubeconfig " + w.Short(f.Kubeconfig())
	fmt.Fprintf(&b, "  %s apply -f %s\n", kubectl, w.Short(f.Sample()))
	fmt.Fprintf(&b, "  %s get gitopsdeployments -n %s\n", kubectl, SampleTenant)
	fmt.Fprintf(&b, "  %s get applications -n %s\n", kubectl, s.Engine.Namespace)
	return b.String()
}

// The kinds of engine that this command knows something of.
const (
	noEngine      = "none"
	builtInEngine = "builtin"
)

// RoleWords names the roles that run.
func RoleWords(e EngineState) string {
	if e.Kind == builtInEngine {
		return "backend, agent and engine"
	}
	return "backend and agent"
}

func engineWords(e EngineState) string {
	if e.Kind == builtInEngine {
		return "The built-in engine deploys: apply the sample, and it is Synced and Healthy some\n" +
			"seconds later; a commit to its repository arrives by itself."
	}
	if e.Kind == noEngine {
		return "No engine runs: for each GitOpsDeployment an Application is written to the\n" +
			"namespace " + e.Namespace + ", and nobody deploys it yet."
	}
	return "Applications are written to the namespace " + e.Namespace + " for the engine there (" + e.Kind + "),\n" +
		"which is not started by this command."
}
