// SPDX-License-Identifier: Apache-2.0

package tenantnet

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Policy is what the operator decides. Its zero value is the strictest: the
// public Internet, and nothing else.
type Policy struct {
	// AllowPrivate opens RFC 1918 and unique local IPv6 addresses, for operators
	// whose clusters and Git servers are private. The ranges of the service's own
	// cluster (services, pods, nodes) then belong in Denied. The shared range
	// 100.64.0.0/10 stays closed: some clouds keep services of their own in it;
	// who needs it names it in Allowed.
	AllowPrivate bool
	// AllowLoopback opens loopback addresses: for a laptop and for tests.
	AllowLoopback bool
	// Denied ranges are closed whatever else is said here.
	Denied []netip.Prefix
	// Allowed ranges are open although their kind is not. A metadata service
	// inside one stays closed.
	Allowed []netip.Prefix
	// Resolver answers for names; nil is the system's.
	Resolver Resolver
	// ConnectTimeout limits lookup and connection together; zero means ten seconds.
	ConnectTimeout time.Duration
}

// Resolver looks names up. *net.Resolver is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// judge holds a policy in the form in which it is asked. Its zero value has no
// ranges, and so denies all.
type judge struct {
	policy Policy
	ranges []addressRange
}

// addressRange is one range that is not the public Internet.
type addressRange struct {
	prefix netip.Prefix
	kind   Kind
}

func newJudge(p Policy) (judge, error) {
	for _, prefix := range slices.Concat(p.Denied, p.Allowed) {
		// A range that never matches would fail open: better not to start.
		if !prefix.IsValid() || prefix.Addr().Is4In6() || prefix.Addr().Zone() != "" {
			return judge{}, fmt.Errorf("%w: %q is not an IPv4 or IPv6 range", ErrPolicy, prefix)
		}
	}
	p.Denied, p.Allowed = slices.Clone(p.Denied), slices.Clone(p.Allowed)
	return judge{policy: p, ranges: specialRanges()}, nil
}

// verdict gives the kind for which an address is denied, or "" where it is
// allowed.
func (j judge) verdict(addr netip.Addr) Kind {
	switch {
	case len(j.ranges) == 0 || !addr.IsValid():
		return KindMalformed
	case addr.Zone() != "":
		return KindZoned
	}
	addr = addr.Unmap()
	if inner, ok := embedded(addr); ok {
		// Judged as what it leads to, then as what it is.
		if kind := j.verdict(inner); kind != "" {
			return kind
		}
		if contains(j.policy.Denied, addr) {
			return KindExcluded
		}
		return ""
	}
	kind := j.kindOf(addr)
	switch {
	case kind == KindMetadata:
		return kind
	case contains(j.policy.Denied, addr):
		return KindExcluded
	case contains(j.policy.Allowed, addr),
		kind == KindPrivate && j.policy.AllowPrivate,
		kind == KindLoopback && j.policy.AllowLoopback:
		return ""
	}
	return kind
}

// kindOf gives the first range that an address is in. IPv6 is the other way
// round: only 2000::/3 has been given out, all else is denied unseen.
func (j judge) kindOf(addr netip.Addr) Kind {
	for _, r := range j.ranges {
		if r.prefix.Contains(addr) {
			return r.kind
		}
	}
	if addr.Is6() && addr.As16()[0]>>5 != 1 {
		return KindReserved
	}
	return ""
}

// embedded gives the IPv4 address that a translator or tunnel would take out of
// an IPv6 address.
func embedded(addr netip.Addr) (netip.Addr, bool) {
	if !addr.Is6() {
		return netip.Addr{}, false
	}
	b := addr.As16()
	switch {
	case netip.PrefixFrom(netip.AddrFrom16([16]byte{0x00, 0x64, 0xff, 0x9b}), 96).Contains(addr): // NAT64
		return netip.AddrFrom4([4]byte(b[12:])), true
	case b[0] == 0x20 && b[1] == 0x02: // 6to4
		return netip.AddrFrom4([4]byte(b[2:6])), true
	}
	return netip.Addr{}, false
}

func contains(prefixes []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return p.Contains(addr) })
}
