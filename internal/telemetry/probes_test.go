// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
)

func answers(name string, err error) Check {
	return Check{Name: name, Check: func(context.Context) error { return err }}
}

func TestReadyzNamesWhatIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		checks []Check
		status int
		want   Readiness
	}{
		"nothing to ask": {nil, http.StatusOK, Readiness{Ready: true, Dependencies: map[string]string{}}},
		"all there": {
			[]Check{answers("database", nil), answers("kubernetes", nil)},
			http.StatusOK,
			Readiness{Ready: true, Dependencies: map[string]string{"database": "ok", "kubernetes": "ok"}},
		},
		"one away": {
			[]Check{answers("database", errors.New("connection refused")), answers("kubernetes", nil)},
			http.StatusServiceUnavailable,
			Readiness{Dependencies: map[string]string{"database": "connection refused", "kubernetes": "ok"}},
		},
		"all away": {
			[]Check{answers("database", errors.New("a")), answers("kubernetes", errors.New("b"))},
			http.StatusServiceUnavailable,
			Readiness{Dependencies: map[string]string{"database": "a", "kubernetes": "b"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			readyz(c.checks).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
			if w.Code != c.status {
				t.Errorf("status %d; want %d", w.Code, c.status)
			}
			if kind := w.Header().Get("Content-Type"); kind != "application/json" {
				t.Errorf("content type %s", kind)
			}
			var got Readiness
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A dependency that does not answer holds up neither the probe nor the others.
func TestADependencyThatHangsIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hangs := func(name string) Check {
			return Check{Name: name, Check: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		}
		start := time.Now()
		got := Ask(t.Context(), []Check{hangs("database"), hangs("notifications"), answers("kubernetes", nil)})
		if took := time.Since(start); took != checkTimeout {
			t.Errorf("took %s; want %s, because checks run side by side", took, checkTimeout)
		}
		late := context.DeadlineExceeded.Error()
		want := Readiness{Dependencies: map[string]string{"database": late, "notifications": late, "kubernetes": "ok"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

func TestProbesServeUntilTheContextEnds(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	registry := prometheus.NewPedanticRegistry()
	if err := NewHops(registry).Time(HopIntake, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	p, err := ListenProbes(t.Context(), "127.0.0.1:0", registry, []Check{answers("database", errors.New("away"))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()

	// A connection that is kept open must not keep the server from stopping.
	browser := &http.Client{Transport: &http.Transport{}}
	defer browser.CloseIdleConnections()
	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"/healthz": {http.StatusOK, "ok"},
		"/readyz":  {http.StatusServiceUnavailable, `"database":"away"`},
		"/metrics": {http.StatusOK, `weir_hop_duration_seconds_count{hop="intake",result="ok"} 1`},
		"/":        {http.StatusNotFound, ""},
	} {
		status, text := get(t, browser, "http://"+p.Address()+path)
		if status != want.status || !strings.Contains(text, want.text) {
			t.Errorf("%s answers %d %s; want %d and %q", path, status, text, want.status, want.text)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run ends with %v", err)
	}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestAPortThatIsTakenNamesTheFlag(t *testing.T) {
	t.Parallel()
	first, err := ListenProbes(t.Context(), "127.0.0.1:0", prometheus.NewPedanticRegistry(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.listener.Close() }()
	_, err = ListenProbes(t.Context(), first.Address(), prometheus.NewPedanticRegistry(), nil)
	if err == nil || !strings.Contains(err.Error(), "--probe-address "+first.Address()) {
		t.Errorf("got %v; want an error that names the flag", err)
	}
}
