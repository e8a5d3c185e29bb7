// SPDX-License-Identifier: Apache-2.0

package up

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-gitops/weir/internal/kube"
)

var (
	// ErrNoAnswer says that the named cluster is not there or does not let us in.
	ErrNoAnswer = errors.New("the cluster does not answer as it should")
	// ErrOtherCluster says that the folder's database belongs to another cluster.
	ErrOtherCluster = errors.New("the folder was used with another cluster")
)

// answerWithin is how long a cluster has for its first answer.
const answerWithin = 10 * time.Second

// Cluster is the cluster that is worked with: a control plane of our own, or
// one that was named.
type Cluster struct {
	Config *rest.Config
	State  ClusterState
	own    *localkube
}

// OpenCluster connects to the cluster of a kubeconfig, or starts one where none
// is named. Afterwards the folder's kubeconfig leads to it.
func OpenCluster(ctx context.Context, f Folder, kubeconfig, localkube string, say *Progress) (*Cluster, error) {
	c := &Cluster{State: ClusterState{Given: kubeconfig, Localkube: localkube}}
	if err := c.open(ctx, f, say); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) open(ctx context.Context, f Folder, say *Progress) (err error) {
	source := c.State.Given
	if source == "" {
		say.Say("Starting Kubernetes: %s, data in %s", Short(c.State.Localkube), Short(f.cluster()))
		if c.own, err = startLocalkube(ctx, f, c.State.Localkube, say); err != nil {
			return err
		}
		source = filepath.Join(f.cluster(), "kubeconfig")
	}
	if err := copyKubeconfig(source, f.Kubeconfig()); err != nil {
		return err
	}
	if c.Config, err = kube.LoadConfig(f.Kubeconfig()); err != nil {
		return err
	}
	if err := c.identify(ctx); err != nil {
		return err
	}
	say.Say("Kubernetes %s answers at %s", c.State.Version, c.State.Server)
	return nil
}

// identify asks the cluster for its version and for what it is known by.
func (c *Cluster) identify(ctx context.Context) error {
	config := rest.CopyConfig(c.Config)
	config.Timeout = answerWithin
	c.State.Server = config.Host
	api, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoAnswer, err)
	}
	answer, err := api.RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, config.Host, err)
	}
	var about version.Info
	if err := json.Unmarshal(answer, &about); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, config.Host, err)
	}
	c.State.Version = about.GitVersion
	reader, err := client.New(config, client.Options{Scheme: kube.NewScheme()})
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, config.Host, err)
	}
	system, err := kube.ReadNamespace(ctx, metav1.NamespaceSystem, reader)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrNoAnswer, config.Host, err)
	}
	c.State.UID = string(system.UID)
	return nil
}

// Watch returns when the context ends, or with an error when a control plane
// of our own does.
func (c *Cluster) Watch(ctx context.Context) error {
	if c.own == nil {
		return nil
	}
	return c.own.watch(ctx)
}

// Close ends a control plane of our own; one that was named is left alone.
func (c *Cluster) Close() error {
	if c.own == nil {
		return nil
	}
	return c.own.stop()
}

// SameCluster refuses to go on with a database that was filled from another
// cluster: its resources would look deleted, and be deleted.
func SameCluster(f Folder, before, now ClusterState) error {
	if before.UID == "" || before.UID == now.UID {
		return nil
	}
	return fmt.Errorf("%w (%s, not %s): name another folder with --dir, or empty this one with: weir down --wipe --dir %s",
		ErrOtherCluster, before.Server, now.Server, f.Path())
}

// copyKubeconfig writes a kubeconfig that stands on its own: the files that it
// names are put into it, and only the current context is kept.
func copyKubeconfig(from, to string) error {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: from}
	config, err := rules.Load()
	if err != nil {
		return fmt.Errorf("read kubeconfig: %w", err)
	}
	if config.CurrentContext == "" || config.Contexts[config.CurrentContext] == nil {
		return fmt.Errorf("read kubeconfig %s: it has no current context; choose one with: kubectl --kubeconfig %s config use-context NAME", from, from)
	}
	if err := clientcmdapi.MinifyConfig(config); err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", from, err)
	}
	if err := clientcmdapi.FlattenConfig(config); err != nil {
		return fmt.Errorf("read kubeconfig %s: %w", from, err)
	}
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("copy kubeconfig: %w", err)
	}
	// Its owner's alone: who can read it is the cluster's administrator.
	if err := writeFile(to, data); err != nil {
		return fmt.Errorf("copy kubeconfig: %w", err)
	}
	return nil
}

// EnsureNamespaces makes the namespaces that are missing.
func EnsureNamespaces(ctx context.Context, api client.Client, names ...string) error {
	for _, name := range names {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := api.Create(ctx, ns); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return nil
}

// absolute resolves the path of a kubeconfig that was named, and sees that it
// can be read before anything starts.
func absolute(kubeconfig string) (string, error) {
	if kubeconfig == "" {
		return "", nil
	}
	path, err := filepath.Abs(kubeconfig)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return "", fmt.Errorf("--kubeconfig: %w", err)
	}
	return path, nil
}
