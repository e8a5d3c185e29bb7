// SPDX-License-Identifier: Apache-2.0

package gitssh

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"testing"

	"golang.org/x/crypto/ssh"
)

// Key is a key in the forms in which tenants and servers have it.
type Key struct {
	Raw crypto.Signer
	// Private is what a tenant puts into a Secret.
	Private string
	Signer  ssh.Signer
}

// NewKey makes a key: ed25519, ecdsa, rsa1024, rsa2048 or rsa4096.
func NewKey(t testing.TB, kind string) Key {
	t.Helper()
	raw, err := map[string]func() (crypto.Signer, error){
		"ed25519": func() (crypto.Signer, error) { _, key, err := ed25519.GenerateKey(rand.Reader); return key, err },
		"ecdsa":   func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
		"rsa1024": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 1024) },
		"rsa2048": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) },
		"rsa4096": func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
	}[kind]()
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(raw, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromSigner(raw)
	if err != nil {
		t.Fatal(err)
	}
	return Key{Raw: raw, Private: string(pem.EncodeToMemory(block)), Signer: signer}
}
