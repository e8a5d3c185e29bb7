// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/weir-gitops/weir/config/crd"
)

// server is the API server of this package, started once by TestMain.
var server struct {
	config *rest.Config
	client client.Client
}

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		fmt.Println("skipping: these tests start an API server, which -short asks not to")
		return
	}
	code, err := runWithServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func runWithServer(run func() int) (code int, err error) {
	assets, err := assetsDirectory()
	if err != nil {
		return 1, err
	}
	crds, err := crd.All()
	if err != nil {
		return 1, err
	}
	// InstallCRDs waits until each definition is established, so a rule that
	// does not compile fails here, with the server's words.
	env := &envtest.Environment{
		BinaryAssetsDirectory: assets,
		CRDInstallOptions:     envtest.CRDInstallOptions{CRDs: crds},
	}
	config, err := env.Start()
	if err != nil {
		return 1, errors.Join(fmt.Errorf("starting the API server: %w", err), env.Stop())
	}
	defer func() { err = errors.Join(err, env.Stop()) }()

	config.QPS, config.Burst = 1000, 1000
	// The tables send text that is wrong on purpose; the server's warnings about
	// it would drown the failures.
	config.WarningHandler = rest.NoWarnings{}
	server.config = config
	if server.client, err = client.New(config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return 1, fmt.Errorf("making a client: %w", err)
	}
	return run(), nil
}

// assetsDirectory finds the folder with etcd and kube-apiserver.
func assetsDirectory() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	// Set but empty means the same to us, but to envtest it means the current folder.
	if err := os.Unsetenv("KUBEBUILDER_ASSETS"); err != nil {
		return "", err
	}
	root, err := repositoryRoot()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(root, "bin", "kubebuilder")
	if _, err := os.Stat(filepath.Join(dir, "kube-apiserver")); err != nil {
		return "", fmt.Errorf("no API server to test on, run make build first (or set KUBEBUILDER_ASSETS): %w", err)
	}
	return dir, nil
}

// repositoryRoot is the nearest folder above this one that holds a go.mod.
func repositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the test's folder")
		}
		dir = parent
	}
}
