// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	argov1alpha1 "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	crd "github.com/weir-gitops/weir/config/crd"
	"github.com/weir-gitops/weir/config/install"
	"github.com/weir-gitops/weir/internal/kube"
)

func newCRDs() *cobra.Command {
	c := &cobra.Command{
		Use:     "crds",
		GroupID: "operate",
		Short:   "Install or print the resource definitions that Weir needs",
	}
	c.AddCommand(newCRDsInstall(), newCRDsPrint())
	return c
}

// installCRDs installs what is missing and updates what is ours. Argo CD's
// definitions are ours only where nobody else has installed any.
func installCRDs(ctx context.Context, api client.Client) ([]string, error) {
	var names []string
	for _, load := range []func() ([]*apiextensionsv1.CustomResourceDefinition, error){crd.Tenant, crd.Operation, crd.Argo} {
		crds, err := load()
		if err != nil {
			return names, err
		}
		crds = slices.DeleteFunc(crds, func(d *apiextensionsv1.CustomResourceDefinition) bool {
			return foreign(ctx, api, d)
		})
		if err := kube.InstallCRDs(ctx, api, crds); err != nil {
			return names, err
		}
		for _, d := range crds {
			names = append(names, d.Name)
		}
	}
	objects, err := install.Objects()
	if err != nil {
		return names, err
	}
	for _, o := range objects {
		if err := kube.Install(ctx, api, o); err != nil {
			return names, err
		}
		names = append(names, o.GetKind()+" "+o.GetName())
	}
	return names, nil
}

// foreign says whether a definition of the engine's group was installed by
// somebody else, such as Argo CD itself.
func foreign(ctx context.Context, api client.Client, d *apiextensionsv1.CustomResourceDefinition) bool {
	if d.Spec.Group != argov1alpha1.GroupVersion.Group {
		return false
	}
	have := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(ctx, client.ObjectKeyFromObject(d), have); err != nil {
		return false
	}
	return !slices.ContainsFunc(have.ManagedFields, func(m metav1.ManagedFieldsEntry) bool { return m.Manager == kube.FieldOwner })
}

func newCRDsInstall() *cobra.Command {
	var kubeconfig string
	c := &cobra.Command{
		Use:   "install",
		Short: "Install or update the resource definitions in a cluster",
		Long: `Install or update the resource definitions in a cluster, the roles by which
tenants may use them, and the API server's priority and fairness for their
requests.

Those of Argo CD are left alone where they are installed already.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			config, err := kube.LoadConfig(kubeconfig)
			if err != nil {
				return err
			}
			api, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
			if err != nil {
				return fmt.Errorf("connect to Kubernetes: %w", err)
			}
			installed, err := installCRDs(c.Context(), api)
			for _, name := range installed {
				fmt.Fprintln(c.OutOrStdout(), "installed", name)
			}
			return err
		},
	}
	c.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: what kubectl would use")
	return c
}

func newCRDsPrint() *cobra.Command {
	return &cobra.Command{
		Use:   "print",
		Short: "Print the resource definitions as YAML, for kubectl apply or a repository",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := crd.All()
			if err != nil {
				return err
			}
			for _, d := range all {
				text, err := yaml.Marshal(d)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.OutOrStdout(), "---\n%s", text)
			}
			return nil
		},
	}
}
