// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

func (a *app) newEnv() *cobra.Command {
	c := &cobra.Command{
		Use:     "env",
		Aliases: []string{"environment", "environments"},
		Short:   "Add, list and remove the clusters that you deploy to",
		Args:    cobra.NoArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.newEnvAdd(), a.newList(environments()), a.newRemove(environments(), secretOfEnvironment))
	return c
}

func secretOfEnvironment(o client.Object) string {
	e, ok := o.(*v1alpha1.GitOpsDeploymentManagedEnvironment)
	if !ok {
		return ""
	}
	return e.Spec.CredentialsSecret
}

type envAddCommand struct {
	app                   *app
	connection            connection
	waiting               waiting
	from, context, apiURL string
	secret                string
	namespaces            []string
	createServiceAccount  bool
	clusterResources      bool
	skipTLSVerify         bool
	noAutomated           bool
	dryRun                bool

	out, err io.Writer
}

func (a *app) newEnvAdd() *cobra.Command {
	e := &envAddCommand{app: a}
	c := &cobra.Command{
		Use:   "add NAME --context CONTEXT",
		Short: "Add a cluster to deploy to, from a context of a kubeconfig",
		Long: `Add a cluster to deploy to, from a context of a kubeconfig, or change it.

Of that context Weir gets the server, its CA, and the token or client
certificate: nothing else of your kubeconfig leaves this machine. They are kept
in a Secret beside the environment, in your namespace. The flags say the whole
of the environment: what is left out has its default.

Exit codes: 0 the cluster answered, 1 it cannot be used, 2 wrong usage,
3 no answer within --timeout.`,
		Example: `  weir env add prod --context prod-admin
  weir env add prod --context deployer --from-kubeconfig prod.kubeconfig --namespaces shop,shop-jobs
  weir env add prod --context prod-admin --create-service-account
  weir env add prod --context prod-admin --dry-run`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: e.connection.completeFirst(a, environments()),
		RunE: func(c *cobra.Command, args []string) error {
			e.out, e.err = c.OutOrStdout(), c.ErrOrStderr()
			return e.run(c.Context(), args[0])
		},
	}
	e.connection.addWithContext(c, "tenant-context")
	e.waiting.add(c, "to connect")
	set := c.Flags()
	set.StringVar(&e.context, "context", "", "context that reaches the cluster to add")
	set.StringVar(&e.from, "from-kubeconfig", "", "kubeconfig that has that context; default: your own")
	set.StringVar(&e.apiURL, "api-url", "", "address of the cluster as Weir reaches it; default: that of the context")
	set.StringVar(&e.secret, "secret", "", "name of the Secret to keep the credentials in; default: NAME-access")
	set.StringSliceVar(&e.namespaces, "namespaces", nil, "the only namespaces to look at and deploy to; default: all that the credentials allow")
	set.BoolVar(&e.clusterResources, "cluster-resources", false, "with --namespaces: deploy resources without a namespace as well")
	set.BoolVar(&e.createServiceAccount, "create-service-account", false, "use the credentials only once, to create a service account for Weir")
	set.BoolVar(&e.skipTLSVerify, "skip-tls-verify", false, "do not check the cluster's certificate; whoever sits in between can then read the credentials")
	set.BoolVar(&e.noAutomated, "no-automated", false, "deploy here only by sync runs, never automatically")
	set.BoolVar(&e.dryRun, "dry-run", false, "print what would be written, with the credentials masked, and write nothing")
	_ = c.MarkFlagRequired("context")
	_ = c.MarkFlagFilename("from-kubeconfig")
	_ = c.RegisterFlagCompletionFunc("context", completeContextsOf(e.loadSource))
	for _, name := range []string{"api-url", "secret", "namespaces"} {
		_ = c.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return c
}

// loadSource reads the kubeconfig that has the cluster to add. The loading
// rules make paths in it absolute.
func (e *envAddCommand) loadSource() (*clientcmdapi.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = firstText(e.from, e.connection.kubeconfig)
	config, err := rules.Load()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return config, nil
}

func (e *envAddCommand) run(ctx context.Context, name string) error {
	if e.clusterResources && len(e.namespaces) == 0 {
		return usagef("--cluster-resources has a meaning only with --namespaces: without, resources of the cluster are deployed as far as the credentials allow")
	}
	source, err := e.loadSource()
	if err != nil {
		return err
	}
	t, err := readTarget(source, e.context, e.apiURL, e.skipTLSVerify)
	if err != nil {
		return err
	}
	e.warn(t)
	kubeconfig, err := t.kubeconfig(name)
	if err != nil {
		return err
	}
	secret := &credentialSecret{
		name: firstText(e.secret, name+"-access"), secretType: v1alpha1.ManagedEnvironmentSecretType,
		data: map[string]hidden{v1alpha1.ManagedEnvironmentSecretKubeconfigKey: kubeconfig},
	}
	s, err := e.connection.open(e.app, e.err)
	if err != nil {
		return err
	}
	want := e.environment(s.namespace, name, t.server, secret.name)
	if e.dryRun {
		return printDryRun(e.out, secret.masked(s.namespace), envDocument(want))
	}
	have, err := s.existing(ctx, environments(), name)
	if err != nil {
		return err
	}
	if old, ok := have.(*v1alpha1.GitOpsDeploymentManagedEnvironment); ok {
		changed := old.DeepCopy()
		changed.Spec = want.Spec
		want = changed
	}
	add := &addition{
		app: e.app, session: s, kind: environments(), secret: secret, want: want, have: have,
		answer: func(o client.Object) answer {
			return environmentAnswer(o.(*v1alpha1.GitOpsDeploymentManagedEnvironment))
		},
		conditions: environmentConditions, out: e.out, err: e.err,
	}
	return add.run(ctx, e.waiting)
}

func (e *envAddCommand) environment(namespace, name, server, secret string) *v1alpha1.GitOpsDeploymentManagedEnvironment {
	automated := !e.noAutomated
	return &v1alpha1.GitOpsDeploymentManagedEnvironment{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: environments().name},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GitOpsDeploymentManagedEnvironmentSpec{
			APIURL: server, CredentialsSecret: secret,
			AllowInsecureSkipTLSVerify: e.skipTLSVerify, CreateNewServiceAccount: e.createServiceAccount,
			AllowAutomatedDeployments: &automated, Namespaces: e.namespaces, ClusterResources: e.clusterResources,
		},
	}
}

// document is a resource as --dry-run shows it: without what only the API
// server fills in.
func document(o metav1.Object, kind string, spec any) map[string]any {
	return map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": kind,
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
		"spec":     spec,
	}
}

func envDocument(e *v1alpha1.GitOpsDeploymentManagedEnvironment) map[string]any {
	return document(e, environments().name, e.Spec)
}

// soon is when the end of a credential is worth a word.
const soon = 30 * 24 * time.Hour

func (e *envAddCommand) warn(t *target) {
	if t.local() {
		fmt.Fprintf(e.err, "Note: %s is an address of this machine. Weir looks for it on its own; give one that it can reach with --api-url.\n", t.server)
	}
	if end := t.expiry(); !end.IsZero() && !e.createServiceAccount {
		if left := end.Sub(e.app.now()); left < soon {
			fmt.Fprintf(e.err, "Note: these credentials end in %s, and the environment with them. With --create-service-account they are used only once.\n", duration.HumanDuration(max(0, left)))
		}
	}
}
