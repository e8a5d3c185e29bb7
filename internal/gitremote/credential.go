// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Credential is a user name and a password or token for https, or a private key
// for ssh. Printed, logged or marshalled it shows what it holds, never the values.
type Credential struct {
	Username, Password string
	// SSHPrivateKey is PEM: OpenSSH's own format, PKCS #1, PKCS #8 or SEC 1,
	// without a passphrase.
	SSHPrivateKey string
}

// isEmpty says whether there is nothing to be sent to an https server.
func (c Credential) isEmpty() bool { return c.Username == "" && c.Password == "" }

// String tells what the credential consists of. The user name is left out too:
// with some hosts it is the token.
func (c Credential) String() string {
	switch {
	case c.SSHPrivateKey != "" && !c.isEmpty():
		return "credential (password, SSH key)"
	case c.SSHPrivateKey != "":
		return "credential (SSH key)"
	case !c.isEmpty():
		return "credential (password)"
	}
	return "credential (none)"
}

// GoString is String.
func (c Credential) GoString() string { return c.String() }

// Format is String whatever the verb: %d and %x would print the fields.
func (c Credential) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, c.String()) }

// LogValue is String.
func (c Credential) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalJSON is String, for loggers that marshal.
func (c Credential) MarshalJSON() ([]byte, error) { return json.Marshal(c.String()) }
