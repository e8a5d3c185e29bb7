// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"strings"
	"testing"
)

func TestGitOpsDeploymentRepoURL(t *testing.T) {
	with := func(url any) change { return change{"spec.source.repoURL": url} }
	const field = "spec.source.repoURL"
	const (
		scheme      = "must begin with https://, http:// or ssh://"
		credentials = "use a GitOpsDeploymentRepositoryCredential"
		host        = "must name a host after '://', such as git.example.com"
		printable   = "percent-encode any other character"
		noQuery     = "give the revision in targetRevision"
		scp         = "write it as an ssh:// URL instead"
	)
	checkRules(t, deployment, []rule{
		{name: "https", change: with("https://git.example.com/team/app.git")},
		{name: "https with port", change: with("https://git.example.com:8443/team/app")},
		{name: "https with percent-encoding", change: with("https://git.example.com/team/an%20app")},
		{name: "https with @ in the path", change: with("https://git.example.com/team/app@v2")},
		{name: "https on an IPv4 address", change: with("https://192.0.2.1/app")},
		{name: "https on an IPv6 address", change: with("https://[2001:db8::1]:8443/app")},
		{name: "http", change: with("http://127.0.0.1:3000/app.git")},
		{name: "ssh", change: with("ssh://git.example.com/team/app.git")},
		{name: "ssh with user and port", change: with("ssh://git@git.example.com:2222/team/app.git")},
		{name: "ssh on an IPv6 address", change: with("ssh://git@[2001:db8::1]:22/app")},
		{name: "scp-like", change: with("git@git.example.com:team/app.git")},
		{name: "scp-like with another user", change: with("org-123@git.example.com:team/app.git")},
		{name: "scp-like with an absolute path", change: with("git@git.example.com:/srv/app.git")},
		{name: "of the greatest length", change: with("https://git.example.com/" + strings.Repeat("a", 2024))},

		{name: "missing", change: with(nil), field: field, remedy: "Required value"},
		{name: "empty", change: with(""), field: field, remedy: "give the URL of a Git repository"},
		{name: "too long", change: with("https://git.example.com/" + strings.Repeat("a", 2025)), field: field, remedy: "may not be more than 2048"},
		{name: "not text", change: with(int64(7)), field: field, remedy: "must be of type string"},
		{name: "file", change: with("file:///etc"), field: field, remedy: scheme},
		{name: "remote helper", change: with("ext::sh -c id"), field: field, remedy: scheme},
		{name: "git protocol", change: with("git://git.example.com/app"), field: field, remedy: scheme},
		{name: "ftp", change: with("ftp://git.example.com/app"), field: field, remedy: scheme},
		{name: "git+ssh", change: with("git+ssh://git@git.example.com/app"), field: field, remedy: scheme},
		{name: "upper-case scheme", change: with("HTTPS://git.example.com/app"), field: field, remedy: scheme},
		{name: "no scheme", change: with("git.example.com/team/app"), field: field, remedy: scheme},
		{name: "local path", change: with("/srv/git/app.git"), field: field, remedy: scheme},
		{name: "relative path", change: with("../app.git"), field: field, remedy: scheme},
		{name: "one slash", change: with("https:/git.example.com/app"), field: field, remedy: scheme},
		{name: "an option", change: with("--upload-pack=id"), field: field, remedy: scheme},
		{name: "an option before a scheme", change: with("-https://git.example.com/app"), field: field, remedy: scheme},
		{name: "an option as the scp-like user", change: with("-oProxyCommand=id@git.example.com:app"), field: field, remedy: scheme},
		{name: "an option as the scp-like host", change: with("git@-oProxyCommand=id:app"), field: field, remedy: scp},
		{name: "an option as the scp-like path", change: with("git@git.example.com:-app"), field: field, remedy: scp},
		{name: "scp-like without a path", change: with("git@git.example.com:"), field: field, remedy: scp},
		{name: "scp-like on an IPv6 address", change: with("git@[2001:db8::1]:app"), field: field, remedy: scp},
		{name: "an option as the ssh host", change: with("ssh://-oProxyCommand=id/app"), field: field, remedy: host},
		{name: "an option as the ssh user", change: with("ssh://-oProxyCommand=id@git.example.com/app"), field: field, remedy: host},
		{name: "a percent-encoded option as the ssh user", change: with("ssh://%2doProxyCommand@git.example.com/app"), field: field, remedy: host},
		{name: "a percent-encoded host", change: with("https://%2e%2e/app"), field: field, remedy: host},
		{name: "no host", change: with("https:///app"), field: field, remedy: host},
		{name: "no host but a port", change: with("https://:8443/app"), field: field, remedy: host},
		{name: "port not a number", change: with("https://git.example.com:git/app"), field: field, remedy: host},
		{name: "user and password", change: with("https://me:pa55word@git.example.com/app"), field: field, remedy: credentials},
		{name: "token as user", change: with("https://t0ken@git.example.com/app"), field: field, remedy: credentials},
		{name: "password with an @", change: with("https://me:pa55@word@git.example.com/app"), field: field, remedy: credentials},
		{name: "user and password over http", change: with("http://me:pa55word@git.example.com/app"), field: field, remedy: credentials},
		{name: "user and password over ssh", change: with("ssh://me:pa55word@git.example.com/app"), field: field, remedy: credentials},
		{name: "user and password scp-like", change: with("me:pa55word@git.example.com:app"), field: field, remedy: credentials},
		{name: "space", change: with("https://git.example.com/an app"), field: field, remedy: printable},
		{name: "leading space", change: with(" https://git.example.com/app"), field: field, remedy: printable},
		{name: "newline", change: with("https://git.example.com/app\nid"), field: field, remedy: printable},
		{name: "trailing newline", change: with("https://git.example.com/app\n"), field: field, remedy: printable},
		{name: "tab", change: with("https://git.example.com/\tapp"), field: field, remedy: printable},
		{name: "NUL", change: with("https://git.example.com/\x00app"), field: field, remedy: printable},
		{name: "DEL", change: with("https://git.example.com/\x7fapp"), field: field, remedy: printable},
		{name: "no-break space", change: with("https://git.example.com/\u00a0app"), field: field, remedy: printable},
		{name: "letters that look alike", change: with("https://gіt.example.com/app"), field: field, remedy: printable},
		{name: "backslash", change: with(`https://git.example.com\@elsewhere.example.com/app`), field: field, remedy: printable},
		{name: "query", change: with("https://git.example.com/app?ref=main"), field: field, remedy: noQuery},
		{name: "fragment", change: with("https://git.example.com/app#main"), field: field, remedy: noQuery},
	})
}

func TestGitOpsDeploymentPath(t *testing.T) {
	with := func(path any) change { return change{"spec.source.path": path} }
	const field = "spec.source.path"
	checkRules(t, deployment, []rule{
		{name: "a folder", change: with("deploy/prod")},
		{name: "the root", change: with(".")},
		// The service judges these and says so in a condition.
		{name: "empty", change: with("")},
		{name: "slash", change: with("/")},
		{name: "absolute", change: with("/deploy")},
		{name: "climbing out", change: with("../x")},
		{name: "of the greatest length", change: with(strings.Repeat("a", 1024))},

		{name: "missing", change: with(nil), field: field, remedy: "Required value"},
		{name: "too long", change: with(strings.Repeat("a", 1025)), field: field, remedy: "may not be more than 1024"},
		{name: "not text", change: with(true), field: field, remedy: "must be of type string"},
	})
}

func TestGitOpsDeploymentTargetRevision(t *testing.T) {
	checkRules(t, deployment, revisionRules("spec.source.targetRevision"))
}

// revisionRules are the same for each field that holds a Git revision.
func revisionRules(field string) []rule {
	with := func(revision any) change { return change{field: revision} }
	const (
		option  = "must not begin with '-': give a "
		control = "must not contain spaces or control characters: give a "
		span    = "must not contain '..': give one "
	)
	return []rule{
		{name: "missing", change: with(nil)},
		{name: "empty", change: with("")},
		{name: "branch", change: with("main")},
		{name: "branch with slash", change: with("release/1.2")},
		{name: "branch with a letter beyond ASCII", change: with("größer")},
		{name: "tag", change: with("v1.2.3-rc.1+build")},
		{name: "commit", change: with("3b18e512dba79e4c8300dd08aeb37f8e728b8dad")},
		{name: "version range", change: with("1.2.*")},
		{name: "full reference", change: with("refs/heads/main")},
		{name: "of the greatest length", change: with(strings.Repeat("a", 255))},

		{name: "too long", change: with(strings.Repeat("a", 256)), field: field, remedy: "may not be more than 255"},
		{name: "an option", change: with("--upload-pack=id"), field: field, remedy: option},
		{name: "a dash", change: with("-"), field: field, remedy: option},
		{name: "space", change: with("my branch"), field: field, remedy: control},
		{name: "newline", change: with("main\n"), field: field, remedy: control},
		{name: "NUL", change: with("main\x00"), field: field, remedy: control},
		{name: "no-break space", change: with("my\u00a0branch"), field: field, remedy: control},
		{name: "zero-width space", change: with("ma\u200bin"), field: field, remedy: control},
		{name: "right-to-left override", change: with("ma\u202ein"), field: field, remedy: control},
		{name: "range", change: with("main..other"), field: field, remedy: span},
		{name: "climbing out", change: with("refs/../config"), field: field, remedy: span},
	}
}

func TestGitOpsDeploymentDestination(t *testing.T) {
	t.Run("environment", func(t *testing.T) {
		checkRules(t, deployment, optional(subdomainRules("spec.destination.environment",
			"must be the name of a GitOpsDeploymentManagedEnvironment in this namespace")))
	})
	t.Run("namespace", func(t *testing.T) {
		checkRules(t, deployment, optional(labelRules("spec.destination.namespace",
			"must be the name of a namespace")))
	})
}

func TestGitOpsDeploymentType(t *testing.T) {
	with := func(value any) change { return change{"spec.type": value} }
	const field = "spec.type"
	const remedy = `supported values: "automated", "manual"`
	checkRules(t, deployment, []rule{
		{name: "automated", change: with("automated")},
		{name: "manual", change: with("manual")},
		{name: "missing", change: with(nil)},

		{name: "unknown", change: with("sometimes"), field: field, remedy: remedy},
		{name: "empty", change: with(""), field: field, remedy: remedy},
		{name: "upper case", change: with("Automated"), field: field, remedy: remedy},
	})
}

func TestGitOpsDeploymentSyncOptions(t *testing.T) {
	with := func(options ...any) change { return change{"spec.syncPolicy.syncOptions": options} }
	const field = "spec.syncPolicy.syncOptions"
	const remedy = `supported values: "CreateNamespace=true", "CreateNamespace=false"`
	checkRules(t, deployment, []rule{
		{name: "no policy", change: nil},
		{name: "empty policy", change: change{"spec.syncPolicy": map[string]any{}}},
		{name: "empty list", change: with()},
		{name: "create the namespace", change: with("CreateNamespace=true")},
		{name: "do not create the namespace", change: with("CreateNamespace=false")},
		{name: "all that go together", change: with("CreateNamespace=true", "PruneLast=true",
			"ApplyOutOfSyncOnly=true", "ServerSideApply=true", "RespectIgnoreDifferences=true")},

		{name: "unknown", change: with("PruneLast=true", "Frobnicate=true"), field: field + "[1]", remedy: remedy},
		{name: "unsafe", change: with("Replace=true"), field: field + "[0]", remedy: remedy},
		{name: "without a value", change: with("CreateNamespace"), field: field + "[0]", remedy: remedy},
		{name: "empty text", change: with(""), field: field + "[0]", remedy: remedy},
		{name: "twice", change: with("PruneLast=true", "PruneLast=true"), field: field + "[1]", remedy: "Duplicate value"},
		{name: "contradiction", change: with("CreateNamespace=true", "CreateNamespace=false"), field: field, remedy: "keep one of them"},
		{name: "not a list", change: change{field: "PruneLast=true"}, field: field, remedy: "must be of type array"},
	})
}

func TestGitOpsDeploymentShape(t *testing.T) {
	checkRules(t, deployment, []rule{
		{name: "as small as it can be", change: nil},
		{name: "empty destination", change: change{"spec.destination": map[string]any{}}},
		{name: "no spec", change: change{"spec": nil}, field: "spec", remedy: "Required value"},
		{name: "no source", change: change{"spec.source": nil}, field: "spec.source", remedy: "Required value"},
	})
}

func TestGitOpsDeploymentStaysEditable(t *testing.T) {
	u := create(t, deployment(t, nil))
	err := update(t, u, change{
		"spec.source.repoURL":        "git@git.example.com:team/other.git",
		"spec.source.path":           "elsewhere",
		"spec.source.targetRevision": "v2",
		"spec.type":                  "automated",
		"spec.destination.namespace": "other",
	})
	if err != nil {
		t.Errorf("refused: %v", err)
	}
	checkRefused(t, update(t, u, change{"spec.source.repoURL": "file:///etc"}), "spec.source.repoURL", "must begin with https://")
}
