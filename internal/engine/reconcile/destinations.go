// SPDX-License-Identifier: Apache-2.0

package reconcile

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// localServer is how Applications call the cluster that the engine runs in.
const localServer = "https://kubernetes.default.svc"

// destination is a cluster, as one user.
type destination struct {
	key    string
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
	// watched is the cluster as the engine itself sees it: watches are shared
	// between applications of different users, and show metadata only.
	watched *watches
}

// destinations makes clients, and keeps them for as long as nothing about them
// changes.
type destinations struct {
	local  *rest.Config
	dialer *tenantnet.Dialer
	// secrets lists the engine's cluster Secrets.
	secrets func(ctx context.Context) ([]corev1.Secret, error)
	changed func(app string)
	ctx     context.Context //nolint:containedctx // what the watches live for

	mu    sync.Mutex
	made  map[string]*destination
	views map[string]*watches
}

var errNoDestination = errors.New("there is no such destination")

// get gives the destination of an Application, as the user that its project says.
func (d *destinations) get(ctx context.Context, app *argo.Application, p *argo.AppProject) (*destination, error) {
	config, err := d.config(ctx, app)
	if err != nil {
		return nil, err
	}
	server := app.Spec.Destination.Server
	if user := deployer(p, server, app.Spec.Destination.Namespace); user != "" {
		config.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	cluster := digest(config.Host, config.BearerToken, string(config.CAData), string(config.CertData), string(config.KeyData))
	key := digest(cluster, config.Impersonate.UserName)

	d.mu.Lock()
	defer d.mu.Unlock()
	if made := d.made[key]; made != nil {
		return made, nil
	}
	made, err := newDestination(key, config)
	if err != nil {
		return nil, err
	}
	if made.watched = d.views[cluster]; made.watched == nil {
		plain := rest.CopyConfig(config)
		plain.Impersonate = rest.ImpersonationConfig{}
		client, err := metadata.NewForConfig(plain)
		if err != nil {
			return nil, err
		}
		made.watched = &watches{ctx: d.ctx, client: client, changed: d.changed}
		if d.views == nil {
			d.views = map[string]*watches{}
		}
		d.views[cluster] = made.watched
	}
	if d.made == nil {
		d.made = map[string]*destination{}
	}
	d.made[key] = made
	return made, nil
}

func newDestination(key string, config *rest.Config) (*destination, error) {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	discover, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &destination{key: key, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discover))}, nil
}

func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// clusterConfig is the entry "config" of a cluster Secret, as far as it is read:
// programs that fetch credentials are not run.
type clusterConfig struct {
	BearerToken     string `json:"bearerToken"`
	TLSClientConfig struct {
		Insecure   bool   `json:"insecure"`
		ServerName string `json:"serverName"`
		CAData     []byte `json:"caData"`
		CertData   []byte `json:"certData"`
		KeyData    []byte `json:"keyData"`
	} `json:"tlsClientConfig"`
}

func (d *destinations) config(ctx context.Context, app *argo.Application) (*rest.Config, error) {
	to := app.Spec.Destination
	if to.Server == localServer && to.Name == "" {
		return rest.CopyConfig(d.local), nil
	}
	secrets, err := d.secrets(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range secrets {
		named := to.Name != "" && string(s.Data["name"]) == to.Name || to.Name == "" && string(s.Data["server"]) == to.Server
		// A Secret of a project is for that project alone.
		if !named || len(s.Data["project"]) > 0 && string(s.Data["project"]) != app.Spec.Project {
			continue
		}
		return d.remote(s)
	}
	return nil, fmt.Errorf("%w: cluster %s%s is not known to project %s", errNoDestination, to.Name, to.Server, app.Spec.Project)
}

const requestTimeout = 30 * time.Second

func (d *destinations) remote(s corev1.Secret) (*rest.Config, error) {
	var c clusterConfig
	if err := json.Unmarshal(s.Data["config"], &c); err != nil {
		return nil, fmt.Errorf("%w: the config of Secret %s cannot be read", errNoDestination, s.Name)
	}
	server, err := url.Parse(string(s.Data["server"]))
	if err != nil || server.Host == "" {
		return nil, fmt.Errorf("%w: the server of Secret %s is no address", errNoDestination, s.Name)
	}
	// What tells two Secrets of one cluster apart is not part of its address.
	server.RawQuery = ""
	return &rest.Config{
		Host: server.String(), BearerToken: c.BearerToken, Dial: d.dialer.DialContext, QPS: -1, Timeout: requestTimeout, UserAgent: "weir-engine",
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: c.TLSClientConfig.Insecure, ServerName: c.TLSClientConfig.ServerName,
			CAData: c.TLSClientConfig.CAData, CertData: c.TLSClientConfig.CertData, KeyData: c.TLSClientConfig.KeyData,
		},
	}, nil
}

// mapping finds a kind's resource. A kind that is not known may have been defined
// since discovery was last asked.
func (d *destination) mapping(kind schema.GroupVersionKind) (*meta.RESTMapping, error) {
	m, err := d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if meta.IsNoMatchError(err) {
		d.mapper.Reset()
		return d.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	}
	return m, err
}
