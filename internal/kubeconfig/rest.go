// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"net/http"
	"net/url"
	"time"

	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

// maxAnswer bytes of one answer of a tenant's API server. The client reads an
// answer whole before it looks at it, so a server without end would be our end.
// Kubernetes keeps objects of 1.5 MiB and lists in pages.
const maxAnswer = 64 << 20

// RESTConfig makes the configuration of a client for the cluster. It connects
// through the dialer, with no proxy, and takes nothing from the environment.
//
// The timeout is for each request, watches included; who watches gives zero.
// A client made from the configuration has connections of its own, so the caller
// makes one with rest.HTTPClientFor and shares it between clientsets.
func (a Access) RESTConfig(dialer *tenantnet.Dialer, timeout time.Duration) *rest.Config {
	return &rest.Config{
		Host:        a.Server,
		BearerToken: a.Token,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: a.Insecure, ServerName: a.TLSServerName, CAData: a.CAData,
			CertData: a.ClientCert, KeyData: a.ClientKey,
		},
		UserAgent: "weir",
		Timeout:   timeout,
		Dial:      dialer.DialContext,
		// Nil would mean the environment's.
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		// The token is added above this, to every request, also to one that a
		// redirect made. So there are no redirects; API servers send none.
		WrapTransport: func(next http.RoundTripper) http.RoundTripper {
			return tenantnet.Guard(next, tenantnet.Limits{MaxBody: maxAnswer, Unlimited: isWatch, NoRedirects: true})
		},
		// Fairness is the queue's. A client-side limit would only add a second wait.
		QPS: -1,
		// Warnings are a tenant's text, and would go to our log.
		WarningHandlerWithContext: rest.NoWarnings{},
	}
}

// isWatch says whether an answer is a stream without end.
func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")
	return watch == "true" || watch == "1"
}
