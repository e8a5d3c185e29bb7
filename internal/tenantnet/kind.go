// SPDX-License-Identifier: Apache-2.0

package tenantnet

// Kind is a sort of address that tenants may not reach.
type Kind string

// Kinds of addresses.
const (
	KindMetadata      Kind = "metadata"
	KindLoopback      Kind = "loopback"
	KindLinkLocal     Kind = "link-local"
	KindPrivate       Kind = "private"
	KindSharedNAT     Kind = "shared-nat"
	KindUnspecified   Kind = "unspecified"
	KindMulticast     Kind = "multicast"
	KindBroadcast     Kind = "broadcast"
	KindDocumentation Kind = "documentation"
	KindBenchmark     Kind = "benchmark"
	KindReserved      Kind = "reserved"
	// KindExcluded: in one of the ranges that the operator named.
	KindExcluded Kind = "excluded"
	// KindZoned: with a zone, which names a network card of ours.
	KindZoned Kind = "zoned"
	// KindUnusual: a number that only some programs read as an address.
	KindUnusual Kind = "unusual"
	// KindMalformed: neither an address nor a name.
	KindMalformed Kind = "malformed"
)

// explain gives what a tenant reads: the problem, and what can be done.
func (k Kind) explain() (problem, remedy string) {
	const public = "use a host that is reachable from the Internet"
	const operator = public + ", or ask the operator of this service to allow its range"
	switch k {
	case KindMetadata:
		return "leads to a cloud's metadata service, which is never allowed", public
	case KindLoopback:
		return "leads to a loopback address, which here is the service itself", public
	case KindLinkLocal:
		return "leads to a link-local address", operator
	case KindPrivate:
		return "leads to a private address", public + ", or ask the operator of this service to allow private networks"
	case KindSharedNAT:
		return "leads to an address of a provider's shared network (100.64.0.0/10)", operator
	case KindExcluded:
		return "leads to an address that the operator of this service excludes", public
	case KindZoned:
		return "is an address with a zone", "write the address without % and what follows it"
	case KindUnusual:
		return "is a number in place of a host", "write an IPv4 address as four decimal numbers, or use a name"
	case KindMalformed:
		return "is not a host and a port", "use a DNS name or an IP address, and a port between 1 and 65535"
	default:
		return "leads to an address that is not in public use (" + string(k) + ")", public
	}
}
