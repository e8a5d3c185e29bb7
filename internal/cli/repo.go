// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

func (a *app) newRepo() *cobra.Command {
	c := &cobra.Command{
		Use:     "repo",
		Aliases: []string{"repository", "credential", "credentials"},
		Short:   "Add, list and remove the credentials of your Git repositories",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newRepoAdd(), a.newList(credentials()), a.newRemove(credentials(), secretOfCredential))
	return c
}

func secretOfCredential(o client.Object) string {
	c, ok := o.(*v1alpha1.GitOpsDeploymentRepositoryCredential)
	if !ok {
		return ""
	}
	return c.Spec.Secret
}

type repoAddCommand struct {
	app          *app
	connection   connection
	waiting      waiting
	name, secret string
	login        login
	dryRun       bool

	out, err io.Writer
}

func (a *app) newRepoAdd() *cobra.Command {
	r := &repoAddCommand{app: a}
	c := &cobra.Command{
		Use:   "add URL",
		Short: "Give the credentials of a private Git repository",
		Long: `Give the credentials of a private Git repository, or change them.

For https:// a user name with a password or token, for ssh:// and git@host:path
a private key. Passwords and tokens are asked for, or read from the standard
input: on a command line, others of this machine could see them. They are kept in
a Secret in your namespace.

Exit codes: 0 the repository answered, 1 they cannot be used, 2 wrong usage,
3 no answer within --timeout.`,
		Example: `  weir repo add https://git.example.com/team/shop.git --username weir
  weir repo add https://git.example.com/team/shop.git --token-stdin < token
  weir repo add git@git.example.com:team/shop.git --ssh-key ~/.ssh/deploy_key`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(c *cobra.Command, args []string) error {
			r.out, r.err = c.OutOrStdout(), c.ErrOrStderr()
			r.login.prompt = &prompter{terminal: a.terminal, in: c.InOrStdin(), out: r.err}
			return r.run(c.Context(), args[0])
		},
	}
	r.connection.add(c)
	r.waiting.add(c, "to read the repository")
	set := c.Flags()
	set.StringVar(&r.name, "name", "", "name of the credential; default: the last part of the URL")
	set.StringVar(&r.secret, "secret", "", "name of the Secret to keep the credentials in; default: NAME-git")
	set.StringVar(&r.login.username, "username", "", "user name; default with a token: git")
	set.BoolVar(&r.login.passwordStdin, "password-stdin", false, "read the password from the standard input")
	set.BoolVar(&r.login.tokenStdin, "token-stdin", false, "read an access token from the standard input")
	set.StringVar(&r.login.sshKey, "ssh-key", "", "file with a private SSH key without a passphrase")
	set.BoolVar(&r.dryRun, "dry-run", false, "print what would be written, with the credentials masked, and write nothing")
	c.MarkFlagsMutuallyExclusive("password-stdin", "token-stdin", "ssh-key")
	c.MarkFlagsMutuallyExclusive("username", "ssh-key")
	_ = c.MarkFlagFilename("ssh-key")
	for _, name := range []string{"name", "secret", "username"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

func (r *repoAddCommand) run(ctx context.Context, repository string) error {
	ssh, err := checkRepository(repository)
	if err != nil {
		return err
	}
	name := firstText(r.name, nameOf(repository))
	if name == "" {
		return usagef("the URL gives no name: choose one with --name")
	}
	s, err := r.connection.open(r.app, r.err)
	if err != nil {
		return err
	}
	data, err := r.login.read(ctx, ssh)
	if err != nil {
		return err
	}
	secret := &credentialSecret{
		name: firstText(r.secret, name+"-git"), secretType: v1alpha1.RepositoryCredentialSecretType, data: data,
		other: []string{v1alpha1.RepositoryCredentialSecretUsernameKey, v1alpha1.RepositoryCredentialSecretPasswordKey, v1alpha1.RepositoryCredentialSecretSSHKeyKey},
	}
	want := &v1alpha1.GitOpsDeploymentRepositoryCredential{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
		Spec:       v1alpha1.GitOpsDeploymentRepositoryCredentialSpec{Repository: repository, Secret: secret.name},
	}
	if r.dryRun {
		return printDryRun(r.out, secret.masked(s.namespace), document(want, credentials().name, want.Spec))
	}
	have, err := s.existing(ctx, credentials(), name)
	if err != nil {
		return err
	}
	if old, ok := have.(*v1alpha1.GitOpsDeploymentRepositoryCredential); ok {
		if repositoryKey(old.Spec.Repository) != repositoryKey(repository) {
			return fmt.Errorf("there is a credential %q already, for %s: choose another name with --name", name, old.Spec.Repository)
		}
		changed := old.DeepCopy()
		changed.Spec = want.Spec
		want = changed
	}
	add := &addition{
		app: r.app, session: s, kind: credentials(), secret: secret, want: want, have: have,
		answer: func(o client.Object) answer {
			return credentialAnswer(o.(*v1alpha1.GitOpsDeploymentRepositoryCredential))
		},
		conditions: credentialConditions, out: r.out, err: r.err,
	}
	return add.run(ctx, r.waiting)
}

// checkRepository says whether the repository is reached by SSH. The rules are
// the API server's; what is checked here is what must not be sent to it, and
// what decides which credentials to ask for.
func checkRepository(repository string) (ssh bool, err error) {
	scheme, rest, isURL := strings.Cut(repository, "://")
	switch {
	case !isURL:
		user, _, found := strings.Cut(repository, ":")
		if !found || !strings.Contains(user, "@") {
			return false, usagef("give the repository as https://HOST/PATH, ssh://HOST/PATH or git@HOST:PATH")
		}
		return true, nil
	case scheme == "http":
		return false, usagef("http:// would show the credentials to everybody on the way: use https://")
	case scheme != "https" && scheme != "ssh":
		return false, usagef("%s:// is not supported: use https://, ssh:// or git@HOST:PATH", plain(scheme))
	}
	authority, _, _ := strings.Cut(rest, "/")
	user, _, found := strings.Cut(authority, "@")
	if found && (scheme == "https" || strings.Contains(user, ":")) {
		return false, usagef("the URL contains credentials: leave out the part before '@'; they are asked for, or read from the standard input")
	}
	return scheme == "ssh", nil
}

// nameOf makes a resource's name of the last part of a repository's URL.
func nameOf(repository string) string {
	if address, err := url.Parse(repository); err == nil && address.Host != "" {
		repository = address.Path
	} else if _, rest, found := strings.Cut(repository, ":"); found {
		repository = rest
	}
	last := strings.TrimSuffix(path.Base(strings.TrimRight(repository, "/")), ".git")
	last = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(last))
	if len(last) > 50 {
		last = last[:50]
	}
	return strings.Trim(last, "-")
}
