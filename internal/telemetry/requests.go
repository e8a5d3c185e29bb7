// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
)

// CountRequests counts what a role asks of API servers, by verb. It returns
// what rest.Config.Wrap takes.
func CountRequests(r prometheus.Registerer) func(http.RoundTripper) http.RoundTripper {
	count := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_kubernetes_requests_total",
		Help: "Requests to Kubernetes API servers.",
	}, []string{"verb"})
	r.MustRegister(count)
	return func(next http.RoundTripper) http.RoundTripper {
		return counting{next, count}
	}
}

type counting struct {
	next  http.RoundTripper
	count *prometheus.CounterVec
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.count.WithLabelValues(verb(r)).Inc()
	return c.next.RoundTrip(r)
}

// verb names a request as Kubernetes does, as far as its method and query tell.
func verb(r *http.Request) string {
	switch r.Method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	}
	q := r.URL.Query()
	switch {
	case q.Get("watch") == "true" || q.Get("watch") == "1":
		return "watch"
	case q.Has("limit") || q.Has("resourceVersion") || q.Has("labelSelector"):
		return "list"
	}
	return "get"
}
