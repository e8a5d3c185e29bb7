// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// LoadConfig reads a kubeconfig, or, where the path is empty, what kubectl would
// use, or the service account of the pod that this runs in.
func LoadConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
			return nil, errors.New("no Kubernetes cluster: set --kubeconfig, or KUBECONFIG, or run inside a cluster")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	return ForService(config), nil
}

// ForService prepares a connection for the service's own work. The client-side
// throttle goes: fairness between tenants is decided by our queue, and between
// clients by the API server's priority and fairness.
func ForService(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	c.UserAgent = "weir"
	return c
}

// Answers checks that the API server is there and lets us in.
func Answers(c *rest.Config) func(context.Context) error {
	return func(ctx context.Context) error {
		// The transport behind it is shared by all clients of one configuration.
		client, err := rest.HTTPClientFor(c)
		if err != nil {
			return err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(c.Host, "/")+"/readyz", nil)
		if err != nil {
			return err
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("/readyz answers %s", res.Status)
		}
		return nil
	}
}
