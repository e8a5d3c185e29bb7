// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
	"github.com/weir-gitops/weir/internal/domain"
)

func TestDesiredApplication(t *testing.T) {
	t.Parallel()
	with := func(change func(*domain.ApplicationSpec)) domain.ApplicationSpec {
		s := wanted("deploy")
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		cr   *v1alpha1.GitOpsDeployment
		want domain.ApplicationSpec
	}{
		"automated":              {deployment("a"), wanted("deploy")},
		"manual":                 {deployment("a", withType(v1alpha1.DeploymentTypeManual)), with(func(s *domain.ApplicationSpec) { s.Automated = false })},
		"no type is manual":      {deployment("a", withType("")), with(func(s *domain.ApplicationSpec) { s.Automated = false })},
		"no revision":            {deployment("a", withRevision("")), with(func(s *domain.ApplicationSpec) { s.TargetRevision = "" })},
		"the whole repository":   {deployment("a", withPath(".")), wanted(".")},
		"path is made canonical": {deployment("a", withPath("./deploy//prod/")), wanted("deploy/prod")},
		"dots within a name":     {deployment("a", withPath("deploy/..prod/v1..2")), wanted("deploy/..prod/v1..2")},
		"sync options":           {deployment("a", withOptions("PruneLast=true", "CreateNamespace=true")), wanted("deploy", "PruneLast=true", "CreateNamespace=true")},
		"own namespace, written": {deployment("a", withDestination("", team)), wanted("deploy")},
		"another environment": {deployment("a", withDestination("prod", "shop")), with(func(s *domain.ApplicationSpec) {
			s.Environment, s.Namespace = "prod", "shop"
		})},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := desiredApplication(c.cr, Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Each refusal names the field at fault and what to write instead, because it
// is all that the tenant gets to see.
func TestRefusedDeployments(t *testing.T) {
	t.Parallel()
	const (
		repoURL   = "spec.source.repoURL"
		path      = "spec.source.path"
		revision  = "spec.source.targetRevision"
		namespace = "spec.destination.namespace"
	)
	for name, c := range map[string]struct {
		cr            *v1alpha1.GitOpsDeployment
		field, saying string
	}{
		"no repository":                {deployment("a", withRepo("")), repoURL, "is empty"},
		"a file":                       {deployment("a", withRepo("file:///etc")), repoURL, "is not a URL"},
		"a file on a host":             {deployment("a", withRepo("file://localhost/etc")), repoURL, "does not begin with https:// or ssh://"},
		"a remote helper":              {deployment("a", withRepo("ext::sh -c touch% /tmp/x")), repoURL, "contains a space or a control character"},
		"a remote helper around a URL": {deployment("a", withRepo("ext::https://git.example.com/x")), repoURL, "is not a URL"},
		"an option":                    {deployment("a", withRepo("-oProxyCommand=touch /tmp/x")), repoURL, "contains a space or a control character"},
		"an option with a value":       {deployment("a", withRepo("--upload-pack=touch")), repoURL, "is not a URL"},
		"git without encryption":       {deployment("a", withRepo("git://git.example.com/x")), repoURL, "does not begin with https:// or ssh://"},
		"ftp":                          {deployment("a", withRepo("ftp://git.example.com/x")), repoURL, "does not begin with https:// or ssh://"},
		"http":                         {deployment("a", withRepo("http://git.example.com/x")), repoURL, "uses http"},
		"http in capitals":             {deployment("a", withRepo("HTTP://git.example.com/x")), repoURL, "uses http"},
		"a local path":                 {deployment("a", withRepo("/srv/git/x")), repoURL, "is not a URL"},
		"a relative path":              {deployment("a", withRepo("../x")), repoURL, "is not a URL"},
		"no host":                      {deployment("a", withRepo("https:///x")), repoURL, "is not a URL"},
		"a control character":          {deployment("a", withRepo("https://git.example.com/x\n")), repoURL, "contains a space or a control character"},

		"empty path":                   {deployment("a", withPath("")), path, "is empty"},
		"root":                         {deployment("a", withPath("/")), path, `is "/"`},
		"absolute":                     {deployment("a", withPath("/deploy")), path, "is absolute"},
		"several slashes":              {deployment("a", withPath("//")), path, "is absolute"},
		"climbing out":                 {deployment("a", withPath("../other")), path, `contains ".."`},
		"climbing out at the end":      {deployment("a", withPath("deploy/..")), path, `contains ".."`},
		"climbing out in the middle":   {deployment("a", withPath("deploy/../../other")), path, `contains ".."`},
		"climbing out behind a dot":    {deployment("a", withPath("./../other")), path, `contains ".."`},
		"nothing but up":               {deployment("a", withPath("..")), path, `contains ".."`},
		"climbing out the Windows way": {deployment("a", withPath(`..\deploy`)), path, "backslash"},
		"an option as path":            {deployment("a", withPath("-oProxyCommand=x")), path, `begins with "-"`},
		"a NUL":                        {deployment("a", withPath("deploy\x00")), path, "control character"},
		"a line break":                 {deployment("a", withPath("deploy\nx")), path, "control character"},

		"an option as host":      {deployment("a", withRepo("ssh://-oProxyCommand=x/path")), repoURL, "is not a URL with a host"},
		"an option as scp host":  {deployment("a", withRepo("git@-oProxyCommand=x:path")), repoURL, "is not a host and a path"},
		"an option as scp path":  {deployment("a", withRepo("git@git.example.com:-x")), repoURL, "is not a host and a path"},
		"a password":             {deployment("a", withRepo("https://user:secret@git.example.com/x")), repoURL, "carries credentials"},
		"a token as the user":    {deployment("a", withRepo("https://secret@git.example.com/x")), repoURL, "carries credentials"},
		"a password over ssh":    {deployment("a", withRepo("ssh://git:secret@git.example.com/x")), repoURL, "carries credentials"},
		"a query":                {deployment("a", withRepo("https://git.example.com/x?ref=main")), repoURL, "query"},
		"a fragment":             {deployment("a", withRepo("https://git.example.com/x#main")), repoURL, "fragment"},
		"a revision as option":   {deployment("a", withRevision("--upload-pack=touch")), revision, "is not the name of one revision"},
		"a range of revisions":   {deployment("a", withRevision("main..next")), revision, "is not the name of one revision"},
		"a revision with spaces": {deployment("a", withRevision("main next")), revision, "is not the name of one revision"},

		"another namespace, no environment":   {deployment("a", withDestination("", "kube-system")), namespace, "is not the namespace of this GitOpsDeployment"},
		"an environment, but no namespace":    {deployment("a", withDestination("prod", "")), namespace, "is empty although"},
		"the first problem is the one to see": {deployment("a", withRepo(""), withPath("/")), repoURL, "is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := desiredApplication(c.cr, Policy{})
			var refusal *domain.Refusal
			if !errors.As(err, &refusal) {
				t.Fatalf("got %v and %+v; want a refusal", err, spec)
			}
			if refusal.Field != c.field || !strings.Contains(refusal.Problem, c.saying) || refusal.Remedy == "" {
				t.Errorf("got %+v; want field %s, a problem with %q, and a remedy", refusal, c.field, c.saying)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the message shows a credential: %v", err)
			}
			if diff := cmp.Diff(domain.ApplicationSpec{}, spec); diff != "" {
				t.Errorf("a refused deployment comes with a spec:\n%s", diff)
			}
		})
	}
}

func TestAcceptedRepositories(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://git.example.com/team/app",
		"https://git.example.com:8443/team/app.git",
		"HTTPS://git.example.com/team/app",
		"ssh://git@git.example.com/team/app",
		"ssh://git@git.example.com:2222/team/app",
		"git@git.example.com:team/app.git",
	} {
		if err := checkRepository(url, Policy{}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// The operator's permission is for http alone.
func TestPlainHTTPIsThePolicysToAllow(t *testing.T) {
	t.Parallel()
	allowed := Policy{AllowPlainHTTP: true}
	if err := checkRepository("http://localhost:3000/x", allowed); err != nil {
		t.Error(err)
	}
	for _, url := range []string{"file:///etc", "git://git.example.com/x", "http:///x", "ext::http://x"} {
		if checkRepository(url, allowed) == nil {
			t.Errorf("%s is accepted where plain HTTP is allowed", url)
		}
	}
}
