// SPDX-License-Identifier: Apache-2.0

// Package project shows tenants what became of their CRs: hop 6 of status
// flowing up. It is the only writer of tenant status.
//
// A status is composed by a pure function from the CR, the rows of its chain and
// the verdict of the step that looked at them; it is written only where it says
// something else than what is there. The write carries the UID and the
// resourceVersion that the composition was based on, so a status can neither
// land on another object under the same name, nor overwrite a newer one.
package project
