// SPDX-License-Identifier: Apache-2.0

// Package nodes plays the kubelets of a cluster that has none.
//
// It registers Node objects, renews their leases, and answers for every pod
// that the scheduler binds to one of them, the way a kubelet would for
// containers that start at once and behave:
//
//	bound ──► Running, Ready ──┬─ restartPolicy Always: stays so
//	                           └─ OnFailure, Never: Succeeded after a second or two
//	deleted ──► removed at once, without waiting for its grace period
//
// A pod with the annotation localkube.weir.dev/fail: "true" fails instead: with
// restartPolicy Never it ends as Failed, otherwise it sits in
// CrashLoopBackOff. The annotation may come and go while the pod runs.
//
// # How
//
// One watch on all bound pods feeds a queue; for each pod in it a pure
// function, next, compares the status the pod has with the one it should have
// and says what to do: write a status, remove the pod, look again later, or
// nothing. Nothing is remembered between looks, so a restart of this process
// continues where it was. At rest there is no work but the leases.
//
// # Why a conflict is not an error
//
// A status is written with the resourceVersion of the pod it was computed
// from. A conflict means that the pod has changed since; the watch is about to
// deliver that change, and the pod is looked at again then.
package nodes
