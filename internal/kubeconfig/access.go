// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

// ErrStored says that what was stored is not an Access that this package wrote.
var ErrStored = errors.New("stored access to a cluster cannot be read")

// Access is all that is needed to reach a cluster. Printed, logged or marshalled
// it shows the server and which credentials it holds, never the credentials;
// Encode is the way to keep them.
type Access struct {
	// Server is the URL in its one form, without a trailing slash.
	Server string
	// CAData are PEM certificates; none means the system's authorities.
	CAData []byte
	// TLSServerName is the name in the server's certificate, where it is not the
	// host's.
	TLSServerName string
	// Token is a bearer token.
	Token string
	// ClientCert and ClientKey are PEM; both or none.
	ClientCert, ClientKey []byte
	// Insecure means that the server's certificate is not checked.
	Insecure bool
}

// stored is what Encode writes. The order of its fields is the canonical one.
type stored struct {
	Server        string `json:"server"`
	CAData        []byte `json:"caData,omitempty"`
	TLSServerName string `json:"tlsServerName,omitempty"`
	Token         string `json:"token,omitempty"`
	ClientCert    []byte `json:"clientCert,omitempty"`
	ClientKey     []byte `json:"clientKey,omitempty"`
	Insecure      bool   `json:"insecure,omitempty"`
}

// Encode gives the canonical form: the same access is always the same bytes. It
// holds the secrets, and is to be encrypted before it is stored.
func (a Access) Encode() ([]byte, error) { return json.Marshal(stored(a)) }

// Decode reads what Encode wrote, and accepts nothing else: what comes out of
// the database is checked as what went in was.
func Decode(data []byte) (Access, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var s stored
	// The texts of these errors may quote what was stored.
	if decoder.Decode(&s) != nil || !errors.Is(decoder.Decode(new(json.RawMessage)), io.EOF) {
		return Access{}, ErrStored
	}
	a := Access(s)
	if server, err := serverURL(a.Server); err != nil || server != a.Server {
		return Access{}, fmt.Errorf("%w: not a server", ErrStored)
	}
	if a.validate() != nil {
		// Not the refusal itself: the tenant can do nothing about our storage.
		return Access{}, fmt.Errorf("%w: a value is not valid", ErrStored)
	}
	return a, nil
}

// validate checks values, whichever way they came. It tidies the token.
func (a *Access) validate() error {
	const copied = "copy it from a working kubeconfig"
	if a.TLSServerName != "" && tenantnet.CheckHost(a.TLSServerName) != nil {
		return unusable("kubeconfig tls-server-name", "is not a host name", "remove it, or write the name in the server's certificate")
	}
	if a.CAData != nil && !x509.NewCertPool().AppendCertsFromPEM(a.CAData) {
		return unusable("kubeconfig certificate-authority-data", "holds no PEM certificate", copied)
	}
	a.Token = strings.TrimSpace(a.Token)
	if strings.ContainsFunc(a.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return unusable("kubeconfig token", "contains characters that no token has", copied)
	}
	if (a.ClientCert == nil) != (a.ClientKey == nil) {
		return unusable("kubeconfig client-certificate-data", "and client-key-data belong together, and one is missing", "set both or none")
	}
	if a.ClientCert != nil {
		if _, err := tls.X509KeyPair(a.ClientCert, a.ClientKey); err != nil {
			return unusable("kubeconfig client-certificate-data", "and client-key-data are not a PEM certificate and its key", copied)
		}
	}
	if a.Token == "" && a.ClientCert == nil {
		return unusable("kubeconfig token", "is empty", "add the token of a service account")
	}
	return nil
}

// String tells what the access is, without its secrets.
func (a Access) String() string {
	has := []string{}
	for _, part := range []struct {
		name string
		set  bool
	}{{"CA", a.CAData != nil}, {"token", a.Token != ""}, {"client certificate", a.ClientCert != nil}, {"insecure", a.Insecure}} {
		if part.set {
			has = append(has, part.name)
		}
	}
	return fmt.Sprintf("access to %s (%s)", a.Server, strings.Join(has, ", "))
}

// GoString is String.
func (a Access) GoString() string { return a.String() }

// Format is String whatever the verb: %d and %x would print the fields.
func (a Access) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, a.String()) }

// LogValue is String.
func (a Access) LogValue() slog.Value { return slog.StringValue(a.String()) }

// MarshalJSON is String, for loggers that marshal.
func (a Access) MarshalJSON() ([]byte, error) { return json.Marshal(a.String()) }
