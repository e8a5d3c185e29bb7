// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// servedGroups are the API groups whose requests are counted, beside some core
// kinds: nobody but the two roles and this process works on them.
func served(group, resource string) bool {
	switch group {
	case "managed-gitops.redhat.com", "managedgitops.io", "argoproj.io":
		return true
	case "":
		return slices.Contains([]string{"namespaces", "secrets", "events"}, resource)
	case "events.k8s.io":
		return true
	}
	return false
}

// requestName is how a kind of request is called here, such as
// "PUT gitopsdeployments/status".
func requestName(verb, resource, subresource string) string {
	name := verb + " " + resource
	if subresource != "" {
		name += "/" + subresource
	}
	return name
}

// APIServerRequests reads from the API server's metrics how often it has been
// asked what. Watches are left out: they are opened once.
func apiServerRequests(m Metrics) Counts {
	counts := make(Counts)
	for _, s := range m["apiserver_request_total"].GetMetric() {
		l := labels(s)
		if l["verb"] == "WATCH" || !served(l["group"], l["resource"]) {
			continue
		}
		counts[requestName(l["verb"], l["resource"], l["subresource"])] += int64(s.GetCounter().GetValue())
	}
	return counts
}

// ownRequests counts what this process asks, as whoever, in the API server's
// words.
type ownRequests struct {
	mu     sync.Mutex
	counts Counts
}

// over counts what goes over a transport. Every client has one of its own.
func (o *ownRequests) over(next http.RoundTripper) http.RoundTripper {
	return counting{o, next}
}

type counting struct {
	own  *ownRequests
	next http.RoundTripper
}

// RoundTrip counts a request and sends it.
func (c counting) RoundTrip(req *http.Request) (*http.Response, error) {
	if name, counted := classify(req); counted {
		c.own.mu.Lock()
		if c.own.counts == nil {
			c.own.counts = make(Counts)
		}
		c.own.counts[name]++
		c.own.mu.Unlock()
	}
	return c.next.RoundTrip(req)
}

func (o *ownRequests) snapshot() Counts {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.counts)
}

// classify names a request as the API server's metrics do; false for a watch and
// for what is not counted.
func classify(req *http.Request) (string, bool) {
	group, rest, ok := cutGroup(strings.Split(strings.Trim(req.URL.Path, "/"), "/"))
	if !ok || req.URL.Query().Has("watch") {
		return "", false
	}
	// namespaces/NAME/RESOURCE… is within a namespace, namespaces/NAME is one.
	if len(rest) > 2 && rest[0] == "namespaces" && rest[2] != "status" && rest[2] != "finalize" {
		rest = rest[2:]
	}
	resource, named, sub := rest[0], len(rest) > 1, ""
	if len(rest) > 2 {
		sub = rest[2]
	}
	verb := req.Method
	switch {
	case verb == http.MethodGet && !named:
		verb = "LIST"
	case verb == http.MethodDelete && !named:
		verb = "DELETECOLLECTION"
	case verb == http.MethodPatch && strings.HasPrefix(req.Header.Get("Content-Type"), "application/apply-patch"):
		verb = "APPLY"
	}
	return requestName(verb, resource, sub), served(group, resource)
}

// cutGroup takes api/v1 or apis/GROUP/VERSION from the front of a path.
func cutGroup(path []string) (group string, rest []string, ok bool) {
	switch {
	case len(path) > 2 && path[0] == "api":
		return "", path[2:], true
	case len(path) > 3 && path[0] == "apis":
		return path[1], path[3:], true
	}
	return "", nil, false
}
