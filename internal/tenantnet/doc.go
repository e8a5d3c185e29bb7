// SPDX-License-Identifier: Apache-2.0

// Package tenantnet makes every connection whose address a tenant can choose:
// to repositories, to clusters, and to wherever those redirect.
//
// A tenant who can aim the service at an address can look from the service's
// place in the network: at its own loopback, at the cloud's metadata service, at
// the API server's neighbours. So an address is judged before a packet is sent,
// and what was judged is what is dialled:
//
//	host:port ─ form ─▶ resolve once ─▶ judge every answer ─▶ dial a judged IP
//	             │                        │
//	             └── refused ─────────────┴── refused: no packet, no second lookup
//
// The steps in turn:
//   - Form: an IP address, or a DNS name. Numbers that some resolvers read as an
//     address (127.1, 0x7f.1, 2130706433) are neither, and never reach a resolver.
//     A name is looked up as absolute: the search list of a pod's resolv.conf
//     would turn "kubernetes" into a service of the cluster.
//   - Every answer counts: a name that answers with one public and one loopback
//     address is refused, or a second try would reach what the first did not.
//   - Pinning: the IP that was judged is dialled, so a name that answers
//     differently the next time (DNS rebinding) changes nothing.
//   - An IPv6 address that carries an IPv4 address (mapped, NAT64, 6to4) is judged
//     as both.
//
// What an operator can open: private networks (Policy.AllowPrivate), loopback
// (Policy.AllowLoopback, for a laptop) and named ranges (Policy.Allowed); what
// nobody can open is the metadata services of clouds, because what they hand out
// is the service's own identity.
//
// For HTTP the same dialer is under a client that takes no proxy from the
// environment (a proxy would connect on our behalf, unjudged), follows few
// redirects, never from https to http, and lets no credential follow to another
// origin.
//
// Errors say what kind of address a name leads to, and not which: what the
// service's resolver answers for internal names is not for strangers. The cause
// is kept for errors.Is and for the operator's log.
package tenantnet
