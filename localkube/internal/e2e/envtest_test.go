// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	ctrl "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/weir-gitops/weir/localkube/internal/nodes"
)

// TestEnvtest runs controller-runtime's envtest on a folder of links, and on
// that API server, which has no scheduler and no other nodes, the simulated
// nodes inside this process.
func TestEnvtest(t *testing.T) {
	links := filepath.Join(t.TempDir(), "assets")
	if code, out := local(t, "links", "--dir", links); code != 0 || !strings.Contains(out, "KUBEBUILDER_ASSETS="+links) {
		t.Fatalf("links: exit code %d: %s", code, out)
	}
	ctrl.SetLogger(logr.Discard()) // it prints a stack trace where nobody has chosen
	began := time.Now()
	env := &envtest.Environment{BinaryAssetsDirectory: links}
	config, err := env.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("envtest started after %s", time.Since(began))
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			if err := env.Stop(); err != nil {
				t.Errorf("envtest does not stop: %v", err)
			}
		}
	}
	defer stop()
	config.QPS = -1
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	version, err := api.Discovery().ServerVersion()
	if err != nil || version.GitVersion != linkedKubernetes(t) {
		t.Errorf("version %v, %v", version, err)
	}
	t.Run("simulated nodes", func(t *testing.T) { testSimulator(t, api) })
	began = time.Now()
	stop()
	t.Logf("envtest stopped after %s", time.Since(began))
}

// testSimulator also shows that the simulator leaves no goroutine behind.
func testSimulator(t *testing.T, api kubernetes.Interface) {
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithCancel(t.Context())
	sim := nodes.New(api, 1, "v0.0.0-test", t.Logf)
	// The namespace of the leases comes a moment after the API server.
	eventually(t, 15*time.Second, sim.Register)
	ended := make(chan error, 1)
	go func() { ended <- sim.Run(ctx) }()

	second := int64(30)
	token := false
	pod := &corev1.Pod{
		ObjectMeta: meta("bound"),
		Spec: corev1.PodSpec{
			NodeName: "localkube-1", TerminationGracePeriodSeconds: &second, AutomountServiceAccountToken: &token,
			Containers: []corev1.Container{{Name: "main", Image: "main:1"}},
		},
	}
	pods := api.CoreV1().Pods("default")
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	took := eventually(t, 10*time.Second, func(ctx context.Context) error {
		got, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if err == nil && got.Status.Phase != corev1.PodRunning {
			err = fmt.Errorf("%w: %s", errNotYet, got.Status.Phase)
		}
		return err
	})
	t.Logf("running after %s", took)
	if err := pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	took = eventually(t, 10*time.Second, func(ctx context.Context) error {
		_, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%w: %v", errNotYet, err)
	})
	t.Logf("removed after %s", took)
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("run: %v", err)
	}
	// The connection to the API server belongs to the client, not to the simulator.
	goleak.VerifyNone(t, before,
		goleak.IgnoreAnyFunction("golang.org/x/net/http2.(*ClientConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"))
}

func TestLinksDoNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "kubectl")
	if err := os.WriteFile(file, []byte("mine"), 0o755); err != nil {
		t.Fatal(err)
	}
	if code, out := local(t, "links", "--dir", dir); code != 1 || !strings.Contains(out, "is not a link") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if readFile(t, file) != "mine" {
		t.Error("the file was overwritten")
	}
}
