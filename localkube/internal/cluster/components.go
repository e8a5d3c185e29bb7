// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/localkube/internal/pki"
	"github.com/weir-gitops/weir/localkube/internal/supervise"
)

// The names of the components, which are also the names by which the binary
// becomes each of them.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kubectl           = "kubectl"

	nodesClient = "nodes" // not a program: the simulated nodes in this process
)

const (
	serviceRange = "10.96.0.0/16"
	// peerURL is what etcd stores as its own address in the data. A cluster of
	// one member never dials it.
	peerURL = "http://127.0.0.1:2380"
)

// Together they are what the API server divides between its priority levels;
// half of the smallest sensible machine still gives the built-in levels several
// requests each.
const (
	readsPerCore  = 32
	writesPerCore = 16
)

// serviceIP is the first address of serviceRange, which the API server gives
// to the service "kubernetes".
func serviceIP() net.IP { return net.IPv4(10, 96, 0, 1) }

// settings are what the components' flags are made from.
type settings struct {
	layout  layout
	ports   ports
	keys    *pki.Bundle
	noFsync bool
	self    string   // the program file of this process
	env     []string // of the children
}

func (s settings) spec(name string, args []string) supervise.Spec {
	return supervise.Spec{
		Name: name, Path: s.self, Args: args, Env: s.env,
		Dir: s.layout.dir, LogFile: s.layout.log(name),
	}
}

func (s settings) etcd() supervise.Spec {
	return s.spec(etcd, []string{
		"--name=localkube",
		"--data-dir=" + s.layout.data(),
		"--listen-client-urls=unix://" + s.layout.etcdSocket(),
		"--advertise-client-urls=http://127.0.0.1:2379",
		"--listen-peer-urls=unix://" + s.layout.peerSocket(),
		"--initial-advertise-peer-urls=" + peerURL,
		"--initial-cluster=localkube=" + peerURL,
		"--quota-backend-bytes=" + strconv.Itoa(8<<30),
		fmt.Sprintf("--unsafe-no-fsync=%t", s.noFsync),
	})
}

func (s settings) apiServer() supervise.Spec {
	return s.spec(apiServer, []string{
		"--etcd-servers=unix://" + s.layout.etcdSocket(),
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(s.ports.APIServer),
		// Without a reconciler the service "kubernetes" has no endpoints, which
		// is what lets the advertised address be a loopback one.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=" + serviceRange,
		"--client-ca-file=" + s.keys.CA.CertFile,
		"--tls-cert-file=" + s.keys.Serving.CertFile,
		"--tls-private-key-file=" + s.keys.Serving.KeyFile,
		"--authorization-mode=Node,RBAC",
		"--enable-admission-plugins=NodeRestriction",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + s.keys.ServiceAccountPub,
		"--service-account-signing-key-file=" + s.keys.ServiceAccountKey,
		// No container is ever started, so a privileged one is as harmless as
		// any other, and manifests for real clusters contain them.
		"--allow-privileged=true",
		"--profiling=false",
		// As much at once as this machine can do, so that beyond it requests queue
		// by priority and fairness instead of all being served slowly together.
		"--max-requests-inflight=" + strconv.Itoa(readsPerCore*runtime.NumCPU()),
		"--max-mutating-requests-inflight=" + strconv.Itoa(writesPerCore*runtime.NumCPU()),
	})
}

func (s settings) controllerManager() supervise.Spec {
	conf := s.layout.conf(controllerManager)
	return s.spec(controllerManager, append(s.servingFlags(s.ports.ControllerManager, conf),
		"--use-service-account-credentials=true",
		"--service-account-private-key-file="+s.keys.ServiceAccountKey,
		"--root-ca-file="+s.keys.CA.CertFile,
		"--cluster-signing-cert-file="+s.keys.CA.CertFile,
		"--cluster-signing-key-file="+s.keys.CA.KeyFile,
		"--allocate-node-cidrs=false",
		// The simulated nodes renew their leases three times within this time.
		"--node-monitor-grace-period=60s",
	))
}

func (s settings) scheduler() supervise.Spec {
	return s.spec(scheduler, s.servingFlags(s.ports.Scheduler, s.layout.conf(scheduler)))
}

// servingFlags are common to the two clients of the API server. The request
// limits are high because the API server is close and has its own limits.
func (s settings) servingFlags(port int, kubeconfig string) []string {
	return []string{
		"--kubeconfig=" + kubeconfig,
		"--authentication-kubeconfig=" + kubeconfig,
		"--authorization-kubeconfig=" + kubeconfig,
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--tls-cert-file=" + s.keys.Serving.CertFile,
		"--tls-private-key-file=" + s.keys.Serving.KeyFile,
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}
}

// childEnv leaves out what would change a component behind our back: etcd
// takes every flag also from the environment, and NOTIFY_SOCKET belongs to
// whoever started us.
func childEnv(environ []string) []string {
	var env []string
	for _, kv := range environ {
		if strings.HasPrefix(kv, "ETCD_") || strings.HasPrefix(kv, "NOTIFY_SOCKET=") || strings.HasPrefix(kv, "KUBECONFIG=") {
			continue
		}
		env = append(env, kv)
	}
	return env
}
