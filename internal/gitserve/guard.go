// SPDX-License-Identifier: Apache-2.0

package gitserve

import (
	"net"
	"net/http"
	"path"
	"strings"
)

// The requests of Git's smart protocol.
const (
	advertise   = "/info/refs"
	uploadPack  = "git-upload-pack"
	receivePack = "git-receive-pack"
)

// guard lets through what is Git's smart protocol, and nothing else.
func guard(push bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch service, ok := serviceOf(r); {
		case !isLoopback(hostOf(r.Host)):
			http.Error(w, "this server answers on loopback names only", http.StatusMisdirectedRequest)
		case !ok:
			http.NotFound(w, r)
		case service == receivePack && !push:
			http.Error(w, "this server takes no pushes", http.StatusForbidden)
		default:
			next.ServeHTTP(w, plainBody(r))
		}
	})
}

// serviceOf tells which of Git's two services a request is for; false for any
// other request.
func serviceOf(r *http.Request) (string, bool) {
	p := r.URL.Path
	if path.Clean(p) != p || strings.Contains(p, "/.") {
		return "", false
	}
	var service, repository string
	switch {
	case r.Method == http.MethodGet && strings.HasSuffix(p, advertise):
		repository, service = strings.TrimSuffix(p, advertise), r.URL.Query().Get("service")
	case r.Method == http.MethodPost:
		repository, service = path.Split(p)
		repository = strings.TrimSuffix(repository, "/")
	}
	return service, strings.HasSuffix(repository, ".git") && (service == uploadPack || service == receivePack)
}

// plainBody hides that a body of unknown length came in chunks, which the CGI
// handler refuses although Go has put them together again; git reads such a body
// to its end.
func plainBody(r *http.Request) *http.Request {
	if len(r.TransferEncoding) == 0 {
		return r
	}
	r = r.Clone(r.Context())
	r.TransferEncoding = nil
	return r
}

func hostOf(hostport string) string {
	if host, _, err := net.SplitHostPort(hostport); err == nil {
		return host
	}
	return strings.Trim(hostport, "[]")
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
