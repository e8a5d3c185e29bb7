// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/weir-gitops/weir/internal/kubeconfig"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

func dialer(t *testing.T, p tenantnet.Policy) *tenantnet.Dialer {
	t.Helper()
	d, err := tenantnet.NewDialer(p)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// cluster plays an API server that asks for client certificates.
func cluster(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// accessTo goes the whole way: from a kubeconfig for the server, through storage.
func accessTo(t *testing.T, server *httptest.Server, user string) kubeconfig.Access {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	data := config("certificate-authority-data: "+base64.StdEncoding.EncodeToString(ca)+"\ntls-server-name: example.com", user)
	access, err := kubeconfig.Sanitise([]byte(strings.Replace(data, apiURL, server.URL, 1)), server.URL, kubeconfig.Options{})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := access.Encode()
	if err != nil {
		t.Fatal(err)
	}
	access, err = kubeconfig.Decode(encoded)
	if err != nil {
		t.Fatal(err)
	}
	return access
}

func fetch(t *testing.T, c *rest.Config, path string) (string, error) {
	t.Helper()
	client, err := rest.HTTPClientFor(c)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	res, err := client.Get(c.Host + path)
	if err != nil {
		return "", err
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

func TestRESTConfigReachesTheCluster(t *testing.T) {
	pair := certificate(t)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "https_proxy"} {
		t.Setenv(name, "http://192.0.2.1:1")
	}
	var certificates []*x509.Certificate
	server := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		certificates = r.TLS.PeerCertificates
		if r.Header.Get("Authorization") != "Bearer "+canary {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"major":"1","gitVersion":"v1.99.0"}`)
	})
	b64 := base64.StdEncoding.EncodeToString
	access := accessTo(t, server, "client-certificate-data: "+b64(pair.cert)+"\nclient-key-data: "+b64(pair.key))
	c := access.RESTConfig(dialer(t, tenantnet.Policy{AllowLoopback: true}), 5*time.Second)
	client, err := discovery.NewDiscoveryClientForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil || version.GitVersion != "v1.99.0" {
		t.Fatalf("got %v, %v", version, err)
	}
	if len(certificates) != 1 {
		t.Errorf("the server saw %d client certificates", len(certificates))
	}
	if c.QPS >= 0 || c.Proxy == nil || c.Timeout != 5*time.Second {
		t.Errorf("QPS %v, proxy nil: %v, timeout %v", c.QPS, c.Proxy == nil, c.Timeout)
	}
}

func TestRESTConfigKeepsToTheDialer(t *testing.T) {
	asked := false
	server := cluster(t, func(http.ResponseWriter, *http.Request) { asked = true })
	c := accessTo(t, server, "").RESTConfig(dialer(t, tenantnet.Policy{}), time.Second)
	if _, err := fetch(t, c, "/version"); !errors.Is(err, tenantnet.ErrDenied) || asked {
		t.Errorf("got %v, asked: %v", err, asked)
	}
}

// client-go adds the token above the transport to every request, redirected or
// not; only not being redirected keeps it here.
func TestTokenFollowsNoRedirect(t *testing.T) {
	seen := make(chan string, 1)
	other := cluster(t, func(_ http.ResponseWriter, r *http.Request) { seen <- r.Header.Get("Authorization") })
	server := cluster(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, http.StatusFound) })
	c := accessTo(t, server, "").RESTConfig(dialer(t, tenantnet.Policy{AllowLoopback: true}), time.Second)
	c.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	if _, err := fetch(t, c, "/version"); !errors.Is(err, tenantnet.ErrRedirect) {
		t.Errorf("got %v, want %v", err, tenantnet.ErrRedirect)
	}
	select {
	case header := <-seen:
		t.Errorf("the other server was asked with %q", header)
	default:
	}
}

func TestAnswersHaveAnEnd(t *testing.T) {
	server := cluster(t, func(w http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 1<<20)
		for sent := 0; sent < 66 && r.Context().Err() == nil; sent++ {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	c := accessTo(t, server, "").RESTConfig(dialer(t, tenantnet.Policy{AllowLoopback: true}), time.Minute)
	if body, err := fetch(t, c, "/api/v1/pods"); !errors.Is(err, tenantnet.ErrTooLarge) {
		t.Errorf("a list of %d bytes: %v, want %v", len(body), err, tenantnet.ErrTooLarge)
	}
	if body, err := fetch(t, c, "/api/v1/pods?watch=true"); err != nil || len(body) != 66<<20 {
		t.Errorf("a watch of %d bytes: %v", len(body), err)
	}
}
