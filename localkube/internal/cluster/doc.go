// SPDX-License-Identifier: Apache-2.0

// Package cluster runs a whole control plane in one folder.
//
// Up takes the folder's lock, completes the certificates, chooses ports,
// writes the kubeconfigs and then starts, each when the one below it is
// ready:
//
//	etcd ── unix socket ── kube-apiserver ── 127.0.0.1 ──┬─ kube-controller-manager
//	                                                     ├─ kube-scheduler
//	                                                     └─ simulated nodes (this process)
//
// It stays until its context ends or a child dies, and then takes everything
// down from the right to the left, so that no part is left retrying against
// one that has gone.
//
// # What listens where
//
// etcd has no authentication here, so it listens on a unix socket in a folder
// that only the owner can enter, not on a port that every user of the machine
// could reach. The API server, the controller manager and the scheduler listen
// on 127.0.0.1 with TLS. Ports are chosen at the first start, below the range
// from which systems take the ports of outgoing connections, and kept as long
// as they are free, so that a kubeconfig stays valid across restarts.
//
// # The folder
//
//	lock             held by the running Up, with its process id
//	ready            exists while it is ready, with the same process id
//	state.json       the ports
//	kubeconfig       for the user: cluster administrator, certificates embedded
//	pki/  conf/      keys and certificates; kubeconfigs of the components
//	etcd/            the data
//	logs/            one log for each component
//	run/             the unix sockets, while it runs
package cluster
