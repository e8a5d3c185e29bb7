// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	serviceIP = net.IPv4(10, 96, 0, 1)
	everyCert = []string{"ca", "serving", "admin", "controller-manager", "scheduler", "nodes"}
)

func ensure(t *testing.T, dir string, now time.Time) *Bundle {
	t.Helper()
	b, err := Ensure(dir, serviceIP, now)
	if err != nil {
		t.Fatalf("Ensure: %v", err)
	}
	return b
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFreshFolderIsComplete(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pki")
	b := ensure(t, dir, time.Now())
	if diff := cmp.Diff(everyCert, b.Renewed); diff != "" {
		t.Errorf("issued (-want +got):\n%s", diff)
	}
	for _, p := range []Pair{b.CA, b.Serving, b.Admin, b.ControllerManager, b.Scheduler, b.Nodes} {
		if _, _, ok := readPair(p); !ok {
			t.Errorf("%s and its key are not a pair", p.CertFile)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(e.Name()) == ".key" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %o", e.Name(), info.Mode().Perm())
		}
	}
	if len(entries) != 2*len(everyCert)+2 {
		t.Errorf("%d files, want two for each certificate and two for tokens", len(entries))
	}
}

func TestRenewal(t *testing.T) {
	start := time.Now()
	for _, tc := range []struct {
		name   string
		later  time.Duration
		damage func(t *testing.T, dir string)
		want   []string
	}{
		{name: "the next day keeps everything", later: 24 * time.Hour},
		{name: "just outside the margin keeps everything", later: leafLifetime - leafMargin - time.Hour},
		{name: "inside the margin renews every leaf", later: leafLifetime - leafMargin + time.Hour, want: everyCert[1:]},
		{name: "long after the end renews every leaf", later: 3 * leafLifetime, want: everyCert[1:]},
		{name: "an old authority renews all", later: caLifetime - caMargin + time.Hour, want: everyCert},
		{name: "a lost certificate is issued again", want: []string{"admin"}, damage: func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "admin.crt"))
		}},
		{name: "a certificate with another key is issued again", want: []string{"scheduler"}, damage: func(t *testing.T, dir string) {
			key := read(t, filepath.Join(dir, "nodes.key"))
			if err := os.WriteFile(filepath.Join(dir, "scheduler.key"), []byte(key), 0o600); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a torn file is issued again", want: []string{"serving"}, damage: func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "serving.crt"), 40); err != nil {
				t.Fatal(err)
			}
		}},
		{name: "a lost authority renews all", want: everyCert, damage: func(t *testing.T, dir string) {
			remove(t, filepath.Join(dir, "ca.key"))
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			first := ensure(t, dir, start)
			token := read(t, first.ServiceAccountKey)
			if tc.damage != nil {
				tc.damage(t, dir)
			}
			got := ensure(t, dir, start.Add(tc.later))
			if diff := cmp.Diff(tc.want, got.Renewed); diff != "" {
				t.Errorf("renewed (-want +got):\n%s", diff)
			}
			if read(t, got.ServiceAccountKey) != token {
				t.Error("the service-account key was replaced")
			}
			if again := ensure(t, dir, start.Add(tc.later)); len(again.Renewed) > 0 {
				t.Errorf("a second call renewed %v", again.Renewed)
			}
		})
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}

func TestAnotherServiceAddressRenewsTheServingCertificate(t *testing.T) {
	dir := t.TempDir()
	ensure(t, dir, time.Now())
	b, err := Ensure(dir, net.IPv4(10, 200, 0, 1), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"serving"}, b.Renewed); diff != "" {
		t.Errorf("renewed (-want +got):\n%s", diff)
	}
}

func TestADamagedTokenKeyIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	b := ensure(t, dir, time.Now())
	if err := os.WriteFile(b.ServiceAccountKey, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(dir, serviceIP, time.Now()); !errors.Is(err, ErrTokenKey) {
		t.Errorf("error %v, want ErrTokenKey", err)
	}
	if got := read(t, b.ServiceAccountKey); got != "not a key" {
		t.Error("the damaged key was overwritten")
	}
}

// TestHandshake shows that a server with the serving certificate and a client
// with the admin one accept each other, by every name, and what the server
// learns of the client.
func TestHandshake(t *testing.T) {
	b := ensure(t, t.TempDir(), time.Now())
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(read(t, b.CA.CertFile)))
	load := func(p Pair) []tls.Certificate {
		cert, err := tls.LoadX509KeyPair(p.CertFile, p.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{cert}
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		_, _ = io.WriteString(w, subject.CommonName+"/"+subject.Organization[0])
	}))
	server.TLS = &tls.Config{Certificates: load(b.Serving), ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()

	for _, name := range []string{"127.0.0.1", "::1", "10.96.0.1", "localhost", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: load(b.Admin), ServerName: name}}
		resp, err := (&http.Client{Transport: transport}).Get(server.URL)
		if err != nil {
			t.Errorf("as %s: %v", name, err)
			continue
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		transport.CloseIdleConnections()
		if string(body) != "localkube-admin/system:masters" {
			t.Errorf("the server saw %q", body)
		}
	}
}
