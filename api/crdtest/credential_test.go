// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"strings"
	"testing"
)

func TestRepositoryCredentialRepository(t *testing.T) {
	with := func(url any) change { return change{"spec.repository": url} }
	const field = "spec.repository"
	const (
		scheme      = "must begin with https:// or ssh://, or be of the form git@host:path"
		credentials = "put them in the Secret that the field secret names"
		host        = "must name a host after '://', such as git.example.com"
		printable   = "percent-encode any other character"
		noQuery     = "give only the URL that git clones from"
		scp         = "write it as an ssh:// URL instead"
	)
	checkRules(t, credential, []rule{
		{name: "https", change: with("https://git.example.com/team/app.git")},
		{name: "https with port", change: with("https://git.example.com:8443/team/app")},
		{name: "ssh", change: with("ssh://git@git.example.com:2222/team/app.git")},
		{name: "scp-like", change: with("git@git.example.com:team/app.git")},
		{name: "of the greatest length", change: with("https://git.example.com/" + strings.Repeat("a", 2024))},

		{name: "missing", change: with(nil), field: field, remedy: "Required value"},
		{name: "empty", change: with(""), field: field, remedy: "give the URL of a Git repository"},
		{name: "too long", change: with("https://git.example.com/" + strings.Repeat("a", 2025)), field: field, remedy: "may not be more than 2048"},
		{name: "http", change: with("http://git.example.com/app"), field: field, remedy: scheme},
		{name: "file", change: with("file:///etc"), field: field, remedy: scheme},
		{name: "remote helper", change: with("ext::sh"), field: field, remedy: scheme},
		{name: "git protocol", change: with("git://git.example.com/app"), field: field, remedy: scheme},
		{name: "no scheme", change: with("git.example.com/app"), field: field, remedy: scheme},
		{name: "an option", change: with("--upload-pack=id"), field: field, remedy: scheme},
		{name: "an option as the scp-like host", change: with("git@-oProxyCommand=id:app"), field: field, remedy: scp},
		{name: "an option as the scp-like path", change: with("git@git.example.com:-app"), field: field, remedy: scp},
		{name: "an option as the ssh host", change: with("ssh://-oProxyCommand=id/app"), field: field, remedy: host},
		{name: "an option as the ssh user", change: with("ssh://-oX@git.example.com/app"), field: field, remedy: host},
		{name: "no host", change: with("https:///app"), field: field, remedy: host},
		{name: "user and password", change: with("https://me:pa55word@git.example.com/app"), field: field, remedy: credentials},
		{name: "token as user", change: with("https://t0ken@git.example.com/app"), field: field, remedy: credentials},
		{name: "user and password over ssh", change: with("ssh://me:pa55word@git.example.com/app"), field: field, remedy: credentials},
		{name: "user and password scp-like", change: with("me:pa55word@git.example.com:app"), field: field, remedy: credentials},
		{name: "space", change: with("https://git.example.com/an app"), field: field, remedy: printable},
		{name: "newline", change: with("https://git.example.com/app\n"), field: field, remedy: printable},
		{name: "NUL", change: with("https://git.example.com/\x00"), field: field, remedy: printable},
		{name: "backslash", change: with(`https://git.example.com\app`), field: field, remedy: printable},
		{name: "query", change: with("https://git.example.com/app?a=b"), field: field, remedy: noQuery},
		{name: "fragment", change: with("https://git.example.com/app#a"), field: field, remedy: noQuery},
		{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"},
	})
}

func TestRepositoryCredentialSecret(t *testing.T) {
	const remedy = "must be the name of a Secret in this namespace"
	checkRules(t, credential, required(subdomainRules("spec.secret", remedy), remedy))
}
