// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"strconv"

	"github.com/weir-gitops/weir/internal/domain"
)

// Quotas are how much one tenant may have. Zero means nothing, not everything.
type Quotas struct {
	Deployments  int
	Environments int
	Credentials  int
	// RunningSyncs is how many syncs may run at once; further ones wait.
	RunningSyncs int
}

// DefaultQuotas are enough for a team, and few enough that a hundred teams fit.
func DefaultQuotas() Quotas {
	return Quotas{Deployments: 1000, Environments: 50, Credentials: 100, RunningSyncs: 20}
}

// The annotations of a namespace by which an operator gives its tenant other
// quotas. Who may change a Namespace object is an operator: Kubernetes' own roles
// for the users of a namespace do not include it.
const (
	quotaPrefix       = "managedgitops.io/quota-"
	QuotaDeployments  = quotaPrefix + "deployments"
	QuotaEnvironments = quotaPrefix + "environments"
	QuotaCredentials  = quotaPrefix + "credentials"
	QuotaRunningSyncs = quotaPrefix + "running-syncs"
)

// In gives the quotas of a namespace with these annotations. What is not a
// number is as if it were not there.
func (q Quotas) In(annotations map[string]string) Quotas {
	for name, value := range map[string]*int{
		QuotaDeployments: &q.Deployments, QuotaEnvironments: &q.Environments,
		QuotaCredentials: &q.Credentials, QuotaRunningSyncs: &q.RunningSyncs,
	} {
		if n, err := strconv.Atoi(annotations[name]); err == nil && n >= 0 {
			*value = n
		}
	}
	return q
}

// beyond is nil where a tenant's next object, which has so many before it, is
// within the quota.
func beyond(annotation, kinds string, before, quota int) error {
	if before < quota {
		return nil
	}
	return &domain.Refusal{
		Field:   "quota " + annotation,
		Problem: fmt.Sprintf("allows this namespace %d %s, and there are as many that are older than this one", quota, kinds),
		Remedy:  "delete one, or ask your operator for a larger quota",
	}
}
