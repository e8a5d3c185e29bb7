// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestRequestsAreCountedByVerb(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	away := errors.New("connection refused")
	passed := 0
	transport := CountRequests(registry)(roundTripper(func(*http.Request) (*http.Response, error) { passed++; return nil, away }))
	requests := []struct{ method, url string }{
		{http.MethodGet, "/api/v1/namespaces/a"},
		{http.MethodGet, "/api/v1/pods?limit=500&resourceVersion=0"},
		{http.MethodGet, "/api/v1/pods?labelSelector=a"},
		{http.MethodGet, "/api/v1/pods?watch=true&resourceVersion=7"},
		{http.MethodGet, "/api/v1/pods?watch=1"},
		{http.MethodPost, "/api/v1/pods"},
		{http.MethodPut, "/api/v1/pods/a"},
		{http.MethodPatch, "/api/v1/pods/a"},
		{http.MethodPatch, "/api/v1/pods/a?fieldManager=weir"},
		{http.MethodDelete, "/api/v1/pods/a"},
	}
	for _, r := range requests {
		req := httptest.NewRequestWithContext(t.Context(), r.method, r.url, nil)
		//nolint:bodyclose // There is no response.
		if _, err := transport.RoundTrip(req); !errors.Is(err, away) {
			t.Errorf("%s %s: %v; want the answer of what is wrapped", r.method, r.url, err)
		}
	}
	if passed != len(requests) {
		t.Errorf("%d of %d requests went on", passed, len(requests))
	}
	want := map[string]float64{"get": 1, "list": 2, "watch": 2, "create": 1, "update": 1, "patch": 2, "delete": 1}
	if diff := cmp.Diff(want, counted(t, registry)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func counted(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	return out
}
