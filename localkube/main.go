// SPDX-License-Identifier: Apache-2.0

// Command localkube is a real Kubernetes control plane in one binary.
//
// Called by the name of one of the programs it holds (etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler, kubectl), or with that name as its
// first argument, it is that program. Called as localkube it runs all of them
// together, with simulated nodes: see `localkube --help`.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/weir-gitops/weir/localkube/internal/command"
	"github.com/weir-gitops/weir/localkube/internal/components"
	_ "github.com/weir-gitops/weir/localkube/internal/trueversion" // the programs report their true version
)

func main() {
	if program, ok := components.Lookup(filepath.Base(os.Args[0])); ok {
		os.Exit(program())
	}
	if len(os.Args) > 1 {
		if program, ok := components.Lookup(os.Args[1]); ok {
			// The programs read os.Args themselves, as they do in their own main.
			os.Args = os.Args[1:]
			os.Exit(program())
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command.Run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
