// SPDX-License-Identifier: Apache-2.0

package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weir-gitops/weir/localkube/internal/atomicfile"
)

const (
	pemCertificate = "CERTIFICATE"
	pemPrivateKey  = "EC PRIVATE KEY"
	pemPublicKey   = "PUBLIC KEY"
)

// ErrTokenKey says that the service-account key exists but cannot be used.
// It is not replaced silently: every token in the cluster hangs on it.
var ErrTokenKey = errors.New("service-account key is damaged")

func pairIn(dir, name string) Pair {
	return Pair{CertFile: filepath.Join(dir, name+".crt"), KeyFile: filepath.Join(dir, name+".key")}
}

// readPair reads a certificate and its key. Anything that is not a complete
// matching pair counts as absent, since issuing it again is always safe.
func readPair(p Pair) (*x509.Certificate, *ecdsa.PrivateKey, bool) {
	certDER, err := readPEM(p.CertFile, pemCertificate)
	if err != nil {
		return nil, nil, false
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, false
	}
	key, err := readKey(p.KeyFile)
	if err != nil || !key.PublicKey.Equal(cert.PublicKey) {
		return nil, nil, false
	}
	return cert, key, true
}

// writePair stores the key first: see the package documentation.
func writePair(p Pair, cert *x509.Certificate, key *ecdsa.PrivateKey) error {
	if err := writeKey(p.KeyFile, key); err != nil {
		return err
	}
	return writePEM(p.CertFile, pemCertificate, cert.Raw, 0o644)
}

// ensureTokenKey keeps an existing service-account key and makes one only
// where there is none. The public file is always derived from the private one.
func ensureTokenKey(keyFile, pubFile string) error {
	key, err := readKey(keyFile)
	switch {
	case errors.Is(err, os.ErrNotExist):
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return fmt.Errorf("service-account key: %w", err)
		}
		if err := writeKey(keyFile, key); err != nil {
			return fmt.Errorf("service-account key: %w", err)
		}
	case err != nil:
		return fmt.Errorf("%w: %s: %w", ErrTokenKey, keyFile, err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("service-account key: %w", err)
	}
	return writePEM(pubFile, pemPublicKey, der, 0o644)
}

func readKey(file string) (*ecdsa.PrivateKey, error) {
	der, err := readPEM(file, pemPrivateKey)
	if err != nil {
		return nil, err
	}
	return x509.ParseECPrivateKey(der)
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(file, pemPrivateKey, der, 0o600)
}

func readPEM(file, kind string) ([]byte, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s block", file, kind)
	}
	return block.Bytes, nil
}

func writePEM(file, kind string, der []byte, mode os.FileMode) error {
	return atomicfile.Write(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), mode)
}
