// SPDX-License-Identifier: Apache-2.0

package health

import (
	"iter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	argo "github.com/weir-gitops/weir/api/argoproj/v1alpha1"
)

// Status is how well something runs, in one word.
type Status = argo.HealthStatusCode

// The words, from best to worst.
const (
	// Healthy: it runs as it should.
	Healthy = argo.HealthStatusHealthy
	// Suspended: it waits for somebody to let it go on.
	Suspended = argo.HealthStatusSuspended
	// Progressing: not healthy yet, and it may still become so.
	Progressing = argo.HealthStatusProgressing
	// Missing: it should be there and is not.
	Missing = argo.HealthStatusMissing
	// Degraded: it failed, or did not become healthy in time.
	Degraded = argo.HealthStatusDegraded
	// Unknown: it could not be told.
	Unknown = argo.HealthStatusUnknown
)

// HealthStatus is how well something runs, and why.
type HealthStatus struct { //nolint:revive // the name that the specification gives it
	Status  Status
	Message string
}

// Assessor tells the health of objects.
type Assessor interface {
	// GetResourceHealth gives nil for an object of which it has no opinion. It
	// must not change the object.
	GetResourceHealth(obj *unstructured.Unstructured) (*HealthStatus, error)
}

// AssessorFunc is a function as an Assessor.
type AssessorFunc func(*unstructured.Unstructured) (*HealthStatus, error)

// GetResourceHealth calls the function.
func (f AssessorFunc) GetResourceHealth(obj *unstructured.Unstructured) (*HealthStatus, error) {
	return f(obj)
}

// Overrides are checks that replace the built-in ones, or add to them. They are
// read from many goroutines at once and must not be changed once in use.
type Overrides map[schema.GroupKind]Assessor

// New gives the built-in checks with overrides, which may be nil.
func New(overrides Overrides) Assessor { return assessor{overrides} }

type assessor struct{ overrides Overrides }

// GetResourceHealth implements Assessor.
func (a assessor) GetResourceHealth(obj *unstructured.Unstructured) (*HealthStatus, error) {
	if obj.GetDeletionTimestamp() != nil {
		return &HealthStatus{Progressing, "is being deleted"}, nil
	}
	gk := obj.GroupVersionKind().GroupKind()
	if override, found := a.overrides[gk]; found {
		return override.GetResourceHealth(obj)
	}
	check := builtin(gk)
	if check == nil {
		return nil, nil
	}
	f := &fields{object: obj.Object}
	health := check(f)
	if f.err != nil {
		return nil, f.err
	}
	return &health, nil
}

// Assess asks an assessor, and makes Missing of nil objects and Unknown of
// errors, so that there is always something to show. Nil: no opinion.
func Assess(a Assessor, obj *unstructured.Unstructured) *HealthStatus {
	if obj == nil {
		return &HealthStatus{Missing, "is not in the cluster"}
	}
	health, err := a.GetResourceHealth(obj)
	if err != nil {
		return &HealthStatus{Unknown, err.Error()}
	}
	return health
}

// Worse says whether a is worse than b. What is no status at all counts as Unknown.
func Worse(a, b Status) bool { return severity(a) > severity(b) }

func severity(s Status) int {
	switch s {
	case Healthy:
		return 0
	case Suspended:
		return 1
	case Progressing:
		return 2
	case Missing:
		return 3
	case Degraded:
		return 4
	default:
		return 5
	}
}

// Aggregate is the worst of the statuses; Healthy if there is none.
func Aggregate(statuses iter.Seq[Status]) Status {
	worst := Healthy
	for status := range statuses {
		if Worse(status, worst) {
			worst = status
		}
	}
	return worst
}
