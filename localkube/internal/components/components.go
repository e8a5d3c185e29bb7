// SPDX-License-Identifier: Apache-2.0

// Package components holds the programs of the control plane: each entry is
// what the program's own main function does, and nothing else, so that called
// by its name the binary behaves as that program does.
package components

import (
	"os"
	_ "time/tzdata" // CronJobs with a time zone work where the machine has no zone files

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // kubectl's credential plugins
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // client metrics
	_ "k8s.io/component-base/metrics/prometheus/version"  // kubernetes_build_info
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

// Program runs one of the programs on os.Args and returns its exit code.
type Program func() int

// Lookup finds a program by its name.
func Lookup(name string) (Program, bool) {
	switch name {
	case "etcd":
		return runEtcd, true
	case "kube-apiserver":
		return func() int { return cli.Run(apiserver.NewAPIServerCommand()) }, true
	case "kube-controller-manager":
		return func() int { return cli.Run(controllermanager.NewControllerManagerCommand()) }, true
	case "kube-scheduler":
		return func() int { return cli.Run(scheduler.NewSchedulerCommand()) }, true
	case "kubectl":
		return runKubectl, true
	}
	return nil, false
}

func runEtcd() int {
	etcdmain.Main(os.Args)
	return 0
}

func runKubectl() int {
	// The verbosity is needed while the command is being built, before its
	// flags are parsed. A wrong value is reported by the parser.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(os.Args))
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		kubectlutil.CheckErr(err) // prints and exits with kubectl's own codes
	}
	return 0
}
