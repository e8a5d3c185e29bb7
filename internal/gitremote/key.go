// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/pem"
	"errors"

	"golang.org/x/crypto/ssh"
)

const (
	maxKeyBytes = 64 << 10
	// Below, servers refuse RSA keys or ought to; above, one signature takes
	// seconds of our time, which a tenant could ask for again and again.
	minRSABits, maxRSABits = 2048, 16384
)

// signer reads the private key. Its errors repeat nothing of it.
func (r Remote) signer(c Credential) (ssh.Signer, error) {
	refused := func(problem, remedy string) error {
		return r.fail(ErrInvalidCredentials, "has a credential whose sshPrivateKey "+problem, remedy, nil)
	}
	const whole = "put the whole private key there, from -----BEGIN to END-----"
	if c.SSHPrivateKey == "" {
		return nil, r.fail(ErrInvalidCredentials, "is ssh and the credential has no sshPrivateKey", "set it, or use the https:// URL", nil)
	}
	block, _ := pem.Decode([]byte(c.SSHPrivateKey))
	if block == nil || len(c.SSHPrivateKey) > maxKeyBytes {
		return nil, refused("is not in PEM or OpenSSH format", whole)
	}
	const passphrase = "use a key without one, such as a deploy key made with ssh-keygen -N ''"
	if block.Type == "ENCRYPTED PRIVATE KEY" {
		return nil, refused("is protected by a passphrase", passphrase)
	}
	key, err := ssh.ParseRawPrivateKey([]byte(c.SSHPrivateKey))
	var missing *ssh.PassphraseMissingError
	if errors.As(err, &missing) {
		return nil, refused("is protected by a passphrase", passphrase)
	}
	if err != nil {
		return nil, refused("cannot be read", whole)
	}
	return signerFor(key, refused)
}

func signerFor(key any, refused func(problem, remedy string) error) (ssh.Signer, error) {
	const kinds = "use an ed25519, ECDSA or RSA key"
	switch k := key.(type) {
	case *rsa.PrivateKey:
		if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, refused("is an RSA key of an unusual length", "use one of 2048 to 16384 bits, such as 4096")
		}
	case *ecdsa.PrivateKey, *ed25519.PrivateKey, ed25519.PrivateKey:
	default:
		return nil, refused("is of a kind that is not supported", kinds)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		return nil, refused("is of a kind that is not supported", kinds)
	}
	multi, ok := signer.(ssh.MultiAlgorithmSigner)
	if !ok || signer.PublicKey().Type() != ssh.KeyAlgoRSA {
		return signer, nil
	}
	// RSA signatures with SHA-1 can be forged.
	strong, err := ssh.NewSignerWithAlgorithms(multi, []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256})
	if err != nil {
		return nil, refused("is of a kind that is not supported", kinds)
	}
	return strong, nil
}
