// SPDX-License-Identifier: Apache-2.0

// Package e2e holds the end-to-end tests of localkube: they run the real
// binary and use the cluster it makes, the way people and envtest do.
//
// The binary is taken from LOCALKUBE_BIN, or built first, which takes many
// minutes where the build cache is empty.
package e2e
