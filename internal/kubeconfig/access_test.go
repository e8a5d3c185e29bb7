// SPDX-License-Identifier: Apache-2.0

package kubeconfig_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/internal/domain"
	"github.com/weir-gitops/weir/internal/kubeconfig"
)

type keyPair struct{ cert, key []byte }

// certificate makes a self-signed certificate for a client.
func certificate(t *testing.T) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair{
		cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		key:  pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}),
	}
}

func TestAccessShowsNoSecrets(t *testing.T) {
	a := kubeconfig.Access{Server: apiURL, Token: canary, ClientCert: []byte(canary), ClientKey: []byte(canary), CAData: []byte(canary)}
	var logged bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&logged, nil), slog.NewJSONHandler(&logged, nil)} {
		slog.New(handler).Info("a", "access", a, "pointer", &a, "inside", struct{ A kubeconfig.Access }{a})
	}
	marshalled, err := json.Marshal(map[string]any{"a": a, "p": &a})
	if err != nil {
		t.Fatal(err)
	}
	shown := logged.String() + string(marshalled) + fmt.Errorf("wrapped: %v", a).Error()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%T"} {
		shown += fmt.Sprintf(verb+verb+verb, a, &a, struct{ A kubeconfig.Access }{a})
	}
	for _, secret := range []string{canary, base64.StdEncoding.EncodeToString([]byte(canary)), fmt.Sprintf("%x", canary), fmt.Sprintf("%d", []byte(canary))} {
		if strings.Contains(shown, secret) {
			t.Errorf("%q is shown in %s", secret, shown)
		}
	}
	if want := "access to https://api.example.com:6443 (CA, token, client certificate)"; a.String() != want {
		t.Errorf("got %q, want %q", a, want)
	}
}

func TestEncodeAndDecode(t *testing.T) {
	pair := certificate(t)
	for _, a := range []kubeconfig.Access{
		{Server: apiURL, Token: canary},
		{Server: apiURL, Token: canary, Insecure: true, TLSServerName: "kubernetes"},
		{Server: apiURL, CAData: pair.cert, ClientCert: pair.cert, ClientKey: pair.key},
	} {
		encoded, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := kubeconfig.Decode(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if again, _ := got.Encode(); !bytes.Equal(again, encoded) {
			t.Errorf("%s becomes %s", encoded, again)
		}
	}
	if encoded, _ := (kubeconfig.Access{Server: apiURL, Token: "t"}).Encode(); string(encoded) != `{"server":"https://api.example.com:6443","token":"t"}` {
		t.Errorf("the stored form has changed: %s", encoded)
	}
	for _, bad := range []string{
		"", "null", "[]", `"` + canary + `"`, `{"server":"` + apiURL + `"}`, `{"server":"` + apiURL + `","token":"` + canary + `"}{}`,
		`{"server":"` + apiURL + `","token":"` + canary + `","exec":{}}`, `{"server":"http://a","token":"` + canary + `"}`, `{"server":"` + apiURL + `/","token":"` + canary + `"}`,
		`{"server":"` + apiURL + `","token":"` + canary + `\n"  ,"caData":"AAAA"}`, `{"server":"` + apiURL + `","clientCert":"AAAA"}`, `{"token":"` + canary + `"}`,
	} {
		_, err := kubeconfig.Decode([]byte(bad))
		if !errors.Is(err, kubeconfig.ErrStored) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: %v, want %v", bad, err, kubeconfig.ErrStored)
		}
		if refusal := new(domain.Refusal); errors.As(err, &refusal) {
			t.Errorf("%s: blames the tenant: %v", bad, err)
		}
	}
}
