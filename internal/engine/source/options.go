// SPDX-License-Identifier: Apache-2.0

package source

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// Repo is a repository as one project sees it. Printed, it does not show what the
// credential is.
type Repo struct {
	// Project is whose it is. Two projects share nothing.
	Project string
	URL     string
	// Credential is for this URL. Where it comes from and whether it belongs to the
	// URL's host is the caller's to know.
	Credential gitremote.Credential
}

// Limits of what a repository may cost. Zero is the default that is named.
type Limits struct {
	// RepositoryBytes on disk of one clone: 1 GiB.
	RepositoryBytes int64
	// Files and folders in one commit: 100,000.
	Files int
	// FileBytes of one file that is read: 5 MiB. Larger files may be there.
	FileBytes int64
	// ReadBytes of all files that are read at once: 64 MiB.
	ReadBytes int64
	// Timeout of one visit to a server, and of reading a clone: 2 minutes.
	Timeout time.Duration
	// CacheBytes of all clones together: 10 GiB. Those that are in use stay.
	CacheBytes int64
	// ProcessBytes of address space of one git process: 2 GiB.
	ProcessBytes int64
}

func (l Limits) withDefaults() Limits {
	l.RepositoryBytes = orElse(l.RepositoryBytes, 1<<30)
	l.Files = orElse(l.Files, 100_000)
	l.FileBytes = orElse(l.FileBytes, 5<<20)
	l.ReadBytes = orElse(l.ReadBytes, 64<<20)
	l.Timeout = orElse(l.Timeout, 2*time.Minute)
	l.CacheBytes = orElse(l.CacheBytes, 10<<30)
	l.ProcessBytes = orElse(l.ProcessBytes, 2<<30)
	return l
}

func orElse[T int | int64 | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

// Options of a cache.
type Options struct {
	// Folder is where clones are. It belongs to the cache alone.
	Folder string
	// Dialer judges addresses; required.
	Dialer *tenantnet.Dialer
	// AllowHTTP takes http:// repositories: for a laptop.
	AllowHTTP bool
	// CAFile has certificates for https, in place of the system's.
	CAFile string
	// KnownHosts is the content of a known_hosts file, for ssh.
	KnownHosts []byte
	// AcceptAnyHostKey connects to SSH servers without knowing that they are who
	// they say. It counts only where KnownHosts is empty.
	AcceptAnyHostKey bool
	Limits           Limits
	// Runner runs git; nil starts the program.
	Runner Runner
}

func (o Options) check() error {
	switch {
	case o.Dialer == nil:
		return fmt.Errorf("source: no dialer: addresses could not be judged")
	case !filepath.IsAbs(o.Folder):
		return fmt.Errorf("source: folder %q is not an absolute path", o.Folder)
	case strings.ContainsAny(o.Folder, "\"'\\%$\n"):
		// It is written into options of ssh, which expands some of these.
		return fmt.Errorf("source: folder %q has one of \" ' \\ %% $ in its name", o.Folder)
	}
	return nil
}

func (o Options) roots() (*x509.CertPool, error) {
	if o.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(o.CAFile)
	if err != nil {
		return nil, fmt.Errorf("source: certificates: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("source: %s has no certificate", o.CAFile)
	}
	return pool, nil
}

// target is a Repo after its address was understood.
type target struct {
	remote     gitremote.Remote
	credential gitremote.Credential
	// id names the clone: project and address, and nothing else.
	id string
	// access tells callers with different credentials apart, in memory: who has no
	// right to a repository must not get the answer of who has.
	access string
}

func (c *Cache) target(repo Repo) (target, error) {
	var forms []gitremote.Form
	if c.options.AllowHTTP {
		forms = append(forms, gitremote.PlainHTTP)
	}
	remote, err := gitremote.Parse(repo.URL, forms...)
	if err != nil {
		return target{}, err
	}
	t := target{remote: remote, credential: repo.Credential, id: fingerprint(repo.Project, remote.String())}
	t.access = fingerprint(t.id, repo.Credential.Username, repo.Credential.Password, repo.Credential.SSHPrivateKey)
	return t, nil
}

// fingerprint hashes strings so that no two lists of them have the same text.
func fingerprint(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return hex.EncodeToString(h.Sum(nil)[:20])
}
