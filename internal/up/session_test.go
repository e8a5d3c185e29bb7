// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/telemetry"
)

func begin(t *testing.T, f Folder, ask Ports) (*Session, error) {
	t.Helper()
	s, err := Begin(t.Context(), Options{
		Folder: f, Version: "v0.1.0", Localkube: self(t), Ports: ask, Engine: EngineState{Kind: "none", Namespace: "argocd"},
	})
	if err == nil {
		t.Cleanup(s.lock.Release)
	}
	return s, err
}

func TestPortsAndClusterOutliveTheSession(t *testing.T) {
	f := newFolder(t)
	first, err := begin(t, f, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	first.State.Cluster.UID = "u-1"
	if err := first.End(); err != nil {
		t.Fatal(err)
	}
	first.lock.Release()

	second, err := begin(t, f, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first.State.Ports, second.State.Ports); d != "" {
		t.Errorf("other ports:\n%s", d)
	}
	if got := second.GitMoved(); got != "" {
		t.Errorf("told %q", got)
	}
	if err := SameCluster(f, second.Before.Cluster, ClusterState{UID: "u-1"}); err != nil {
		t.Errorf("the same cluster: %v", err)
	}
	if err := SameCluster(f, second.Before.Cluster, ClusterState{UID: "u-2"}); !errors.Is(err, ErrOtherCluster) {
		t.Errorf("another cluster: %v, want %v", err, ErrOtherCluster)
	}
	if s, err := ReadState(f); err != nil || s.PID != os.Getpid() || s.Ready || s.Cluster.UID != "u-1" {
		t.Errorf("state %+v, %v", s, err)
	}
}

func TestMovedRepositoryIsTold(t *testing.T) {
	f := newFolder(t)
	taken := take(t)
	if err := f.create(); err != nil {
		t.Fatal(err)
	}
	if err := WriteState(f, State{Ports: Ports{Git: taken}}); err != nil {
		t.Fatal(err)
	}
	s, err := begin(t, f, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.GitMoved(); !strings.Contains(got, strconv.Itoa(taken)) || !strings.Contains(got, strconv.Itoa(s.State.Ports.Git)) {
		t.Errorf("told %q", got)
	}
}

func TestBeginRefusesBeforeAnythingStarts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	put(t, file, "")
	for _, tt := range []struct {
		name string
		path string
		o    Options
		want error
	}{
		{"no git", "", Options{Localkube: self(t)}, gitserve.ErrNoGit},
		{"no kubeconfig", os.Getenv("PATH"), Options{Kubeconfig: "/no/such/file"}, os.ErrNotExist},
		{"no localkube", os.Getenv("PATH"), Options{Localkube: "/no/such/file"}, os.ErrNotExist},
		{"a port that is taken", os.Getenv("PATH"), Options{Localkube: self(t), Ports: Ports{Git: take(t)}}, ErrPortTaken},
		{"a file for a folder", os.Getenv("PATH"), Options{Folder: Folder{path: file}}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("PATH", tt.path)
			if tt.o.Folder == (Folder{}) {
				tt.o.Folder = newFolder(t)
			}
			_, err := Begin(t.Context(), tt.o)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
			if _, running, _ := Find(tt.o.Folder); running {
				t.Error("the folder is still held")
			}
		})
	}
}

func TestAwaitReady(t *testing.T) {
	f := newFolder(t)
	s, err := begin(t, f, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	slow := []telemetry.Check{{Name: "agent: caches", Check: func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not read yet")
		}
		return nil
	}}}
	if err := s.AwaitReady(t.Context(), time.Minute, slow); err != nil {
		t.Error(err)
	}
	if got, err := ReadState(f); err != nil || !got.Ready {
		t.Errorf("state %+v, %v", got, err)
	}
	never := []telemetry.Check{{Name: "agent: database", Check: func(context.Context) error { return errors.New("gone") }}}
	err = s.AwaitReady(t.Context(), time.Millisecond, never)
	if !errors.Is(err, ErrNotReady) || !strings.Contains(err.Error(), "agent: database: gone") {
		t.Errorf("got %v", err)
	}
}

func TestSampleIsServedAndKept(t *testing.T) {
	f := newFolder(t)
	s, err := begin(t, f, Ports{})
	if err != nil {
		t.Fatal(err)
	}
	for start := range 2 {
		server, err := ServeSample(t.Context(), f, s.State.Ports.Git, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- server.Run(ctx) }()
		if p := askGit(t.Context(), s.State); !p.Ready {
			t.Errorf("start %d: %+v", start+1, p)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if p := askGit(t.Context(), s.State); p.Ready {
		t.Error("found a Git server after its end")
	}
	text, err := os.ReadFile(f.Sample())
	if err != nil {
		t.Fatal(err)
	}
	var cr v1alpha1.GitOpsDeployment
	if err := yaml.UnmarshalStrict(text, &cr); err != nil {
		t.Fatal(err)
	}
	if cr.Spec.Source.RepoURL != s.State.GitURL() || cr.Namespace != SampleTenant {
		t.Errorf("the sample is %+v", cr)
	}
}

func TestCopiedKubeconfigStandsOnItsOwn(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "ca.crt"), "a certificate")
	put(t, filepath.Join(dir, "config"), `
apiVersion: v1
kind: Config
current-context: here
contexts:
- {name: here, context: {cluster: c, user: u}}
- {name: elsewhere, context: {cluster: d, user: u}}
clusters:
- {name: c, cluster: {server: "https://c.example.com", certificate-authority: ca.crt}}
- {name: d, cluster: {server: "https://d.example.com"}}
users:
- {name: u, user: {token: secret}}
`)
	to := filepath.Join(t.TempDir(), "kubeconfig")
	if err := copyKubeconfig(filepath.Join(dir, "config"), to); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.LoadFromFile(to)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(config.Clusters["c"].CertificateAuthorityData); got != "a certificate" || len(config.Clusters) != 1 {
		t.Errorf("copied %+v", config.Clusters)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy is %v, %v; want it for its owner alone", info.Mode(), err)
	}

	put(t, filepath.Join(dir, "config"), "apiVersion: v1\nkind: Config\n")
	if err := copyKubeconfig(filepath.Join(dir, "config"), to); err == nil || !strings.Contains(err.Error(), "no current context") {
		t.Errorf("without a context: %v", err)
	}
}

func TestRolesAreSortedFromReadyz(t *testing.T) {
	probes, err := telemetry.ListenProbes(t.Context(), "127.0.0.1:0", nil, []telemetry.Check{
		{Name: "backend: database", Check: func(context.Context) error { return errors.New("gone") }},
		{Name: "agent: database", Check: func(context.Context) error { return nil }},
		{Name: "backend: caches", Check: func(context.Context) error { return nil }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- probes.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-ended
		http.DefaultClient.CloseIdleConnections()
	})
	_, port, _ := strings.Cut(probes.Address(), ":")
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	got := askRoles(t.Context(), State{Ports: Ports{Probes: number}})
	want := []Part{{Name: "agent", Ready: true}, {Name: "backend", Problems: []string{"database: gone"}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}
