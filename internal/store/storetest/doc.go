// SPDX-License-Identifier: Apache-2.0

// Package storetest holds every implementation of store.Store to the same
// behaviour: what a statement does, what the schema refuses, what concurrent
// writers may see, and that a schema of any age can be brought up to date.
//
// An implementation's own tests call Run and RunMigrations, and add what only
// that database can do.
package storetest
