// SPDX-License-Identifier: Apache-2.0

// Package pki makes and keeps the keys and certificates of one local cluster.
//
// A folder holds one certificate authority, the certificates it signed and
// the key pair for service-account tokens, all ECDSA P-256:
//
//	ca.crt, ca.key                 the authority, 10 years
//	serving.crt/.key               what every component serves, 1 year
//	admin.crt/.key                 the user's client certificate, 1 year
//	controller-manager, scheduler,
//	nodes .crt/.key                the clients inside the cluster, 1 year
//	service-account.key/.pub       signs and verifies tokens, never replaced
//
// Ensure reads what is there and issues again only what is missing, was not
// signed by the present authority, does not match the request (another name
// or group) or is within its renewal margin. So a cluster keeps its
// identities across restarts, and one that is restarted once a year never
// meets an expired certificate. A new authority makes every certificate new;
// the service-account key is kept even then, because tokens signed by it live
// in the cluster's data.
//
// Every file is written under a temporary name and renamed, key before
// certificate: a crash in between leaves a pair that does not match, which
// Ensure sees as missing and issues again.
package pki
