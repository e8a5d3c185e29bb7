// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"strings"
	"time"
)

// expiry is when the credential ends, or zero where it does not say. Nothing is
// verified: this only saves the tenant from an environment that works today and
// not tomorrow.
func (t *target) expiry() time.Time {
	if len(t.token) > 0 {
		return tokenExpiry(string(t.token))
	}
	block, _ := pem.Decode(t.certificate)
	if block == nil {
		return time.Time{}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter
}

func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Expires == 0 {
		return time.Time{}
	}
	return time.Unix(claims.Expires, 0)
}
