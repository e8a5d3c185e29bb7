// SPDX-License-Identifier: Apache-2.0

package gitremote_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/internal/gitremote"
)

const canary = "canary-77b0e2"

func TestParse(t *testing.T) {
	for _, c := range []struct{ in, text, key, address string }{
		{"https://github.com/a/b.git", "https://github.com/a/b.git", "https://github.com/a/b", "github.com:443"},
		{"https://GitHub.com:443/a/b/", "https://github.com/a/b", "https://github.com/a/b", "github.com:443"},
		{"HTTPS://github.com./a/b.git///", "https://github.com/a/b.git", "https://github.com/a/b", "github.com:443"},
		{"https://git.example:8443/A/b", "https://git.example:8443/A/b", "https://git.example:8443/A/b", "git.example:8443"},
		{"https://git.example/a%20b", "https://git.example/a%20b", "https://git.example/a%20b", "git.example:443"},
		{"https://git.example/%61", "https://git.example/a", "https://git.example/a", "git.example:443"},
		{"https://git.example/a/.git", "https://git.example/a/.git", "https://git.example/a/.git", "git.example:443"},
		{"https://[2001:DB8::0:1]/a", "https://[2001:db8::1]/a", "https://[2001:db8::1]/a", "[2001:db8::1]:443"},
		{"ssh://git@github.com/a/b.git", "ssh://git@github.com/a/b.git", "ssh://git@github.com/a/b", "github.com:22"},
		{"ssh://github.com:22/a/b", "ssh://git@github.com/a/b", "ssh://git@github.com/a/b", "github.com:22"},
		{"ssh://deploy@git.example:2222/~me/b", "ssh://deploy@git.example:2222/~me/b", "ssh://deploy@git.example:2222/~me/b", "git.example:2222"},
		{"git@GitHub.com:a/b.git", "git@github.com:a/b.git", "ssh://git@github.com/a/b", "github.com:22"},
		{"git@github.com:/a/b", "git@github.com:/a/b", "ssh://git@github.com/a/b", "github.com:22"},
		{"git@github.com:~me/b", "git@github.com:~me/b", "ssh://git@github.com/~me/b", "github.com:22"},
		{"git@[::1]:a", "git@[::1]:a", "ssh://git@[::1]/a", "[::1]:22"},
	} {
		r, err := gitremote.Parse(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if r.String() != c.text || r.Key() != c.key || r.Address() != c.address {
			t.Errorf("%s: %s, key %s, address %s", c.in, r, r.Key(), r.Address())
		}
	}
	if _, err := gitremote.Parse("http://git.example/a", gitremote.PlainHTTP); err != nil {
		t.Errorf("http where it was asked for: %v", err)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, in := range []string{
		"", "-", "--upload-pack=touch", "-oProxyCommand=touch", "file:///etc/passwd", "/srv/git", "./a", "../a", "a", "git://host/a", "http://host/a", "ftp://host/a", "git+ssh://host/a",
		"ext::sh -c touch", "ext::sh", "fd::17/a", "a::b", "https://user:" + canary + "@host/a", "https://" + canary + "@host/a", "ssh://git:" + canary + "@host/a", "ssh://-oProxyCommand=x@host/a", "ssh://-oProxyCommand=x/a",
		"https://host", "https://host/", "https:///a", "https://host/a?b=" + canary, "https://host/a?", "https://host/a#b", "https://host/a/../b", "https://host/./a", "https://host/a//b", "https://host/a%2fb", "https://host/a%2e%2e/../b",
		"https://host/%2e%2e/b", "https://host/a%00b", "https://host/a%0ab", "https://host/a b", "https://host/a\nb", "https://host/a\u202eb", "https://host/a\\b", "https://host/a%5cb", "https://host/\xff", "https://host/%ff",
		"https://host:0/a", "https://host:65536/a", "https://host:x/a", "https://127.1/a", "https://0x7f.1/a", "https://2130706433/a", "https://[::1/a", "https://[fe80::1%25lo]/a", "https://ho_st:a@/b",
		"git@host", "git@host:", "@host:a", "git@:a", "-git@host:a", "git@-host:a", "git@host:-a", "gi:t@host:a", "host:a", "localhost:8080/a", "git@host:../a", "git@[::1:a", "git@ho'st:a", "g$(x)@host:a", `C:\a`,
		"https://" + strings.Repeat("a", 2100), "https:host/a",
	} {
		r, err := gitremote.Parse(in)
		var e *gitremote.Error
		if !errors.As(err, &e) || !errors.Is(err, gitremote.ErrInvalidURL) {
			t.Errorf("%q: %v (%s), want %v", in, err, r, gitremote.ErrInvalidURL)
			continue
		}
		if strings.Contains(err.Error(), canary) || e.Problem == "" || e.Remedy == "" {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// What is printed is parsed again to the same, and no printed form can be taken
// for an option or hold what was refused.
func TestParseIsStable(t *testing.T) {
	characters := []rune("aA1.-_~/:@%2e[]?#'!$ \\é\x00")
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SampledFrom([]string{"https://", "ssh://", "git@", "https://host/", "git@host:", ""}).Draw(t, "form") +
			rapid.StringOfN(rapid.RuneFrom(characters), 0, 30, -1).Draw(t, "rest")
		r, err := gitremote.Parse(in)
		if err != nil {
			return
		}
		again, err := gitremote.Parse(r.String())
		if err != nil || again != r {
			t.Fatalf("%q is %q, and that is %q (%v)", in, r, again, err)
		}
		fromKey, err := gitremote.Parse(r.Key())
		if err != nil || fromKey.Key() != r.Key() && !strings.HasSuffix(r.Key(), ".git") {
			t.Fatalf("the key %q of %q has the key %q (%v)", r.Key(), in, fromKey.Key(), err)
		}
		if strings.HasPrefix(r.String(), "-") || strings.ContainsAny(r.String(), "\x00\n\\") {
			t.Fatalf("%q is printed as %q", in, r)
		}
	})
}
