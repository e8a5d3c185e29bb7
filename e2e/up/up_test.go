// SPDX-License-Identifier: Apache-2.0

package up

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/testkit"
	weirup "github.com/weir-gitops/weir/internal/up"
)

const engineNamespace = "argocd"

// One life: up, use, down, up again with everything still there, killed, and
// wiped.
func TestUpAndDown(t *testing.T) {
	m := newMachine(t)
	m.mustFail("bin/weir", "status")

	summary := m.mustRun("bin/weir", "up", "--detach")
	m.mustRun("bin/weir", "status")
	sample := m.readSample()
	app := m.applySample(sample)
	m.awaitHealthy(sample)
	m.tryCommands(summary)

	if second := m.mustRun("bin/weir", "up"); !strings.Contains(second, "already up") || !strings.Contains(second, sample.Spec.Source.RepoURL) {
		t.Errorf("a second up says:\n%s", second)
	}
	m.mustRun("bin/weir", "down")
	m.nothingRuns()

	m.mustRun("bin/weir", "up", "--detach")
	if again := m.readSample(); again.Spec.Source.RepoURL != sample.Spec.Source.RepoURL {
		t.Errorf("the sample repository was at %s and is at %s", sample.Spec.Source.RepoURL, again.Spec.Source.RepoURL)
	}
	if got := m.applications(); len(got) != 1 || got[0] != app {
		t.Errorf("after a restart there are the Applications %v, want %s", got, app)
	}

	report := m.report()
	if err := syscall.Kill(report.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "status notices", func() bool { _, err := m.run("bin/weir", "status"); return err != nil })
	m.mustRun("bin/weir", "down")
	m.nothingRuns()

	m.mustRun("bin/weir", "down", "--wipe", "--yes")
	if _, err := os.Stat(filepath.Join(m.home, ".weir")); !os.IsNotExist(err) {
		t.Errorf("after --wipe: %v", err)
	}
}

// A cluster that was given is used and left running, and its folder is not
// taken for another one's.
func TestGivenCluster(t *testing.T) {
	m := newMachine(t)
	ready := filepath.Join(m.home, "ready")
	cluster := exec.CommandContext(t.Context(), filepath.Join(m.home, "bin", "localkube"),
		"up", "--dir", filepath.Join(m.home, "given"), "--ready-file", ready, "--quiet", "--unsafe-no-fsync")
	cluster.Cancel = func() error { return cluster.Process.Signal(syscall.SIGTERM) }
	if err := cluster.Start(); err != nil {
		t.Fatal(err)
	}
	stopped := false
	stop := func() {
		if !stopped {
			stopped = true
			_ = cluster.Process.Signal(syscall.SIGTERM)
			_ = cluster.Wait()
		}
	}
	t.Cleanup(stop)
	eventually(t, "the given cluster is ready", func() bool { _, err := os.Stat(ready); return err == nil })

	m.mustRun("bin/weir", "up", "--detach", "--kubeconfig", "given/kubeconfig")
	if r := m.report(); len(r.Parts) != 5 || r.Parts[3].Name != "kubernetes" {
		t.Errorf("the status is %+v", r)
	}
	m.applySample(m.readSample())
	if out := m.mustFail("bin/weir", "up", "--kubeconfig", "bin/weir"); !strings.Contains(out, "another cluster") {
		t.Errorf("another cluster meanwhile:\n%s", out)
	}
	m.mustRun("bin/weir", "down")
	if _, err := m.run("bin/localkube", "status", "--dir", "given"); err != nil {
		t.Errorf("the given cluster did not survive: %v", err)
	}
	if out := m.mustFail("bin/weir", "up"); !strings.Contains(out, weirup.ErrOtherCluster.Error()) {
		t.Errorf("the same folder with another cluster:\n%s", out)
	}
	stop()
	m.nothingRuns()
	if out := m.mustFail("bin/weir", "up", "--detach", "--kubeconfig", "given/kubeconfig"); !strings.Contains(out, weirup.ErrNoAnswer.Error()) {
		t.Errorf("a cluster that has gone:\n%s", out)
	}
	m.nothingRuns()
}

func (m *machine) readSample() *v1alpha1.GitOpsDeployment {
	m.t.Helper()
	text, err := os.ReadFile(filepath.Join(m.home, ".weir", "sample.yaml"))
	if err != nil {
		m.t.Fatal(err)
	}
	sample := &v1alpha1.GitOpsDeployment{}
	if err := yaml.UnmarshalStrict(text, sample); err != nil {
		m.t.Fatal(err)
	}
	return sample
}

// applySample creates the sample and measures until its Application exists.
func (m *machine) applySample(sample *v1alpha1.GitOpsDeployment) types.UID {
	m.t.Helper()
	api := m.api()
	apps, err := api.Watch(m.t.Context(), &argov1alpha1.ApplicationList{}, client.InNamespace(engineNamespace))
	if err != nil {
		m.t.Fatal(err)
	}
	defer apps.Stop()
	began := time.Now()
	if err := api.Create(m.t.Context(), sample); err != nil {
		m.t.Fatal(err)
	}
	// It takes some tens of milliseconds; how many is printed, and measured by the
	// benchmark. The limit only ends a test that would wait for ever.
	const limit = testkit.Patience
	select {
	case event := <-apps.ResultChan():
		app, ok := event.Object.(*argov1alpha1.Application)
		if !ok || event.Type != watch.Added {
			m.t.Fatalf("saw %s of %+v", event.Type, event.Object)
		}
		m.t.Logf("sample created → Application exists: %s", time.Since(began).Round(100*time.Microsecond))
		if app.Spec.Source.RepoURL != sample.Spec.Source.RepoURL || len(app.Finalizers) != 1 {
			m.t.Errorf("the Application is %+v", app)
		}
		return app.UID
	case <-time.After(limit):
		m.t.Fatalf("no Application within %s", limit)
		return ""
	}
}

// awaitHealthy waits until the sample is deployed, all the way from Git to the
// cluster and back to its status.
func (m *machine) awaitHealthy(sample *v1alpha1.GitOpsDeployment) {
	m.t.Helper()
	testkit.Eventually(m.t, "the sample is deployed", func() string {
		latest := &v1alpha1.GitOpsDeployment{}
		if err := m.api().Get(m.t.Context(), client.ObjectKeyFromObject(sample), latest); err != nil {
			return err.Error()
		}
		if latest.Status.Sync.Status != v1alpha1.SyncSynced || latest.Status.Health.Status != v1alpha1.HealthHealthy {
			return fmt.Sprintf("%+v", latest.Status)
		}
		return ""
	})
}

func (m *machine) applications() []types.UID {
	m.t.Helper()
	var list argov1alpha1.ApplicationList
	if err := m.api().List(m.t.Context(), &list, client.InNamespace(engineNamespace)); err != nil {
		m.t.Fatal(err)
	}
	var all []types.UID
	for _, app := range list.Items {
		all = append(all, app.UID)
	}
	return all
}

// tryCommands runs what the summary says one could try.
func (m *machine) tryCommands(summary string) {
	m.t.Helper()
	_, after, found := strings.Cut(summary, "\nTry:\n")
	lines := strings.Split(after, "\n")
	if !found || len(lines) < 3 {
		m.t.Fatalf("the summary has no three commands:\n%s", summary)
	}
	for i, want := range []string{"gitopsdeployment.managed-gitops.redhat.com/sample", "sample", "gitopsdepl-"} {
		out := m.mustRun(strings.Fields(lines[i])...)
		if !strings.Contains(out, want) {
			m.t.Errorf("%s\nprints no %q:\n%s", lines[i], want, out)
		}
	}
}

func (m *machine) report() weirup.Report {
	m.t.Helper()
	var r weirup.Report
	if err := json.Unmarshal([]byte(m.mustRun("bin/weir", "status", "--output=json")), &r); err != nil {
		m.t.Fatal(err)
	}
	return r
}

func (m *machine) nothingRuns() {
	m.t.Helper()
	m.mustFail("bin/weir", "status")
	if left := m.processes(); len(left) > 0 {
		m.t.Errorf("processes are left: %v", left)
	}
}
