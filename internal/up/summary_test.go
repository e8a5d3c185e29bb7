// SPDX-License-Identifier: Apache-2.0

package up

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares a text with a file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("not as in %s (to accept it, run the test with -update):\n%s", file, d)
	}
}

// plain are the words of a user in /home/ann who has built Weir there.
func plain() Words {
	return Words{Weir: "bin/weir", Kubectl: "kubectl", Short: func(path string) string {
		return strings.TrimPrefix(path, "/home/ann/")
	}}
}

func TestSummary(t *testing.T) {
	f := Folder{path: "/home/ann/.weir"}
	own := exampleState()
	given := exampleState()
	given.Cluster.Given, given.Cluster.Localkube = "/etc/cluster/admin.conf", ""
	given.Engine = EngineState{Kind: "argocd", Namespace: "gitops"}
	without := plain()
	without.Kubectl = "bin/localkube kubectl"

	golden(t, "summary-own", Summary(f, own, plain()))
	golden(t, "summary-given", Summary(f, given, plain()))
	golden(t, "summary-without-kubectl", Summary(f, own, without))
}

func TestReportInWords(t *testing.T) {
	started := exampleState().Started
	now := started.Add(83 * time.Second)
	running := Report{
		Folder: "/home/ann/.weir", Running: true, Ready: true, PID: 4711, Version: "v0.1.0", Started: started,
		Parts: []Part{
			{Name: "agent", Ready: true},
			{Name: "localkube", Where: "https://127.0.0.1:21003", Ready: true},
		},
	}
	failing := running
	failing.Parts = []Part{
		{Name: "backend", Problems: []string{"database: gone", "kubernetes: refused"}},
		{Name: "git server", Where: "http://127.0.0.1:21001/sample.git", Ready: true},
	}
	golden(t, "status-ready", running.Text(now, plain()))
	golden(t, "status-failing", failing.Text(now, plain()))
	golden(t, "status-starting", Report{Folder: "/home/ann/.weir", Running: true, PID: 4711}.Text(now, plain()))
	golden(t, "status-down", Report{Folder: "/home/ann/.weir"}.Text(now, plain()))
}

func TestDownCommandNamesAnotherFolder(t *testing.T) {
	for path, want := range map[string]string{
		"/home/ann/.weir": "bin/weir down",
		"/home/ann/try":   "bin/weir down --dir try",
		"/srv/.weir":      "bin/weir down --dir /srv/.weir",
	} {
		if got := plain().Down(Folder{path: path}); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestKubectlIsReplacedWhereMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	s := exampleState()
	s.Cluster.Localkube = filepath.Join(here, "bin", "localkube")
	if got, want := NewWords(s).Kubectl, "bin/localkube kubectl"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
