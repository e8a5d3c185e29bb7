// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// readyWithin is what a user is promised on a machine that has the time.
const readyWithin = 15 * time.Second

var everyProgram = []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}

// TestCluster follows one cluster through its life: each part needs the one
// before it.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	readyFile := filepath.Join(t.TempDir(), "ready")
	began := time.Now()
	r := up(t, dir, "--ready-file", readyFile)
	took := time.Since(began)
	t.Logf("ready after %s\n%s", took, r.output())
	if took > readyWithin {
		if load, busy := busyMachine(); busy {
			t.Logf("over %s, but the machine is busy with other work (load %.1f)", readyWithin, load)
		} else {
			t.Errorf("ready after %s, want under %s", took, readyWithin)
		}
	}
	if got := strings.TrimSpace(readFile(t, readyFile)); got != r.kubeconfig() {
		t.Errorf("ready file says %q, want %q", got, r.kubeconfig())
	}
	if info, err := os.Stat(r.kubeconfig()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig: %v, %v", info.Mode(), err)
	}
	api := r.client()

	t.Run("it says its true version", func(t *testing.T) {
		want := linkedKubernetes(t)
		got, err := api.Discovery().ServerVersion()
		if err != nil {
			t.Fatal(err)
		}
		if got.GitVersion != want || want != "v"+got.Major+"."+got.Minor+want[strings.LastIndex(want, "."):] {
			t.Errorf("/version says %+v, want %s", got, want)
		}
		if code, out := local(t, "version"); code != 0 || strings.TrimSpace(out) != want {
			t.Errorf("version: %d, %q", code, out)
		}
	})
	t.Run("it listens on loopback only", func(t *testing.T) { testLoopback(t, r) })
	t.Run("a second one is refused", func(t *testing.T) {
		code, out := local(t, "up", "--dir", dir)
		if code != 1 || !strings.Contains(out, fmt.Sprintf("process %d", r.pid())) {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("status says ready", func(t *testing.T) {
		if code, out := local(t, "status", "--dir", dir); code != 0 || !strings.Contains(out, "2 nodes ready") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("it is its own kubectl", func(t *testing.T) {
		if code, out := local(t, "kubectl", "--kubeconfig", r.kubeconfig(), "get", "nodes", "-o", "name"); code != 0 || !strings.Contains(out, "node/localkube-2") {
			t.Errorf("exit code %d: %s", code, out)
		}
	})
	t.Run("workloads", func(t *testing.T) { testWorkloads(t, api) })

	if !t.Failed() {
		testStopAndRestart(t, r, readyFile)
	}
}

// TestInterruptedStart: Ctrl-C in the middle of a start leaves nothing either.
func TestInterruptedStart(t *testing.T) {
	needProc(t)
	r := start(t, t.TempDir())
	r.await("starting kube-apiserver")
	var pids map[string]int
	eventually(t, 10*time.Second, func(context.Context) error {
		pids = childrenOf(t, r.pid())
		if pids["kube-apiserver"] == 0 {
			return errNotYet
		}
		return nil
	})
	r.stop()
	if code, out := r.cmd.ProcessState.ExitCode(), r.output(); code != 1 || !strings.Contains(out, "stopped before it was ready") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if err := gone(pids); err != nil {
		t.Error(err)
	}
}

// linkedKubernetes is the version in go.mod.
func linkedKubernetes(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func testLoopback(t *testing.T, r *running) {
	needProc(t)
	all := childrenOf(t, r.pid())
	for _, name := range everyProgram {
		if all[name] == 0 {
			t.Errorf("%s is not a child of up: %v", name, all)
		}
	}
	all["localkube"] = r.pid()
	seen := 0
	for name, pid := range all {
		for _, addr := range listening(t, pid) {
			seen++
			if !addr.Addr().IsLoopback() {
				t.Errorf("%s listens on %s", name, addr)
			}
		}
	}
	if seen != 3 {
		t.Errorf("%d ports, want those of API server, controller manager and scheduler", seen)
	}
}

// testStopAndRestart: down leaves nothing but the data; the next up has it, at
// the same address; a killed one is survived as well; a dead component ends
// the whole with a reason.
func testStopAndRestart(t *testing.T, r *running, readyFile string) {
	before := readFile(t, r.kubeconfig())
	cm := &corev1.ConfigMap{ObjectMeta: meta("kept"), Data: map[string]string{"k": "v"}}
	if _, err := r.client().CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createDeployment(t, r.client(), "default", "kept", template("kept", corev1.RestartPolicyAlways))
	pids := childrenOf(t, r.pid())
	began := time.Now()
	if code, out := local(t, "down", "--dir", r.dir); code != 0 || !strings.Contains(out, fmt.Sprint(r.pid())) {
		t.Fatalf("down: exit code %d: %s", code, out)
	}
	t.Logf("down after %s", time.Since(began))
	r.wait()
	if r.err != nil || strings.Contains(r.output(), "killed") {
		t.Errorf("up ended with %v\n%s", r.err, r.output())
	}
	if err := gone(pids); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(readyFile); err == nil {
		t.Error("the ready file is still there")
	}
	if code, out := local(t, "status", "--dir", r.dir); code != 1 || !strings.Contains(out, "not running") {
		t.Errorf("status: exit code %d: %s", code, out)
	}
	if code, _ := local(t, "down", "--dir", r.dir); code != 0 {
		t.Errorf("down of nothing: exit code %d", code)
	}

	began = time.Now()
	r = up(t, r.dir)
	t.Logf("ready again after %s", time.Since(began))
	if readFile(t, r.kubeconfig()) != before {
		t.Error("the kubeconfig is another after the restart")
	}
	testDataIsThere(t, r)
	testKilled(t, r)
}

func testDataIsThere(t *testing.T, r *running) {
	t.Helper()
	if _, err := r.client().CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	eventually(t, 15*time.Second, deploymentAvailable(r.client(), "default", "kept"))
}

func testKilled(t *testing.T, r *running) {
	needProc(t)
	pids := childrenOf(t, r.pid())
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.wait()
	eventually(t, 10*time.Second, func(context.Context) error { return gone(pids) })

	r = up(t, r.dir, "--nodes", "1")
	testDataIsThere(t, r)
	if code, out := local(t, "status", "--dir", r.dir); code != 0 || !strings.Contains(out, "1 nodes ready") {
		t.Errorf("status: exit code %d: %s", code, out)
	}
	pids = childrenOf(t, r.pid())
	if err := syscall.Kill(pids["kube-scheduler"], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.wait()
	if out := r.output(); r.cmd.ProcessState.ExitCode() != 1 || !strings.Contains(out, "kube-scheduler ended unexpectedly (signal: killed)") || !strings.Contains(out, "kube-scheduler.log ends:\n  ") {
		t.Errorf("exit code %d\n%s", r.cmd.ProcessState.ExitCode(), out)
	}
	if err := gone(pids); err != nil {
		t.Error(err)
	}
}
