// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
)

const kubeconfig = `apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://cluster.example.com"}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
users: [{name: u, user: {token: t}}]
current-context: x
`

func TestLoadConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ flag, variable string }{
		"by flag":                      {file, ""},
		"by variable":                  {"", file},
		"the flag before the variable": {file, filepath.Join(t.TempDir(), "absent")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", c.variable)
			config, err := LoadConfig(c.flag)
			if err != nil {
				t.Fatal(err)
			}
			if config.Host != "https://cluster.example.com" || config.BearerToken != "t" || config.QPS >= 0 || config.UserAgent != "weir" {
				t.Errorf("got %+v; want the cluster, without a throttle, under our name", config)
			}
		})
	}
}

func TestLoadConfigWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "absent"))
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := LoadConfig(""); err == nil || !strings.Contains(err.Error(), "--kubeconfig") {
		t.Errorf("got %v; want an error that says what to set", err)
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "absent")); err == nil || !strings.Contains(err.Error(), "absent") {
		t.Errorf("got %v; want an error that names the file", err)
	}
}

func TestForServiceLeavesTheOriginalAlone(t *testing.T) {
	t.Parallel()
	original := &rest.Config{QPS: 5, UserAgent: "other"}
	if got := ForService(original); got == original || got.QPS != -1 {
		t.Errorf("got %+v", got)
	}
	if original.QPS != 5 || original.UserAgent != "other" {
		t.Errorf("the original became %+v", original)
	}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusOK)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/readyz" || r.Header.Get("Authorization") != "Bearer t" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		w.WriteHeader(int(status.Load()))
	}))
	ask := Answers(&rest.Config{Host: server.URL + "/", BearerToken: "t"})
	if err := ask(t.Context()); err != nil {
		t.Errorf("a server that is ready: %v", err)
	}
	status.Store(http.StatusInternalServerError)
	if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "500") {
		t.Errorf("a server that is not ready: %v", err)
	}
	if err := Answers(&rest.Config{Host: server.URL, BearerToken: "wrong"})(t.Context()); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a server that does not let us in: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if ask(ended) == nil {
		t.Error("asked although the time is over")
	}
	server.Close()
	if ask(t.Context()) == nil {
		t.Error("a server that is away answers")
	}
}
