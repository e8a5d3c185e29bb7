// SPDX-License-Identifier: Apache-2.0

// Package kube is how Weir speaks to API servers: one scheme with all the kinds
// it knows, connections without a client-side throttle, the check that the
// CRDs it needs are installed, and the little reading helpers that both roles
// share.
package kube
