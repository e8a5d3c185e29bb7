// SPDX-License-Identifier: Apache-2.0

package gitremote

import (
	"context"
	"crypto/x509"
	"time"

	"github.com/weir-gitops/weir/internal/tenantnet"
)

const defaultTimeout = 15 * time.Second

// Options of Check.
type Options struct {
	// Dialer connects; required.
	Dialer *tenantnet.Dialer
	// Timeout of the whole check; zero means 15 seconds.
	Timeout time.Duration
	// AllowHTTP takes http:// repositories: for a laptop.
	AllowHTTP bool
	// RootCAs for https, in place of the system's.
	RootCAs *x509.CertPool
	// KnownHosts is the content of a known_hosts file, for ssh.
	KnownHosts []byte
	// AcceptAnyHostKey connects to SSH servers without knowing that they are who
	// they say. It counts only where KnownHosts is empty.
	AcceptAnyHostKey bool
}

// Check proves that a repository answers with a credential. The error is an
// *Error.
func Check(ctx context.Context, repository string, c Credential, o Options) error {
	var forms []Form
	if o.AllowHTTP {
		forms = append(forms, PlainHTTP)
	}
	remote, err := Parse(repository, forms...)
	if err != nil {
		return err
	}
	if o.Timeout <= 0 {
		o.Timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	if remote.scheme == SchemeSSH {
		return remote.checkSSH(ctx, c, o)
	}
	return remote.checkHTTP(ctx, c, o)
}
