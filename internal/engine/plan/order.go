// SPDX-License-Identifier: Apache-2.0

package plan

import "cmp"

// Tiers of kinds, in the order in which a wave creates them.
const (
	tierNamespaces = iota
	tierDefinitions
	tierClasses
	tierLimits
	tierIdentities
	tierRoles
	tierBindings
	tierConfiguration
	tierVolumes
	tierClaims
	tierServices
	tierWorkloads
	tierJobs
	tierRouting
	tierAggregation
	tierOther
	tierAdmission
)

// Tier is the place of a kind within a wave: what others need comes first.
//
//	 0 Namespace
//	 1 CustomResourceDefinition
//	 2 classes: StorageClass, PriorityClass, IngressClass, RuntimeClass …
//	 3 limits: NetworkPolicy, ResourceQuota, LimitRange, PodDisruptionBudget …
//	 4 ServiceAccount
//	 5 Role, ClusterRole           (a binding to no role grants nothing)
//	 6 RoleBinding, ClusterRoleBinding
//	 7 Secret, ConfigMap           (pods wait for them)
//	 8 PersistentVolume
//	 9 PersistentVolumeClaim
//	10 Service                     (pods are told of the services before them)
//	11 workloads: Pod, Deployment, StatefulSet, DaemonSet … and their autoscalers
//	12 Job, CronJob
//	13 Ingress
//	14 APIService                  (without its pods, the group is broken)
//	15 everything else, custom resources above all: their controllers are above
//	16 admission webhooks and policies, which could refuse all the others
//
// Kinds are told by their name and the groups of Kubernetes itself, so a custom
// kind that is called Service is not taken for one.
func Tier(group, kind string) int {
	switch group {
	case "":
		return coreTier(kind)
	case "apps", "batch", "autoscaling", "extensions":
		return workloadTier(kind)
	case "rbac.authorization.k8s.io":
		return rbacTier(kind)
	case "networking.k8s.io":
		return networkTier(kind)
	case "apiextensions.k8s.io":
		return tierDefinitions
	case "storage.k8s.io", "scheduling.k8s.io", "node.k8s.io":
		return tierClasses
	case "policy":
		return tierLimits
	case "apiregistration.k8s.io":
		return tierAggregation
	case "admissionregistration.k8s.io":
		return tierAdmission
	default:
		return tierOther
	}
}

func coreTier(kind string) int {
	switch kind {
	case "Namespace":
		return tierNamespaces
	case "ResourceQuota", "LimitRange":
		return tierLimits
	case "ServiceAccount":
		return tierIdentities
	case "Secret", "ConfigMap":
		return tierConfiguration
	case "PersistentVolume":
		return tierVolumes
	case "PersistentVolumeClaim":
		return tierClaims
	case "Service", "Endpoints":
		return tierServices
	case "Pod", "ReplicationController", "PodTemplate":
		return tierWorkloads
	default:
		return tierOther
	}
}

func workloadTier(kind string) int {
	switch kind {
	case "Job", "CronJob":
		return tierJobs
	case "Ingress":
		return tierRouting
	case "NetworkPolicy":
		return tierLimits
	default:
		return tierWorkloads
	}
}

func rbacTier(kind string) int {
	switch kind {
	case "RoleBinding", "ClusterRoleBinding":
		return tierBindings
	default:
		return tierRoles
	}
}

func networkTier(kind string) int {
	switch kind {
	case "IngressClass":
		return tierClasses
	case "NetworkPolicy":
		return tierLimits
	default:
		return tierRouting
	}
}

// compareObjects orders the objects of one wave.
func compareObjects(a, b Key) int {
	return cmp.Or(cmp.Compare(Tier(a.Group, a.Kind), Tier(b.Group, b.Kind)), compareKeys(a, b))
}
