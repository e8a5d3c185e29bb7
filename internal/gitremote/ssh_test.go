// SPDX-License-Identifier: Apache-2.0

package gitremote_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/internal/gitremote"
	"github.com/weir-gitops/weir/internal/gitserve"
	"github.com/weir-gitops/weir/internal/testkit/gitssh"
)

// newSSHServer starts a server with one repository, a.git, in its folder.
func newSSHServer(t *testing.T, repository string, accepts ...gitssh.Key) *gitssh.Server {
	t.Helper()
	folder := t.TempDir()
	if _, err := gitserve.Create(t.Context(), filepath.Join(folder, repository), gitserve.Commit{Message: "x", Files: map[string]string{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	return gitssh.Start(t, folder, accepts...)
}

func TestRealGitOverSSH(t *testing.T) {
	keys := map[string]gitssh.Key{}
	var all []gitssh.Key
	for _, kind := range []string{"rsa2048", "rsa4096", "ecdsa", "ed25519"} {
		keys[kind] = gitssh.NewKey(t, kind)
		all = append(all, keys[kind])
	}
	s := newSSHServer(t, "a.git", all...)
	url := "ssh://git@" + s.Address + s.Folder
	for kind, key := range keys {
		if err := check(t, url+"/a.git", gitremote.Credential{SSHPrivateKey: key.Private}, options(t)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(keys["rsa4096"].Raw)
	if err != nil {
		t.Fatal(err)
	}
	inPEM := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
	if err := check(t, url+"/a.git", gitremote.Credential{SSHPrivateKey: inPEM}, options(t)); err != nil {
		t.Errorf("PKCS #8: %v", err)
	}
	good := gitremote.Credential{SSHPrivateKey: keys["ed25519"].Private}
	if err := check(t, url+"/missing.git", good, options(t)); !errors.Is(err, gitremote.ErrNotFound) {
		t.Errorf("no such repository: %v", err)
	}
	if err := check(t, url, good, options(t)); !errors.Is(err, gitremote.ErrNotFound) {
		t.Errorf("a folder that is none: %v", err)
	}
	wrong := gitremote.Credential{SSHPrivateKey: gitssh.NewKey(t, "ed25519").Private}
	if err := check(t, url+"/a.git", wrong, options(t)); !errors.Is(err, gitremote.ErrInvalidCredentials) {
		t.Errorf("another key: %v", err)
	}
	for _, user := range s.Users() {
		if user != "git" {
			t.Errorf("logged in as %q", user)
		}
	}
}

func TestPathsAreQuotedForShells(t *testing.T) {
	key := gitssh.NewKey(t, "ed25519")
	const name = `it's $(touch pwned) !x;touch pwned2 "&.git`
	s := newSSHServer(t, name, key)
	path := s.Folder + "/" + strings.NewReplacer(" ", "%20", `"`, "%22").Replace(name)
	if err := check(t, "ssh://git@"+s.Address+path, gitremote.Credential{SSHPrivateKey: key.Private}, options(t)); err != nil {
		t.Errorf("%v; the server ran %s", err, strings.Join(s.Commands(), "\n"))
	}
	files, err := os.ReadDir(s.Folder)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v (%v)", files, err)
	}
	if want := `git-upload-pack '` + s.Folder + `/it'\''s $(touch pwned) '\!'x;touch pwned2 "&.git'`; strings.Join(s.Commands(), "\n") != want {
		t.Errorf("the server ran\n%s\nwant\n%s", strings.Join(s.Commands(), "\n"), want)
	}
}

func TestHostKeys(t *testing.T) {
	key := gitssh.NewKey(t, "ed25519")
	s := newSSHServer(t, "a.git", key)
	url := "ssh://git@" + s.Address + s.Folder + "/a.git"
	name := knownhosts.Normalize(s.Address)
	ecdsaKey, edKey := s.HostKeys[0].PublicKey(), s.HostKeys[1].PublicKey()
	line := func(host string, key ssh.PublicKey) string { return knownhosts.Line([]string{host}, key) + "\n" }
	// The library's Line puts host names in order first, which patterns would not
	// survive.
	raw := func(patterns string, key ssh.PublicKey) string {
		return patterns + " " + string(ssh.MarshalAuthorizedKey(key))
	}
	other := gitssh.NewKey(t, "ed25519").Signer.PublicKey()
	for what, c := range map[string]struct {
		known string
		want  error
	}{
		"one kind":           {line(s.Address, edKey), nil},
		"the other kind":     {line(s.Address, ecdsaKey), nil},
		"hashed":             {raw(knownhosts.HashHostname(name), edKey), nil},
		"pattern":            {raw("[127.0.0.?]:*", edKey), nil},
		"comments and more":  {"# hosts\n\n" + line("github.com", other) + line(s.Address, edKey), nil},
		"another's key":      {line(s.Address, other), gitremote.ErrHostKey},
		"another kind only":  {line(s.Address, gitssh.NewKey(t, "rsa2048").Signer.PublicKey()), gitremote.ErrHostKey},
		"another host":       {line("github.com", edKey), gitremote.ErrHostKey},
		"another port":       {line("127.0.0.1:22", edKey), gitremote.ErrHostKey},
		"hashed other host":  {raw(knownhosts.HashHostname("github.com"), edKey), gitremote.ErrHostKey},
		"taken out":          {raw("!"+name+",[127.0.0.?]:*", edKey), gitremote.ErrHostKey},
		"revoked":            {line(s.Address, edKey) + "@revoked " + line(s.Address, edKey), gitremote.ErrHostKey},
		"as authority only":  {"@cert-authority " + line(s.Address, edKey), gitremote.ErrHostKey},
		"unreadable":         {s.Address + " ssh-ed25519 " + canary + "\n", gitremote.ErrHostKey},
		"a comment, no host": {"# nothing\n", gitremote.ErrHostKey},
	} {
		o := options(t)
		o.KnownHosts = []byte(c.known)
		if err := check(t, url, gitremote.Credential{SSHPrivateKey: key.Private}, o); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	o := options(t)
	o.AcceptAnyHostKey = false
	before := len(s.Users())
	if err := check(t, url, gitremote.Credential{SSHPrivateKey: key.Private}, o); !errors.Is(err, gitremote.ErrHostKey) || len(s.Users()) != before {
		t.Errorf("nothing known and nothing said: %v", err)
	}
}

func TestKeysThatAreOfNoUse(t *testing.T) {
	key := gitssh.NewKey(t, "ed25519")
	locked, err := ssh.MarshalPrivateKeyWithPassphrase(key.Raw, "", []byte(canary))
	if err != nil {
		t.Fatal(err)
	}
	encode := func(kind string, headers map[string]string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Headers: headers, Bytes: data}))
	}
	for name, c := range map[string]struct{ key, says string }{
		"none":                 {"", "has no sshPrivateKey"},
		"a text":               {canary, "is not in PEM or OpenSSH format"},
		"a public key":         {string(ssh.MarshalAuthorizedKey(key.Signer.PublicKey())), "is not in PEM or OpenSSH format"},
		"broken":               {encode("OPENSSH PRIVATE KEY", nil, []byte(canary)), "cannot be read"},
		"a certificate":        {encode("CERTIFICATE", nil, []byte(canary)), "cannot be read"},
		"locked":               {string(pem.EncodeToMemory(locked)), "is protected by a passphrase"},
		"locked, PKCS #8":      {encode("ENCRYPTED PRIVATE KEY", nil, []byte(canary)), "is protected by a passphrase"},
		"locked, PKCS #1":      {encode("RSA PRIVATE KEY", map[string]string{"Proc-Type": "4,ENCRYPTED", "DEK-Info": "AES-128-CBC,00"}, []byte(canary)), "is protected by a passphrase"},
		"a short RSA key":      {gitssh.NewKey(t, "rsa1024").Private, "is an RSA key of an unusual length"},
		"too long to be a key": {key.Private + strings.Repeat("#", 1<<16), "is not in PEM or OpenSSH format"},
	} {
		err := check(t, "git@git.example:a", gitremote.Credential{Password: canary, SSHPrivateKey: c.key}, options(t))
		if !errors.Is(err, gitremote.ErrInvalidCredentials) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// A server that accepts and never answers, in each of the protocols.
func TestSilentServers(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	key := gitssh.NewKey(t, "ed25519")
	for _, scheme := range []string{"https", "http", "ssh"} {
		url := scheme + "://" + listener.Addr().String() + "/a"
		o := options(t)
		o.Timeout = 100 * time.Millisecond
		began := time.Now()
		err := check(t, url, gitremote.Credential{SSHPrivateKey: key.Private, Username: "me", Password: canary}, o)
		if !errors.Is(err, gitremote.ErrUnreachable) || !strings.Contains(err.Error(), "in time") {
			t.Errorf("%s: %v", scheme, err)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: took %v", scheme, took)
		}
		// The caller's end counts too.
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		o.Timeout = time.Hour
		if err := gitremote.Check(ctx, url, gitremote.Credential{SSHPrivateKey: key.Private}, o); err == nil {
			t.Errorf("%s: no error although nobody waits", scheme)
		}
	}
}

func TestServersThatAreNotSSHOrHaveNoGit(t *testing.T) {
	key := gitssh.NewKey(t, "ed25519")
	credential := gitremote.Credential{SSHPrivateKey: key.Private}
	web := gitServer(t)
	if err := check(t, "ssh://git@"+web.Host+"/a.git", credential, options(t)); !errors.Is(err, gitremote.ErrNotGit) && !errors.Is(err, gitremote.ErrUnreachable) {
		t.Errorf("a web server: %v", err)
	}
	s := newSSHServer(t, "a.git", key)
	t.Setenv("PATH", filepath.Dir(shell(t)))
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	if err := check(t, "ssh://git@"+closed.Addr().String()+"/a", credential, options(t)); !errors.Is(err, gitremote.ErrUnreachable) {
		t.Errorf("nobody there: %v", err)
	}
	if err := check(t, "ssh://git@"+s.Address+s.Folder+"/a.git", credential, options(t)); !errors.Is(err, gitremote.ErrNotGit) {
		t.Errorf("a host without git: %v", err)
	}
}

// shell makes a folder with a shell and without git.
func shell(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sh")
	if err := os.Symlink("/bin/sh", path); err != nil {
		t.Fatal(err)
	}
	return path
}
