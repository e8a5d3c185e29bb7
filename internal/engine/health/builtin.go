// SPDX-License-Identifier: Apache-2.0

package health

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// check is one built-in check. Faults stay in the fields.
type check func(*fields) HealthStatus

// builtin gives the check for a kind, or nil.
func builtin(gk schema.GroupKind) check {
	switch gk.Group {
	case "apps", "extensions":
		return workloadCheck(gk)
	case "":
		return coreCheck(gk.Kind)
	case "batch":
		return batchCheck(gk.Kind)
	case "networking.k8s.io":
		if gk.Kind == "Ingress" {
			return ingress
		}
	case "autoscaling":
		if gk.Kind == "HorizontalPodAutoscaler" {
			return autoscaler
		}
	case "apiregistration.k8s.io":
		if gk.Kind == "APIService" {
			return apiService
		}
	case "apiextensions.k8s.io":
		if gk.Kind == "CustomResourceDefinition" {
			return definition
		}
	case "argoproj.io":
		return argoCheck(gk.Kind)
	}
	return nil
}

func workloadCheck(gk schema.GroupKind) check {
	switch gk.Kind {
	case "Deployment":
		return deployment
	case "ReplicaSet":
		return replicaSet
	case "StatefulSet":
		return statefulSet
	case "DaemonSet":
		return daemonSet
	case "Ingress":
		if gk.Group == "extensions" {
			return ingress
		}
	}
	return nil
}

func coreCheck(kind string) check {
	switch kind {
	case "Pod":
		return pod
	case "Service":
		return service
	case "PersistentVolumeClaim":
		return claim
	default:
		return nil
	}
}

func batchCheck(kind string) check {
	switch kind {
	case "Job":
		return job
	case "CronJob":
		return cronJob
	default:
		return nil
	}
}

func argoCheck(kind string) check {
	switch kind {
	case "Application":
		return application
	case "Workflow":
		return workflow
	case "Rollout":
		return rollout
	default:
		return nil
	}
}

func healthy(format string, args ...any) HealthStatus {
	return HealthStatus{Healthy, fmt.Sprintf(format, args...)}
}

func progressing(format string, args ...any) HealthStatus {
	return HealthStatus{Progressing, fmt.Sprintf(format, args...)}
}

func degraded(format string, args ...any) HealthStatus {
	return HealthStatus{Degraded, fmt.Sprintf(format, args...)}
}

func suspended(format string, args ...any) HealthStatus {
	return HealthStatus{Suspended, fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) HealthStatus {
	return HealthStatus{Unknown, fmt.Sprintf(format, args...)}
}

// unobserved is the answer where the status is outdated.
func unobserved() HealthStatus {
	return progressing("waiting for its controller to see the newest spec")
}
