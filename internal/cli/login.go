// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// login reads a repository's credentials: from a file, the standard input or a
// person, never from a flag's value.
type login struct {
	username                  string
	passwordStdin, tokenStdin bool
	sshKey                    string
	prompt                    *prompter
}

// defaultTokenUser goes with a token, where Git hosts want some user name and
// take any.
const defaultTokenUser = "git"

// maxCredential is more than any password, token or key has.
const maxCredential = 64 << 10

func (l *login) read(ctx context.Context, ssh bool) (map[string]hidden, error) {
	switch {
	case ssh && l.sshKey == "":
		return nil, usagef("a repository by SSH needs a private key: give its file with --ssh-key")
	case !ssh && l.sshKey != "":
		return nil, usagef("--ssh-key is for ssh:// and git@HOST:PATH: for https:// give --username, and a password or token")
	case ssh:
		return l.readKey()
	case l.tokenStdin || l.passwordStdin:
		return l.readInput()
	case !l.prompt.interactive():
		return nil, usagef("there is nobody to ask for the password: give it with --password-stdin or --token-stdin")
	default:
		return l.ask(ctx)
	}
}

func (l *login) readInput() (map[string]hidden, error) {
	user := l.username
	if user == "" && l.passwordStdin {
		return nil, usagef("--password-stdin needs --username")
	}
	text, err := io.ReadAll(io.LimitReader(l.prompt.in, maxCredential+1))
	if err != nil {
		return nil, fmt.Errorf("read the standard input: %w", err)
	}
	return password(firstText(user, defaultTokenUser), bytes.TrimRight(text, "\r\n"))
}

func (l *login) ask(ctx context.Context) (map[string]hidden, error) {
	user := l.username
	if user == "" {
		var err error
		if user, err = l.prompt.line(ctx, fmt.Sprintf("User name (with a token, Enter for %s): ", defaultTokenUser)); err != nil {
			return nil, err
		}
	}
	text, err := l.prompt.password(ctx, "Password or token (not shown): ")
	if err != nil {
		return nil, err
	}
	return password(firstText(user, defaultTokenUser), text)
}

func password(user string, text []byte) (map[string]hidden, error) {
	switch {
	case len(text) == 0:
		return nil, errors.New("the password or token is empty")
	case len(text) > maxCredential:
		return nil, fmt.Errorf("the password or token is longer than %d bytes", maxCredential)
	case bytes.ContainsAny(text, "\r\n\x00"):
		return nil, errors.New("the password or token has more than one line")
	}
	return map[string]hidden{
		v1alpha1.RepositoryCredentialSecretUsernameKey: hidden(user),
		v1alpha1.RepositoryCredentialSecretPasswordKey: text,
	}, nil
}

func (l *login) readKey() (map[string]hidden, error) {
	file, err := os.Open(l.sshKey)
	if err != nil {
		return nil, fmt.Errorf("--ssh-key: %w", err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxCredential+1))
	if err != nil {
		return nil, fmt.Errorf("--ssh-key: %w", err)
	}
	if err := checkKey(text); err != nil {
		return nil, fmt.Errorf("--ssh-key %s: %w", l.sshKey, err)
	}
	return map[string]hidden{v1alpha1.RepositoryCredentialSecretSSHKeyKey: text}, nil
}

var (
	errNoPrivateKey = errors.New("holds no private key: give the file without .pub, as ssh-keygen made it")
	errPassphrase   = errors.New("is protected by a passphrase, which Weir cannot type: make a key of its own for it, with: ssh-keygen -t ed25519 -N '' -f FILE")
)

// checkKey finds the two mistakes that people make: the public key, and a key
// with a passphrase. Whether the repository takes the key, the service tries.
func checkKey(text []byte) error {
	block, _ := pem.Decode(text)
	switch {
	case len(text) > maxCredential || block == nil || !strings.HasSuffix(block.Type, "PRIVATE KEY"):
		return errNoPrivateKey
	case block.Type == "ENCRYPTED PRIVATE KEY" || strings.Contains(block.Headers["Proc-Type"], "ENCRYPTED"):
		return errPassphrase
	case block.Type == "OPENSSH PRIVATE KEY" && opensshCipher(block.Bytes) != "none":
		return errPassphrase
	}
	return nil
}

// opensshCipher is the cipher that OpenSSH's own format begins with: a magic
// word, then the name as a length of four bytes and that many characters.
func opensshCipher(key []byte) string {
	rest, found := bytes.CutPrefix(key, []byte("openssh-key-v1\x00"))
	if !found || len(rest) < 4 {
		return ""
	}
	length := binary.BigEndian.Uint32(rest)
	if uint64(length) > uint64(len(rest)-4) {
		return ""
	}
	return string(rest[4 : 4+length])
}
