// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/weir-gitops/weir/localkube/internal/pki"
)

// askEvery is the pause between two looks at a component that is starting.
const askEvery = 25 * time.Millisecond

// errNotReady says what a component answered while it was not ready.
var errNotReady = errors.New("not ready")

// probe asks one component for its health.
type probe struct {
	client *http.Client
	url    string
}

// etcdProbe asks through the unix socket.
func etcdProbe(socket string) probe {
	var dialer net.Dialer
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
	}
	return probe{client: &http.Client{Transport: transport}, url: "http://etcd/health"}
}

// tlsTransport trusts the cluster's own authority only and shows the admin
// certificate, so that the answer does not depend on what the API server lets
// strangers see before its roles exist.
func tlsTransport(keys *pki.Bundle) (*http.Transport, error) {
	ca, err := os.ReadFile(keys.CA.CertFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(keys.Admin.CertFile, keys.Admin.KeyFile)
	if err != nil {
		return nil, err
	}
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{cert}}}, nil
}

func (p probe) ask(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url, nil)
	if err != nil {
		return err
	}
	resp, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10))
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s: %s", errNotReady, resp.Status, body)
	}
	return nil
}

// eventually asks until the answer is good. When the context ends first, the
// error names the last answer; died ends it at once.
func (c *controlPlane) eventually(ctx context.Context, what string, ask func(context.Context) error) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case p := <-c.died:
			return &diedError{process: p}
		case <-ctx.Done():
			return fmt.Errorf("%s: %w; last answer: %w", what, context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
