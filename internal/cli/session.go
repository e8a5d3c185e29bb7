// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1alpha1 "github.com/weir-gitops/weir/api/v1alpha1"
)

// connection is which cluster and namespace to work on, as flags.
type connection struct {
	kubeconfig, context, namespace string
}

// add gives a command the flags, under kubectl's names.
func (c *connection) add(cmd *cobra.Command) { c.addWithContext(cmd, "context") }

// addWithContext is for the command that needs --context for something else.
func (c *connection) addWithContext(cmd *cobra.Command, contextFlag string) {
	set := cmd.Flags()
	set.StringVar(&c.kubeconfig, "kubeconfig", "", "your kubeconfig; default: what kubectl would use")
	set.StringVar(&c.context, contextFlag, "", "context of your kubeconfig to work with; default: its current one")
	set.StringVarP(&c.namespace, "namespace", "n", "", "namespace to work in; default: that of the context")
	_ = cmd.RegisterFlagCompletionFunc(contextFlag, c.completeContexts)
	_ = cmd.RegisterFlagCompletionFunc("namespace", cobra.NoFileCompletions)
	_ = cmd.MarkFlagFilename("kubeconfig")
}

func (c *connection) loader() clientcmd.ClientConfig {
	return loadKubeconfig(c.kubeconfig, c.context, c.namespace)
}

func loadKubeconfig(path, contextName, namespace string) clientcmd.ClientConfig {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{
		CurrentContext: contextName,
		Context:        clientcmdapi.Context{Namespace: namespace},
	})
}

// session is a connection that was opened.
type session struct {
	api       client.WithWatch
	namespace string
	host      string
	program   string
}

var errNoKubeconfig = errors.New("no kubeconfig: give one with --kubeconfig or KUBECONFIG, or put one at ~/.kube/config (the operator of your cluster has it)")

// open connects. The API server's warnings go to warnings.
func (c *connection) open(a *app, warnings io.Writer) (*session, error) {
	loader := c.loader()
	raw, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if _, ok := raw.Contexts[c.context]; c.context != "" && !ok {
		return nil, noContext(&raw, c.context)
	}
	config, err := loader.ClientConfig()
	switch {
	case clientcmd.IsEmptyConfig(err):
		return nil, errNoKubeconfig
	case err != nil:
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	config.UserAgent = "weir-cli"
	config.WarningHandler = rest.NewWarningWriter(plainWriter{warnings}, rest.WarningWriterOptions{Deduplicate: true})
	api, err := client.NewWithWatch(config, client.Options{Scheme: newScheme(), Mapper: newMapper()})
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return &session{api: api, namespace: namespace, host: config.Host, program: a.program}, nil
}

// contexts are the names of the kubeconfig's contexts.
func (c *connection) contexts() []string {
	raw, err := c.loader().RawConfig()
	if err != nil {
		return nil
	}
	return contextNames(&raw)
}

func noContext(config *clientcmdapi.Config, name string) error {
	return fmt.Errorf("the kubeconfig has no context %q: it has %s", name, listed(contextNames(config)))
}

func contextNames(config *clientcmdapi.Config) []string {
	var names []string
	for name := range config.Contexts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// listed writes names for a sentence.
func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	utilruntime.Must(authorizationv1.AddToScheme(s))
	utilruntime.Must(v1alpha1.AddToScheme(s))
	utilruntime.Must(metav1.AddMetaToScheme(s))
	return s
}

// newMapper knows the resources that the commands use, so that none of them is
// asked for: that would cost every command several requests.
func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, k := range kinds() {
		m.AddSpecific(v1alpha1.GroupVersion.WithKind(k.name), v1alpha1.GroupVersion.WithResource(k.resource), v1alpha1.GroupVersion.WithResource(k.resource), meta.RESTScopeNamespace)
	}
	for _, r := range []struct{ kind, resource string }{{"Secret", "secrets"}, {"Event", "events"}} {
		m.AddSpecific(corev1.SchemeGroupVersion.WithKind(r.kind), corev1.SchemeGroupVersion.WithResource(r.resource), corev1.SchemeGroupVersion.WithResource(r.resource), meta.RESTScopeNamespace)
	}
	review := authorizationv1.SchemeGroupVersion.WithResource("selfsubjectaccessreviews")
	m.AddSpecific(authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectAccessReview"), review, review, meta.RESTScopeRoot)
	return m
}
