// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/tenantnet"
	"github.com/weir-gitops/weir/internal/testkit/controlplane"
)

// plane is the test binary's control plane, started by the first that needs it.
var plane struct {
	once    sync.Once
	started *controlplane.Cluster
	err     error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if plane.started != nil {
		if err := plane.started.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop the control plane:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// administrator is the access of a cluster administrator, with a client for it.
func administrator(t *testing.T) (kubeconfig.Access, kubernetes.Interface) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a control plane")
	}
	plane.once.Do(func() { plane.started, plane.err = controlplane.Start(context.WithoutCancel(t.Context())) })
	if plane.err != nil {
		t.Fatal(plane.err)
	}
	config := rest.CopyConfig(plane.started.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		t.Fatal(err)
	}
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig.Access{
		Server: config.Host, CAData: config.CAData, Token: config.BearerToken, ClientCert: config.CertData, ClientKey: config.KeyData,
	}, api
}

// as is the same cluster with another's token.
func as(a kubeconfig.Access, token string) kubeconfig.Access {
	a.Token, a.ClientCert, a.ClientKey = token, nil, nil
	return a
}

func clusters(t *testing.T, p tenantnet.Policy) *Clusters {
	t.Helper()
	d, err := tenantnet.NewDialer(p)
	if err != nil {
		t.Fatal(err)
	}
	return &Clusters{Dialer: d, Timeout: 10 * time.Second}
}

func onLoopback(t *testing.T) *Clusters {
	t.Helper()
	return clusters(t, tenantnet.Policy{AllowLoopback: true, AllowPrivate: true})
}

func namespaces(t *testing.T, api kubernetes.Interface, names ...string) {
	t.Helper()
	for _, name := range names {
		_, err := api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// eventually waits for what the cluster's own controllers and caches bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(60 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("it never came about that %s", what)
		}
	}
}
