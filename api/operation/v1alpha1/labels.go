// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Labels of an Operation. They let the agent give tenants turns and find the
// operations of a resource without reading the database; what is to be done is
// read from the row alone.
const (
	TenantLabel       = "managedgitops.io/tenant"
	ResourceTypeLabel = "managedgitops.io/resource-type"
	ResourceLabel     = "managedgitops.io/resource"
)
