// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/weir-gitops/weir/internal/gitremote"
)

// sshCommand gives what git runs in place of ssh, and writes the files that it
// names. git hands the command to a shell, so each word stands in single quotes;
// the words hold a folder that Options.check accepted, an IP address and a host
// that gitremote accepted, none of which can have a quote in it.
func (c *Cache) sshCommand(t target, addr netip.Addr, home string) (string, error) {
	if t.credential.SSHPrivateKey == "" {
		// ssh would try to log in without.
		return "", t.fail(gitremote.ErrInvalidCredentials, "set it, or use the https:// URL", "is ssh and the credential has no sshPrivateKey")
	}
	identity, known := filepath.Join(home, "identity"), filepath.Join(home, "known_hosts")
	// ssh does not read a key whose last line does not end.
	key := strings.TrimRight(t.credential.SSHPrivateKey, "\r\n") + "\n"
	if err := os.WriteFile(identity, []byte(key), 0o600); err != nil {
		return "", err
	}
	if err := os.WriteFile(known, c.options.KnownHosts, 0o600); err != nil {
		return "", err
	}
	strict := "yes"
	if len(strings.TrimSpace(string(c.options.KnownHosts))) == 0 && c.options.AcceptAnyHostKey {
		strict = "no"
	}
	words := []string{"ssh", "-F", "none"}
	for _, option := range []string{
		// The judged address, under the name by which its key is known.
		"HostName=" + addr.String(),
		"HostKeyAlias=" + knownAs(t.remote),
		"StrictHostKeyChecking=" + strict,
		`UserKnownHostsFile="` + known + `"`,
		"GlobalKnownHostsFile=" + os.DevNull,
		"UpdateHostKeys=no",
		"VerifyHostKeyDNS=no",
		"CheckHostIP=no",
		// This key and no other way to log in.
		`IdentityFile="` + identity + `"`,
		"IdentitiesOnly=yes",
		"IdentityAgent=none",
		"PreferredAuthentications=publickey",
		"BatchMode=yes",
		// Nothing but the one connection.
		"ProxyCommand=none",
		"ProxyJump=none",
		"ControlPath=none",
		"ForwardAgent=no",
		"ForwardX11=no",
		"ClearAllForwardings=yes",
		"PermitLocalCommand=no",
		"EscapeChar=none",
		"LogLevel=QUIET",
		"ConnectTimeout=15",
		"ServerAliveInterval=10",
		"ServerAliveCountMax=2",
	} {
		words = append(words, "-o", "'"+option+"'")
	}
	return strings.Join(words, " "), nil
}

// explain finds out why git failed, without reading what it printed: the server
// is asked once more in a way whose errors are types. Nil means that the server
// answers as it should.
func (c *Cache) explain(ctx context.Context, t target) error {
	return gitremote.Check(ctx, t.remote.String(), t.credential, gitremote.Options{
		Dialer: c.options.Dialer, AllowHTTP: c.options.AllowHTTP, RootCAs: c.roots,
		KnownHosts: c.options.KnownHosts, AcceptAnyHostKey: c.options.AcceptAnyHostKey,
	})
}
