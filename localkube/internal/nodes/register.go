// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	// SimulatedLabel marks the nodes that this package owns.
	SimulatedLabel = "localkube.weir.dev/simulated"

	leaseNamespace = corev1.NamespaceNodeLease
	leaseDuration  = 40 * time.Second
)

// nodeName and nodeIP are those of the i-th node, from 1. The address is a
// loopback one on which nothing listens: what the API server tries to reach
// at the kubelet (logs, exec) is refused at once and leaves the machine never.
func nodeName(i int) string { return fmt.Sprintf("localkube-%d", i) }
func nodeIP(i int) string   { return fmt.Sprintf("127.0.1.%d", i) }

// register makes the node and its lease exist and the node Ready.
func (s *Simulator) register(ctx context.Context, i int) error {
	want := nodeObject(i, s.version, time.Now())
	nodes := s.client.CoreV1().Nodes()
	got, err := nodes.Create(ctx, want, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		// From an earlier run. Taints and labels that a user gave it stay.
		err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
			if got, err = nodes.Get(ctx, want.Name, metav1.GetOptions{}); err != nil {
				return err
			}
			got.Status = want.Status
			got, err = nodes.UpdateStatus(ctx, got, metav1.UpdateOptions{})
			return err
		})
	}
	if err != nil {
		return fmt.Errorf("node %s: %w", want.Name, err)
	}
	lease := leaseObject(got, time.Now())
	_, err = s.client.CoordinationV1().Leases(leaseNamespace).Create(ctx, lease, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		err = s.renew(ctx, i)
	}
	if err != nil {
		return fmt.Errorf("lease of node %s: %w", want.Name, err)
	}
	return nil
}

// removeSurplus deletes nodes of an earlier run that had more of them; the
// control plane then removes their pods and leases.
func (s *Simulator) removeSurplus(ctx context.Context) error {
	list, err := s.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: SimulatedLabel + "=true"})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	for _, node := range list.Items {
		if _, ours := s.hostIPs[node.Name]; ours {
			continue
		}
		err := s.client.CoreV1().Nodes().Delete(ctx, node.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove node %s: %w", node.Name, err)
		}
	}
	return nil
}

// nodeObject is generous: nothing runs on it, so nothing can be short.
func nodeObject(i int, version string, now time.Time) *corev1.Node {
	at := metav1.NewTime(now)
	name := nodeName(i)
	resources := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		corev1.ResourcePods:             resource.MustParse("10000"),
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason string) corev1.NodeCondition {
		return corev1.NodeCondition{Type: kind, Status: status, Reason: reason, LastHeartbeatTime: at, LastTransitionTime: at}
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				SimulatedLabel:                   "true",
				corev1.LabelHostname:             name,
				corev1.LabelOSStable:             "linux",
				corev1.LabelArchStable:           runtime.GOARCH,
				corev1.LabelTopologyRegion:       "local",
				corev1.LabelTopologyZone:         fmt.Sprintf("local-%d", i),
				"node-role.kubernetes.io/worker": "",
			},
		},
		Status: corev1.NodeStatus{
			Capacity:    resources,
			Allocatable: resources.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeIP(i)},
				{Type: corev1.NodeHostName, Address: name},
			},
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeReady, corev1.ConditionTrue, "Simulated"),
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "Simulated"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "Simulated"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "Simulated"),
			},
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          version,
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
				OSImage:                 "simulated",
				ContainerRuntimeVersion: "localkube://" + version,
			},
		},
	}
}

func leaseObject(node *corev1.Node, now time.Time) *coordinationv1.Lease {
	seconds := int32(leaseDuration / time.Second)
	renewed := metav1.NewMicroTime(now)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name:      node.Name,
			Namespace: leaseNamespace,
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
			},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity:       &node.Name,
			LeaseDurationSeconds: &seconds,
			RenewTime:            &renewed,
		},
	}
}
