// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-gitops/weir/internal/telemetry"
)

// roleFlags are what every role of the service has.
type roleFlags struct {
	kubeconfig   string
	database     databaseFlags
	log          telemetry.LogOptions
	probes       string
	keyRing      keyRingFlags
	workers      int
	perWorkspace int
}

func (f *roleFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; default: what kubectl would use, or the pod's service account")
	f.database.add(set)
	f.keyRing.add(set)
	addLogFlags(set, &f.log, "json")
	set.StringVar(&f.probes, "probe-address", env("WEIR_PROBE_ADDRESS", ":8081"), "where /healthz, /readyz and /metrics are served (WEIR_PROBE_ADDRESS)")
	addWorkerFlags(set, &f.workers, &f.perWorkspace)
}

func addLogFlags(set *pflag.FlagSet, o *telemetry.LogOptions, format string) {
	set.StringVar(&o.Format, "log-format", format, "text or json")
	set.StringVar(&o.Level, "log-level", "info", "debug, info, warn or error")
}

func addWorkerFlags(set *pflag.FlagSet, workers, perWorkspace *int) {
	set.IntVar(workers, "workers", 16, "how many steps run at once")
	set.IntVar(perWorkspace, "workers-per-tenant", max(1, runtime.GOMAXPROCS(0)/2), "how many of them may be one tenant's; default: half the cores")
}

// databaseFlags say where the database is.
type databaseFlags struct {
	address  string
	patience time.Duration
}

func (f *databaseFlags) add(set *pflag.FlagSet) {
	set.StringVar(&f.address, "database", env("WEIR_DATABASE", ""), "postgres://user:password@host:port/name, or sqlite:FILE for one process alone (WEIR_DATABASE)")
	set.DurationVar(&f.patience, "wait-for-database", time.Minute, "how long to wait at the start for a database that does not answer yet")
}

func env(name, fallback string) string {
	if v, ok := os.LookupEnv(name); ok {
		return v
	}
	return fallback
}
