// SPDX-License-Identifier: Apache-2.0

// Package crdtest holds the tests of the CustomResourceDefinitions in
// config/crd. They run on a real API server, because the rules are carried out
// there: whether a CEL expression compiles, stays within the cost budget, and
// says something useful when it refuses can be seen nowhere else.
//
// Each table row is one resource: a good one of its kind with some fields
// changed, and either nothing more (the server must accept it) or the field and
// the words that the server's refusal must contain. A walk over the schemas
// then holds what no table can: that every text and every list that a tenant
// writes has an upper bound.
package crdtest
