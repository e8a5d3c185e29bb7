// SPDX-License-Identifier: Apache-2.0

// Command weir is a managed, multi-tenant GitOps service: one binary with a
// subcommand for each role, and the client for its tenants.
//
// There are only flags and wiring here: one readable function for each role
// puts packages together, and the packages do the work.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/weir-gitops/weir/internal/cli"
	"github.com/weir-gitops/weir/internal/engine/render"
)

// version is set by the build.
var version = "dev"

func main() {
	// The engine renders what strangers wrote in a process of its own: this program,
	// started again.
	if handled, code := render.ChildMain(context.Background(), os.Args, os.Stdin, os.Stdout); handled {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal asks to stop; from then on another one ends the program.
	context.AfterFunc(ctx, stop)
	err := newRoot().ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "weir:", err)
		os.Exit(cli.ExitCode(err))
	}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "weir",
		Short: "Managed, multi-tenant GitOps: from Git to clusters, kept so",
		Long: `Weir deploys what tenants keep in Git, and keeps it deployed.

Tenants say in their own namespace which repository goes to which cluster.
Weir writes that to its database, has a GitOps engine carry it out, and reports
back in the status of the same resource.

To try it on this machine:  weir up`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(
		&cobra.Group{ID: cli.GroupID, Title: "For tenants, with their own kubeconfig:"},
		&cobra.Group{ID: "local", Title: "On this machine:"},
		&cobra.Group{ID: "roles", Title: "The roles of the service:"},
		&cobra.Group{ID: "operate", Title: "For operators:"},
	)
	root.AddCommand(newUp(), newDown(), newStatus(), newBackend(), newAgent(), newEngine(), newCRDs(), newMigrate(), newKeys())
	cli.Attach(root, os.Args[0])
	return root
}
