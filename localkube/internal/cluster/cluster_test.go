// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/weir-gitops/weir/localkube/internal/pki"
	"github.com/weir-gitops/weir/localkube/internal/supervise"
)

func testLayout(t *testing.T) layout {
	t.Helper()
	l, err := newLayout(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.create(); err != nil {
		t.Fatal(err)
	}
	return l
}

func TestPortsAreKeptWhileFree(t *testing.T) {
	first, err := choosePorts(ports{})
	if err != nil {
		t.Fatal(err)
	}
	all := []int{first.APIServer, first.ControllerManager, first.Scheduler}
	slices.Sort(all)
	if len(slices.Compact(slices.Clone(all))) != 3 || all[0] < firstPort || all[2] > lastPort {
		t.Errorf("ports %v", all)
	}
	again, err := choosePorts(first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("free ports were not kept (-first +again):\n%s", diff)
	}

	taken, err := net.Listen("tcp4", loopback(first.APIServer))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	moved, err := choosePorts(first)
	if err != nil {
		t.Fatal(err)
	}
	if moved.APIServer == first.APIServer || moved.ControllerManager != first.ControllerManager || moved.Scheduler != first.Scheduler {
		t.Errorf("with one port taken: %+v, before %+v", moved, first)
	}
}

func TestPortsSurviveInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state.json")
	if p, err := readPorts(file); err != nil || p != (ports{}) {
		t.Errorf("absent: %+v, %v", p, err)
	}
	want := ports{APIServer: 20001, ControllerManager: 20002, Scheduler: 20003}
	if err := writePorts(file, want); err != nil {
		t.Fatal(err)
	}
	if got, err := readPorts(file); err != nil || got != want {
		t.Errorf("read %+v, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readPorts(file); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("damaged: %v, want a message with the remedy", err)
	}
}

func TestKubeconfigIsPrivateAndComplete(t *testing.T) {
	l := testLayout(t)
	keys, err := pki.Ensure(l.pki(), serviceIP(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := writeKubeconfigs(l, keys, 20123); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(l.kubeconfig())
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != "https://127.0.0.1:20123" || len(config.CAData) == 0 || len(config.CertData) == 0 || len(config.KeyData) == 0 || config.Insecure {
		t.Errorf("config: host %s, %d, %d, %d bytes", config.Host, len(config.CAData), len(config.CertData), len(config.KeyData))
	}
}

func TestSocketsFitIntoTheKernelsLimit(t *testing.T) {
	for _, depth := range []int{0, 200} {
		l := testLayout(t)
		l.dir = filepath.Join(l.dir, strings.Repeat("x", depth))
		if err := os.MkdirAll(l.dir, 0o700); err != nil {
			t.Fatal(err)
		}
		remove, err := l.openSockets()
		if err != nil {
			t.Fatal(err)
		}
		for _, socket := range []string{l.etcdSocket(), l.peerSocket()} {
			s, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatalf("%d deep: %v", depth, err)
			}
			s.Close()
		}
		if info, err := os.Stat(l.sockets); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("mode %v, %v", info.Mode(), err)
		}
		remove()
		if _, err := os.Stat(l.sockets); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the sockets' folder is still there: %v", err)
		}
	}
}

func TestNoComponentIsToldToListenElsewhere(t *testing.T) {
	l := testLayout(t)
	l.sockets = filepath.Join(l.dir, "run")
	s := settings{layout: l, ports: ports{20001, 20002, 20003}, keys: &pki.Bundle{}, self: "/bin/localkube"}
	for _, spec := range []supervise.Spec{s.etcd(), s.apiServer(), s.controllerManager(), s.scheduler()} {
		loopbackOnly := false
		for _, arg := range spec.Args {
			name, value, _ := strings.Cut(arg, "=")
			switch {
			case strings.HasPrefix(name, "--listen-"):
				loopbackOnly = strings.HasPrefix(value, "unix://"+l.dir)
			case name == "--bind-address":
				loopbackOnly = value == "127.0.0.1"
			}
		}
		if !loopbackOnly {
			t.Errorf("%s: %v", spec.Name, spec.Args)
		}
		if spec.Path != "/bin/localkube" || spec.LogFile != filepath.Join(l.dir, "logs", spec.Name+".log") {
			t.Errorf("%s: %+v", spec.Name, spec)
		}
	}
}

func TestChildEnv(t *testing.T) {
	got := childEnv([]string{"PATH=/bin", "ETCD_NAME=x", "NOTIFY_SOCKET=/x", "KUBECONFIG=/x", "ETCDLIKE=1", "GOGC=200"})
	if diff := cmp.Diff([]string{"PATH=/bin", "ETCDLIKE=1", "GOGC=200"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestInspect goes through what a lock and a mark can say before there is an
// API server to ask.
func TestInspect(t *testing.T) {
	l := testLayout(t)
	if _, err := Inspect(t.Context(), l.dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("no lock: %v", err)
	}
	lock, err := supervise.Acquire(l.lock())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), l.dir); !errors.Is(err, errNotReady) {
		t.Errorf("no mark: %v", err)
	}
	if err := os.WriteFile(l.ready(), []byte(strconv.Itoa(os.Getpid()+1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Inspect(t.Context(), l.dir); !errors.Is(err, errNotReady) {
		t.Errorf("mark of another process: %v", err)
	}
	if err := Up(t.Context(), Options{Dir: l.dir, Out: t.Output()}); !errors.As(err, new(*RunningError)) {
		t.Errorf("up beside a running one: %v", err)
	}
	lock.Release()
	if _, err := Inspect(t.Context(), l.dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("released: %v", err)
	}
}

func TestDownOfNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for _, dir := range []string{t.TempDir(), "/nonexistent/folder"} {
		if pid, err := Down(ctx, dir); pid != 0 || err != nil {
			t.Errorf("%s: %d, %v", dir, pid, err)
		}
	}
}
