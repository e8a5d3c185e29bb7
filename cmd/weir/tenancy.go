// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/weir-gitops/weir/internal/backend/deployer"
	"github.com/weir-gitops/weir/internal/backend/intake"
	"github.com/weir-gitops/weir/internal/tenantnet"
)

// tenancyFlags say what tenants may do and how much of it.
type tenancyFlags struct {
	policy       intake.Policy
	quotas       intake.Quotas
	syncRunTTL   time.Duration
	deployerRole string

	network       tenantnet.Policy
	denied        []string
	allowed       []string
	knownHosts    string
	anyHostKey    bool
	knownHostText []byte
}

func (f *tenancyFlags) add(set *pflag.FlagSet) {
	f.quotas = intake.DefaultQuotas()
	set.BoolVar(&f.policy.AllowPlainHTTP, "allow-plain-http", false, "accept http:// repositories; not for a service with strangers")
	set.StringVar(&f.deployerRole, "deployer-role", deployer.DefaultRole, "ClusterRole of the service accounts as which engines deploy into tenants' namespaces")
	set.DurationVar(&f.syncRunTTL, "sync-run-ttl", time.Hour, "how long a GitOpsDeploymentSyncRun stays once it has ended")
	set.IntVar(&f.quotas.Deployments, "quota-deployments", f.quotas.Deployments, "GitOpsDeployments of one tenant; an annotation of the namespace overrides it")
	set.IntVar(&f.quotas.Environments, "quota-environments", f.quotas.Environments, "GitOpsDeploymentManagedEnvironments of one tenant; likewise")
	set.IntVar(&f.quotas.Credentials, "quota-credentials", f.quotas.Credentials, "GitOpsDeploymentRepositoryCredentials of one tenant; likewise")
	set.IntVar(&f.quotas.RunningSyncs, "quota-running-syncs", f.quotas.RunningSyncs, "syncs of one tenant that run at once; likewise")
	f.addNetworkOnly(set)
}

// addNetwork adds what says which repositories and addresses are taken.
func (f *tenancyFlags) addNetwork(set *pflag.FlagSet) {
	set.BoolVar(&f.policy.AllowPlainHTTP, "allow-plain-http", false, "accept http:// repositories; not for a service with strangers")
	f.addNetworkOnly(set)
}

func (f *tenancyFlags) addNetworkOnly(set *pflag.FlagSet) {
	set.BoolVar(&f.network.AllowPrivate, "allow-private-networks", false, "let tenants name clusters and repositories at private addresses; name those of your own with --deny-network")
	set.BoolVar(&f.network.AllowLoopback, "allow-loopback", false, "let tenants name clusters and repositories on this machine; only for a laptop")
	set.StringSliceVar(&f.denied, "deny-network", nil, "ranges, such as 10.96.0.0/12, that tenants never reach")
	set.StringSliceVar(&f.allowed, "allow-network", nil, "ranges that tenants may reach although they are not public")
	set.StringVar(&f.knownHosts, "ssh-known-hosts", env("WEIR_SSH_KNOWN_HOSTS", ""), "known_hosts file with the SSH servers of repositories (WEIR_SSH_KNOWN_HOSTS)")
	set.BoolVar(&f.anyHostKey, "accept-any-ssh-host-key", false, "connect to SSH servers that are in no known_hosts file; only for a laptop")
}

// read checks the flags and reads the files that they name.
func (f *tenancyFlags) read() error {
	for _, list := range []struct {
		flag string
		text []string
		to   *[]netip.Prefix
	}{{"--deny-network", f.denied, &f.network.Denied}, {"--allow-network", f.allowed, &f.network.Allowed}} {
		*list.to = nil
		for _, text := range list.text {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				return fmt.Errorf("%s %q: use a range such as 10.96.0.0/12: %w", list.flag, text, err)
			}
			*list.to = append(*list.to, prefix)
		}
	}
	if f.knownHosts == "" {
		return nil
	}
	var err error
	if f.knownHostText, err = os.ReadFile(f.knownHosts); err != nil {
		return fmt.Errorf("--ssh-known-hosts: %w", err)
	}
	return nil
}
