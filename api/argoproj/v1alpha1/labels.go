// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels that mark an engine object as Weir's own.
const (
	// TenantLabel is the id of the tenant whom the object belongs to.
	TenantLabel = "managedgitops.io/tenant"
	// ApplicationLabel is the id of the application row that an Application stands for.
	ApplicationLabel = "managedgitops.io/application"
)
