// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParseCPU(t *testing.T) {
	const after = " S 1 2 3 0 -1 4194560 1 2 3 4 150 25 0 0 20 0 9 0 100 1 1"
	for _, c := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"plain", "77 (weir)" + after, 1750 * time.Millisecond},
		{"a name made to mislead", "77 (a) S 1 (b)" + after, 1750 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseCPU([]byte(c.stat))
			if err != nil || got != c.want {
				t.Errorf("%v, %v; want %v", got, err, c.want)
			}
		})
	}
	for _, bad := range []string{"", "77 weir S 1", "77 (weir) S 1 2", "77 (weir)" + strings.Replace(after, "150", "x", 1)} {
		if _, err := parseCPU([]byte(bad)); !errors.Is(err, ErrNoProc) {
			t.Errorf("parseCPU(%q): %v, want ErrNoProc", bad, err)
		}
	}
}

func TestParseKilobytes(t *testing.T) {
	status := []byte("Name:\tweir\nVmHWM:\t  2048 kB\nVmRSS:\t  1024 kB\nThreads:\t9\n")
	if got, err := parseKilobytes(status, "VmRSS:"); err != nil || got != 1<<20 {
		t.Errorf("VmRSS: %d, %v", got, err)
	}
	if _, err := parseKilobytes(status, "VmSwap:"); !errors.Is(err, ErrNoProc) {
		t.Errorf("what is not there: %v, want ErrNoProc", err)
	}
}

func TestParseMachineCPU(t *testing.T) {
	// user nice system idle iowait irq softirq steal guest guest_nice
	got, err := parseMachineCPU("cpu  100 1 50 9000 8000 2 3 4 70 80")
	if err != nil || got != 1600*time.Millisecond {
		t.Errorf("%v, %v; want 1.6s", got, err)
	}
	for _, bad := range []string{"", "cpu 1 2", "cpu0 1 2 3 4 5 6 7 8 9", "cpu 1 2 3 x 5 6 7 8 9"} {
		if _, err := parseMachineCPU(bad); !errors.Is(err, ErrNoProc) {
			t.Errorf("parseMachineCPU(%q): %v, want ErrNoProc", bad, err)
		}
	}
}

func TestUsageOfThisProcess(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc on this system")
	}
	u, err := readUsage(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if u.Resident <= 0 || u.Peak < u.Resident {
		t.Errorf("resident %d, at most %d", u.Resident, u.Peak)
	}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct{ method, url, contentType, want string }{
		{"POST", "/apis/managed-gitops.redhat.com/v1alpha1/namespaces/a/gitopsdeployments", "", "POST gitopsdeployments"},
		{"PUT", "/apis/managed-gitops.redhat.com/v1alpha1/namespaces/a/gitopsdeployments/b/status", "", "PUT gitopsdeployments/status"},
		{"DELETE", "/apis/managedgitops.io/v1alpha1/namespaces/argocd/operations/operation-1", "", "DELETE operations"},
		{"DELETE", "/apis/managedgitops.io/v1alpha1/namespaces/argocd/operations", "", "DELETECOLLECTION operations"},
		{"GET", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications?limit=1", "", "LIST applications"},
		{"GET", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a", "", "GET applications"},
		{"GET", "/apis/argoproj.io/v1alpha1/applications?watch=true", "", ""},
		{"PATCH", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a", "application/merge-patch+json", "PATCH applications"},
		{"PATCH", "/apis/argoproj.io/v1alpha1/namespaces/argocd/applications/a", "application/apply-patch+yaml", "APPLY applications"},
		{"GET", "/api/v1/namespaces/a", "", "GET namespaces"},
		{"POST", "/api/v1/namespaces", "", "POST namespaces"},
		{"GET", "/api/v1/namespaces/a/secrets/b", "", "GET secrets"},
		{"GET", "/api/v1/namespaces/a/pods", "", ""},
		{"GET", "/apis/apps/v1/namespaces/a/deployments", "", ""},
		{"GET", "/metrics", "", ""},
		{"GET", "/apis/argoproj.io/v1alpha1", "", ""},
	} {
		t.Run(c.method+" "+c.url, func(t *testing.T) {
			req, err := http.NewRequestWithContext(t.Context(), c.method, "https://127.0.0.1"+c.url, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", c.contentType)
			got, counted := classify(req)
			if !counted {
				got = ""
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestRequestsFromMetrics(t *testing.T) {
	const text = `
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",group="managedgitops.io",resource="operations",subresource="",verb="POST"} 7
apiserver_request_total{code="409",group="managedgitops.io",resource="operations",subresource="",verb="POST"} 1
apiserver_request_total{code="200",group="managedgitops.io",resource="operations",subresource="",verb="WATCH"} 3
apiserver_request_total{code="200",group="managed-gitops.redhat.com",resource="gitopsdeployments",subresource="status",verb="PUT"} 5
apiserver_request_total{code="200",group="coordination.k8s.io",resource="leases",subresource="",verb="PUT"} 99
# TYPE hop histogram
hop_bucket{hop="commit",result="ok",le="+Inf"} 4
hop_sum{hop="commit",result="ok"} 0.5
hop_count{hop="commit",result="ok"} 4
hop_bucket{hop="commit",result="error",le="+Inf"} 1
hop_sum{hop="commit",result="error"} 0.25
hop_count{hop="commit",result="error"} 1
# TYPE go_goroutines gauge
go_goroutines 42
`
	m, err := parseMetrics(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := Counts{"POST operations": 8, "PUT gitopsdeployments/status": 5}
	if diff := cmp.Diff(want, apiServerRequests(m)); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	ours := Counts{"POST operations": 3, "PUT gitopsdeployments/status": 5}
	if diff := cmp.Diff(Counts{"POST operations": 5}, apiServerRequests(m).Less(ours)); diff != "" {
		t.Errorf("without ours (-want +got):\n%s", diff)
	}
	if got := m.Gauge("go_goroutines"); got != 42 {
		t.Errorf("goroutines %v", got)
	}
	hops := m.Histograms("hop", "hop")
	if diff := cmp.Diff(map[string]Mean{"commit": {Count: 5, Seconds: 0.75}}, hops); diff != "" {
		t.Errorf("hops (-want +got):\n%s", diff)
	}
	added := Since(map[string]Mean{"commit": {Count: 3, Seconds: 0.25}}, hops)
	if diff := cmp.Diff(map[string]Mean{"commit": {Count: 2, Seconds: 0.5}}, added); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	if got := Since(hops, hops); len(got) != 0 {
		t.Errorf("nothing was added, but: %v", got)
	}
}

func TestCounts(t *testing.T) {
	c := Counts{"a": 1, "b": 5, "c": 5}
	if diff := cmp.Diff([]string{"b", "c", "a"}, c.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if c.Total() != 11 {
		t.Errorf("total %d", c.Total())
	}
	if diff := cmp.Diff(Counts{"a": 1, "d": -2}, c.Less(Counts{"b": 5, "c": 5, "d": 2})); diff != "" {
		t.Errorf("less (-want +got):\n%s", diff)
	}
}

func TestSightings(t *testing.T) {
	var b Board
	early, late := time.Unix(1, 0), time.Unix(2, 0)
	b.see(ApplicationWith("before anybody asked"), early)
	first := b.Expect(ApplicationWith("a"))
	second := b.Expect(ApplicationGone("a"))
	if first.Seen() {
		t.Error("seen before it was")
	}
	b.see(ApplicationWith("a"), late)
	b.see(ApplicationGone("a"), early)
	b.see(ApplicationWith("a"), time.Unix(9, 0)) // the first counts
	if !first.Seen() {
		t.Error("not seen although it was")
	}
	if last, err := WaitAll(t.Context(), []*Sighting{first, second}); err != nil || !last.Equal(late) {
		t.Errorf("the last was at %v, %v; want %v", last, err, late)
	}
}

func TestAWaitEndsWithItsContextAndSaysWhy(t *testing.T) {
	broken := errors.New("the watch broke")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(broken)
	var b Board
	_, err := b.Expect(ApplicationWith("never")).Wait(ctx)
	var missing *NotSeenError
	if !errors.Is(err, broken) || !errors.As(err, &missing) || missing.Sight != ApplicationWith("never") {
		t.Errorf("got %v", err)
	}
}

func TestProcess(t *testing.T) {
	log := t.TempDir() + "/log"
	p, err := launch("shell", log, "/bin/sh", "-c", "echo ready; exec cat /dev/zero >/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.ended(); err != nil {
		t.Errorf("it should run: %v", err)
	}
	if err := p.stop(10 * time.Second); err != nil {
		t.Errorf("stop: %v", err)
	}
	if err := p.ended(); err == nil {
		t.Error("it should have ended")
	}
	if err := p.stop(time.Second); err != nil {
		t.Errorf("stopping twice: %v", err)
	}
	if _, err := launch("nothing", log, "/nonexistent/program"); err == nil {
		t.Error("a program that is not there was started")
	}
}
