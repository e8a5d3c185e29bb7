// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Check asks one dependency whether it is there.
type Check struct {
	Name  string
	Check func(ctx context.Context) error
}

// checkTimeout is how long a dependency has to answer a probe.
const checkTimeout = 2 * time.Second

// Probes serves /healthz, /readyz and /metrics.
type Probes struct {
	listener net.Listener
	server   *http.Server
}

// ListenProbes opens the port. Serving starts with Run.
func ListenProbes(ctx context.Context, address string, gather prometheus.Gatherer, checks []Check) (*Probes, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--probe-address %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.Handle("/readyz", readyz(checks))
	mux.Handle("/metrics", promhttp.HandlerFor(gather, promhttp.HandlerOpts{}))
	return &Probes{listener: l, server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}}, nil
}

// Address is where the probes are.
func (p *Probes) Address() string { return p.listener.Addr().String() }

// Run serves until the context ends.
func (p *Probes) Run(ctx context.Context) error {
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		_ = p.server.Close()
	})
	err := p.server.Serve(p.listener)
	if !stop() {
		<-stopped
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Readiness is what /readyz answers.
type Readiness struct {
	Ready bool `json:"ready"`
	// Dependencies are "ok", or what is wrong.
	Dependencies map[string]string `json:"dependencies"`
}

// Ask runs the checks side by side.
func Ask(ctx context.Context, checks []Check) Readiness {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	r := Readiness{Ready: true, Dependencies: make(map[string]string, len(checks))}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, c := range checks {
		wg.Go(func() {
			answer := "ok"
			if err := c.Check(ctx); err != nil {
				answer = err.Error()
			}
			mu.Lock()
			defer mu.Unlock()
			r.Dependencies[c.Name] = answer
			r.Ready = r.Ready && answer == "ok"
		})
	}
	wg.Wait()
	return r
}

func readyz(checks []Check) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r := Ask(req.Context(), checks)
		w.Header().Set("Content-Type", "application/json")
		if !r.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(r)
	})
}
