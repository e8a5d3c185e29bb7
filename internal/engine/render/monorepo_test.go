// SPDX-License-Identifier: Apache-2.0

package render

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/engine/source"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// TestMonorepo has many applications in one repository, of all types, from a real
// Git server: a commit that touches one renders one.
func TestMonorepo(t *testing.T) {
	const applications, filesEach = 200, 25
	files := map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": configMap("a")}
	for i := range applications {
		folder := fmt.Sprintf("apps/%03d/", i)
		switch i % 3 {
		case 0:
			files[folder+"kustomization.yaml"] = "resources: [../../base]\nnamePrefix: x-\n"
		case 1:
			files[folder+"Chart.yaml"] = "apiVersion: v2\nname: demo\nversion: 1.0.0\n"
			files[folder+"templates/a.yaml"] = configMap("{{ .Release.Name }}")
		}
		for j := range filesEach {
			files[fmt.Sprintf("%sdata/%02d.yaml", folder, j)] = configMap(fmt.Sprintf("c%d", j))
		}
		files[folder+"top.yaml"] = configMap("top")
	}
	root := t.TempDir()
	repository, err := gitserve.Create(t.Context(), filepath.Join(root, "mono.git"), gitserve.Commit{Message: "x", Files: files})
	if err != nil {
		t.Fatal(err)
	}
	server, err := gitserve.Listen(t.Context(), gitserve.Options{Root: root, Address: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- server.Run(ctx) }()
	defer func() { stop(); <-served }()
	dialer, err := tenantnet.NewDialer(tenantnet.Policy{AllowLoopback: true})
	if err != nil {
		t.Fatal(err)
	}
	clones, err := source.New(t.Context(), source.Options{Folder: t.TempDir(), Dialer: dialer, AllowHTTP: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = clones.Close() }()
	repo := source.Repo{Project: "p", URL: server.URL("mono.git")}
	count := &counter{next: &InProcess{}}
	cache := NewCache(count, 2*applications)
	all := func(want int) {
		t.Helper()
		began, before := time.Now(), count.calls
		commit, err := clones.Resolve(t.Context(), repo, "main")
		if err != nil {
			t.Fatal(err)
		}
		for i := range applications {
			tree, err := clones.Tree(t.Context(), repo, commit)
			if err != nil {
				t.Fatal(err)
			}
			request, err := Gather(t.Context(), tree, Spec{Path: fmt.Sprintf("apps/%03d", i), Name: "app"}, Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cache.Render(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		if rendered := count.calls - before; rendered != want {
			t.Errorf("rendered %d, want %d", rendered, want)
		}
		t.Logf("%d applications, %d rendered: %s", applications, want, time.Since(began).Round(time.Millisecond))
	}
	all(applications)
	all(0)
	for _, step := range []struct {
		file string
		want int
	}{{"README.md", 0}, {"apps/002/top.yaml", 1}, {"apps/001/templates/a.yaml", 1}, {"base/a.yaml", 67}} {
		if _, err := repository.Commit(t.Context(), gitserve.Commit{Message: "x", Files: map[string]string{step.file: configMap("changed")}}); err != nil {
			t.Fatal(err)
		}
		all(step.want)
	}
}
